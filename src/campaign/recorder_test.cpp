#include "campaign/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/hash.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> bytes(std::string_view text) {
  std::vector<std::byte> made;
  for (const char c : text) made.push_back(static_cast<std::byte>(c));
  return made;
}

// x is stored once along its first dimension: what a side receives, and is hashed, is "ab".
Recording sample() {
  Tensor x;
  x.name = "x";
  x.dtype = DType::kU8;
  x.shape = {2, 2};
  x.stride = {0, 1};
  RecordedCall call;
  call.inputs = {x};
  call.stored = {"calls/3/x"};
  Recording recording;
  recording.calls[0] = {call};
  recording.inputs = {{"calls/3/x", DType::kU8, {2, 2}, bytes("abab")}};
  return recording;
}

Finding seen(std::string_view stored) {
  const Hash128 hash = hash128(bytes(stored));
  Finding finding;
  finding.input_hashes = {{"x", {hash, hash}}};
  return finding;
}

TEST(Recorder, InputsAreThoseThatASideReceives) {
  EXPECT_TRUE(has_recorded_inputs(seen("ab"), sample()));
  EXPECT_FALSE(has_recorded_inputs(seen("abab"), sample()));
  EXPECT_FALSE(has_recorded_inputs(seen("ac"), sample()));
  EXPECT_TRUE(has_recorded_inputs(Finding(), sample()));
  Recording other = sample();
  other.inputs[0].name = "x";
  EXPECT_FALSE(has_recorded_inputs(seen("ab"), other));
}

// A child that ends at once takes nothing with it but the recording.
TEST(Recorder, AChildThatDiesIsANote) {
  const fs::path folder = fs::temp_directory_path() / ("fusediff_recorder_" + std::to_string(::getpid()));
  Bundle bundle;
  bundle.smallest.op = "add";
  bundle.recording = sample();
  RecorderOptions options;
  options.child.program = "/bin/false";
  options.folder = folder;
  options.seconds = 1;
  record_into(bundle, options, false);
  EXPECT_FALSE(bundle.recording);
  ASSERT_EQ(bundle.finding.notes.size(), 1u);
  EXPECT_EQ(bundle.finding.notes[0],
            "inputs and outputs are not kept: the process that recorded them ended (exit code 1)");
  EXPECT_TRUE(fs::is_empty(folder));
  options.folder = "/dev/null/x";
  record_into(bundle, options, false);
  EXPECT_EQ(bundle.finding.notes.size(), 2u);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace fusediff
