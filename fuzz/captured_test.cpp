// Captured tensors as the start of a campaign: imported, fuzzed on a planted fault, found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/files.h"
#include "base/rng.h"
#include "campaign/captured.h"
#include "campaign/found.h"
#include "base/spawn.h"
#include "engine/bundle.h"
#include "model/safetensors.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

class CapturedSteps : public testing::Test {
 protected:
  CapturedSteps() : root_(fs::path(testing::TempDir()) / ("fusediff_steps_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~CapturedSteps() override {
    if (!HasFailure()) fs::remove_all(root_);
  }

  Ended run(std::vector<std::string> arguments) const {
    SpawnRequest request;
    request.program = FUSEDIFF_BIN_DIR "/fusediff";
    request.arguments = std::move(arguments);
    request.output_file = (root_ / "log").string();
    const Result<pid_t> process = spawn(request);
    EXPECT_TRUE(process.ok());
    for (;;) {
      if (const auto ended = poll_end(*process)) return *ended;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  std::string log() const { return *read_file(root_ / "log", 1 << 26); }

  // A routing step of that many tokens over 64 experts, nothing tied.
  void capture(std::int64_t tokens) const {
    Rng rng(3);
    std::vector<StoredTensor> step = {{"gate_logits", DType::kF32, {tokens, 64}, {}}, {"bias", DType::kF32, {64}, {}}};
    for (StoredTensor& tensor : step) {
      const auto count = static_cast<std::size_t>(tensor.name == "bias" ? 64 : tokens * 64);
      tensor.bytes.resize(count * 4);
      for (std::size_t i = 0; i < count; ++i) {
        const double drawn = static_cast<double>(rng.below(1u << 24)) / (1u << 24) - 0.5;
        const double value = tensor.name == "bias" ? drawn / 8 : 8 * drawn;
        store_bits(DType::kF32, round_to_bits(DType::kF32, value), tensor.bytes.data() + 4 * i);
      }
    }
    ASSERT_TRUE(write_file(root_ / "step.safetensors", write_safetensors(step)).ok());
  }
  void import() const {
    ASSERT_EQ(run({"import", (root_ / "step.safetensors").string(), "--op", "moe_gating_topk", "--map", "x=gate_logits",
                   "--attr", "k=8", "--out", (root_ / "mine").string()}),
              (Ended{0, 0}))
        << log();
  }
  void fuzz() const {
    ASSERT_EQ(run({"fuzz", "--target", "planted_report_a", "--op", "moe_gating_topk", "--experiment", "pair", "--jobs",
                   "1", "--runs", "3000", "--corpus", (root_ / "mine").string(), "--out", (root_ / "out").string()}),
              (Ended{0, 1}))
        << log();
  }
  std::vector<Bundle> flips() const {
    std::vector<Bundle> found;
    for (const auto& entry : fs::directory_iterator(findings_folder(root_ / "out"))) {
      Result<Bundle> bundle = read_bundle(entry.path());
      EXPECT_TRUE(bundle.ok()) << bundle.error().what;
      if (bundle.ok() && bundle->finding.cls == FindingClass::kFlip) found.push_back(*std::move(bundle));
    }
    return found;
  }

  const fs::path root_;
};

TEST_F(CapturedSteps, AnOrdinaryRoutingStepBecomesAFlip) {
  capture(16);
  import();
  fuzz();
  const std::vector<Bundle> found = flips();
  ASSERT_FALSE(found.empty()) << log();
  bool from_captured = false;
  for (const Bundle& bundle : found) {
    EXPECT_EQ(bundle.replay->same, bundle.replay->runs);
    const auto x = bundle.original.inputs.find("x");
    from_captured = from_captured || (x != bundle.original.inputs.end() && x->second.fill.kind == FillKind::kBits);
  }
  EXPECT_TRUE(from_captured) << "no flip was found on top of the captured scores";
}

TEST_F(CapturedSteps, WhatIsTooLargeForACaseComesAlongInItsOwnFile) {
  capture(4000);
  import();
  fuzz();
  for (const auto& entry : fs::directory_iterator(findings_folder(root_ / "out"))) {
    const Result<Bundle> bundle = read_bundle(entry.path());
    EXPECT_TRUE(bundle.ok()) << bundle.error().what;
  }
  EXPECT_TRUE(fs::is_empty(found_folder(root_ / "out")));
}

}  // namespace
}  // namespace fusediff
