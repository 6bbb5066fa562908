// Campaigns of the real programs on a small target that misbehaves: what is on disk and how they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/hash.h"
#include "campaign/found.h"
#include "base/spawn.h"
#include "engine/bundle.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::uint64_t kMaxText = 1 << 26;
const std::string kProgram = FUSEDIFF_BIN_DIR "/fusediff";
const std::string kUnruly = FUSEDIFF_BIN_DIR "/testdata/unruly.so";

std::string text_of(const fs::path& file) {
  const Result<std::string> text = read_file(file, kMaxText);
  return text.ok() ? *text : "";
}

class Campaign : public testing::Test {
 protected:
  Campaign() : root_(fs::path(testing::TempDir()) / ("fusediff_campaign_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~Campaign() override {
    if (HasFailure()) return;  // what a failure left is worth a look
    fs::remove_all(root_);
  }

  std::vector<std::string> fuzz_arguments(const std::string& option, const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"fuzz",         "--target",  kUnruly, "--target-option", option, "--out",
                                    out().string(), "--timeout", "0.2",   "--jobs",          "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  pid_t start(const std::vector<std::string>& arguments) {
    SpawnRequest request;
    request.program = kProgram;
    request.arguments = arguments;
    request.output_file = log().string();
    const Result<pid_t> process = spawn(request);
    EXPECT_TRUE(process.ok());
    return process.ok() ? *process : 0;
  }
  static Ended wait(pid_t process) {
    for (;;) {
      if (const auto ended = poll_end(process)) return *ended;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  Ended run(const std::vector<std::string>& arguments) { return wait(start(arguments)); }

  // The campaign must not end before what is waited for is there.
  static void wait_until(const std::function<bool()>& is_so, pid_t process) {
    while (!is_so()) {
      ASSERT_EQ(::kill(process, 0), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  std::uint64_t checks() const {
    const auto json = nlohmann::json::parse(text_of(out() / "stats.json"), nullptr, false);
    return json.is_object() ? json.value("checks", std::uint64_t{0}) : 0;
  }
  nlohmann::json summary() const { return nlohmann::json::parse(text_of(out() / "summary.json"), nullptr, false); }
  std::vector<fs::path> bundles() const {
    std::vector<fs::path> all;
    std::error_code code;
    for (fs::directory_iterator at(findings_folder(out()), code), end; !code && at != end; at.increment(code)) {
      all.push_back(at->path());
    }
    return all;
  }
  // Everything that a kill may not have left in part.
  void expect_whole() const {
    for (const fs::path& bundle : bundles()) {
      if (bundle.filename().string().starts_with(".tmp-")) continue;
      const Result<Bundle> read = read_bundle(bundle);
      EXPECT_TRUE(read.ok()) << bundle << (read.ok() ? "" : read.error().what);
    }
    std::error_code code;
    for (fs::directory_iterator at(found_folder(out()), code), end; !code && at != end; at.increment(code)) {
      if (at->path().extension() != ".json") continue;
      const Result<Found> read = read_found(at->path());
      EXPECT_TRUE(read.ok() || !fs::exists(at->path())) << at->path();
    }
  }
  fs::path out() const { return root_ / "out"; }
  fs::path log() const { return root_ / "log"; }

  const fs::path root_;
};

TEST_F(Campaign, ACleanTargetGivesNoFindingAndExactlyTheChecksAskedFor) {
  EXPECT_EQ(run(fuzz_arguments("", {"--runs", "1001"})), (Ended{0, 0})) << text_of(log());
  EXPECT_EQ(summary().at("checks"), 1001);
  EXPECT_TRUE(summary().at("findings").empty());
  EXPECT_TRUE(bundles().empty());
}

TEST_F(Campaign, TheSameSeedGivesTheSameCountsWithOneWorker) {
  const auto counts = [&](const char* seed) {
    fs::remove_all(out());
    std::vector<std::string> arguments = fuzz_arguments("", {"--runs", "800", "--seed", seed});
    *std::find(arguments.begin(), arguments.end(), "2") = "1";
    EXPECT_EQ(run(arguments), (Ended{0, 0}));
    return summary().at("checks_by_operator").dump() + summary().at("vacuous").dump();
  };
  const std::string first = counts("7");
  EXPECT_EQ(counts("7"), first);
  EXPECT_NE(counts("8"), first);
}

TEST_F(Campaign, AFindingIsBundledMinimisedReplayedAndListed) {
  EXPECT_EQ(run(fuzz_arguments("wrong", {"--runs", "3000"})), (Ended{0, 1})) << text_of(log());
  ASSERT_FALSE(bundles().empty());
  for (const fs::path& path : bundles()) {
    const Result<Bundle> bundle = read_bundle(path);
    ASSERT_TRUE(bundle.ok()) << bundle.error().what;
    EXPECT_EQ(bundle->smallest.dims.at("N"), 3) << path;
    ASSERT_TRUE(bundle->replay);
    EXPECT_GT(bundle->replay->runs, 0);
    EXPECT_EQ(bundle->replay->same, bundle->replay->runs);
    EXPECT_TRUE(known_signatures(out(), false).contains(signature_of(bundle->finding)));
    ASSERT_TRUE(bundle->recording) << path;
    ASSERT_GE(bundle->recording->inputs.size(), 1u);
    EXPECT_EQ(bundle->recording->inputs[0].shape, (std::vector<std::int64_t>{3}));
    std::set<std::string> outputs;
    for (const StoredTensor& output : bundle->recording->outputs) outputs.insert(output.name);
    if (bundle->finding.experiment == "pair") {
      EXPECT_EQ(outputs, (std::set<std::string>{"target/y", "against/y", "truth/y"}));
    }
    for (const std::string& note : bundle->finding.notes)
      EXPECT_EQ(note.find("not kept"), std::string::npos) << path << note;
    EXPECT_THAT(bundle->environment, HasSubstr("\"file\": \"unruly.so\""));
    EXPECT_THAT(bundle->environment, HasSubstr(hash128(text_of(kUnruly)).hex()));
  }
  EXPECT_TRUE(fs::is_empty(found_folder(out())));
  EXPECT_THAT(text_of(log()), HasSubstr("found: "));
}

TEST_F(Campaign, ALaterOneKnowsWhatIsListedAndGoesOn) {
  ASSERT_EQ(run(fuzz_arguments("wrong", {"--runs", "3000"})), (Ended{0, 1}));
  const std::string list = text_of(findings_list(out()));
  EXPECT_EQ(run(fuzz_arguments("wrong", {"--runs", "500"})), (Ended{0, 1}));
  const std::string later = text_of(findings_list(out()));
  EXPECT_TRUE(later.starts_with(list));
  std::set<std::string> lines;
  std::istringstream stream(later);
  for (std::string line; std::getline(stream, line);) EXPECT_TRUE(lines.insert(line).second) << line;
}

struct Fault {
  const char* option;
  const char* cls;
};
class Deadly : public Campaign, public testing::WithParamInterface<Fault> {};

TEST_P(Deadly, BecomesAFindingAndTheCampaignGoesOn) {
#ifdef __SANITIZE_THREAD__
  // ThreadSanitizer holds signals back in a loop that calls nothing: only the supervisor ends it, after half a minute.
  if (std::string(GetParam().option) == "hang") GTEST_SKIP();
#endif
  EXPECT_EQ(run(fuzz_arguments(GetParam().option, {"--runs", "1500", "--memory", "16"})), (Ended{0, 1}))
      << text_of(log());
  EXPECT_EQ(summary().at("checks"), 1500);
  std::set<std::string> classes;
  for (const fs::path& path : bundles()) {
    const Result<Bundle> bundle = read_bundle(path);
    ASSERT_TRUE(bundle.ok()) << bundle.error().what;
    classes.insert(std::string(name_of(bundle->finding.cls)));
    EXPECT_EQ(bundle->smallest.dims.at("N"), 5);
    ASSERT_TRUE(bundle->recording) << path;
    EXPECT_FALSE(bundle->recording->inputs.empty());
    // Minimised too: no value matters, and no layout.
    EXPECT_EQ(bundle->smallest.inputs.at("x").fill.kind, FillKind::kConstant) << path;
    EXPECT_TRUE(bundle->smallest.layout.empty()) << path;
    EXPECT_EQ(bundle->replay->same, bundle->replay->runs) << path;
  }
  EXPECT_EQ(classes, (std::set<std::string>{GetParam().cls}));
}
INSTANTIATE_TEST_SUITE_P(All, Deadly,
                         testing::Values(Fault{"exit", "crash"}, Fault{"kill", "memory"}, Fault{"hang", "hang"}),
                         [](const auto& fault) { return std::string(fault.param.option); });

TEST_F(Campaign, CtrlCEndsItInOrder) {
  const pid_t process = start(fuzz_arguments("wrong", {}));
  wait_until([&] { return checks() > 0; }, process);
  ::kill(process, SIGINT);
  EXPECT_EQ(wait(process), (Ended{0, 130})) << text_of(log());
  EXPECT_GT(summary().at("checks"), 0);
  expect_whole();
}

// The processes that name the folder on their command line.
std::set<pid_t> processes_of(const fs::path& out) {
  std::set<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (text_of(entry.path() / "cmdline").find(out.string()) != std::string::npos) found.insert(std::stoi(name));
  }
  return found;
}

TEST_F(Campaign, WorkersDieWithTheSupervisorAndWhatIsOnDiskIsWhole) {
  for (int round = 0; round < 4; ++round) {
    const pid_t process = start(fuzz_arguments("wrong", {}));
    const auto before = static_cast<std::uint64_t>(round);
    wait_until([&] { return checks() > before; }, process);
    std::this_thread::sleep_for(std::chrono::milliseconds(37 * round));
    ::kill(process, SIGKILL);
    wait(process);
    while (!processes_of(out()).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    expect_whole();
    fs::remove(out() / "stats.json");
  }
  EXPECT_EQ(run(fuzz_arguments("wrong", {"--runs", "500"})), (Ended{0, 1})) << text_of(log());
  EXPECT_TRUE(fs::is_empty(found_folder(out())));
  EXPECT_FALSE(bundles().empty());
}

class KilledWorker : public Campaign, public testing::WithParamInterface<int> {};

TEST_P(KilledWorker, IsReplacedAndIsNoFinding) {
  const pid_t process = start(fuzz_arguments("", {"--runs", "60000"}));
  wait_until([&] { return checks() > 0; }, process);
  for (const pid_t worker : processes_of(out())) {
    if (worker != process && text_of("/proc/" + std::to_string(worker) + "/comm").starts_with("fusediff-work")) {
      ::kill(worker, GetParam());
    }
  }
  EXPECT_EQ(wait(process), (Ended{0, 0})) << text_of(log());
  EXPECT_GE(summary().at("restarts"), 1);
  EXPECT_TRUE(bundles().empty());
}

INSTANTIATE_TEST_SUITE_P(All, KilledWorker, testing::Values(SIGKILL, SIGTERM));

TEST_F(Campaign, TwoInOneFolderAreRefused) {
  const pid_t process = start(fuzz_arguments("", {}));
  wait_until([&] { return checks() > 0; }, process);
  EXPECT_EQ(run(fuzz_arguments("", {"--runs", "1"})), (Ended{0, 2}));
  EXPECT_THAT(text_of(log()), HasSubstr("another fusediff fuzz runs in this folder"));
  ::kill(process, SIGTERM);
  EXPECT_EQ(wait(process), (Ended{0, 128 + SIGTERM}));
}

TEST_F(Campaign, ATargetThatDiesWhenItIsCalledIsNoDeathOfOurs) {
  EXPECT_EQ(run(fuzz_arguments("die_on_open", {"--runs", "5"})), (Ended{0, 1})) << text_of(log());
  EXPECT_EQ(summary().at("checks"), 5);
  EXPECT_EQ(summary().at("findings").at("crash"), 1);
}

TEST_F(Campaign, AFolderThatCannotBeWrittenIsOneLine) {
  std::vector<std::string> arguments = fuzz_arguments("", {"--runs", "5"});
  *std::find(arguments.begin(), arguments.end(), out().string()) = "/dev/null/out";
  EXPECT_EQ(run(arguments), (Ended{0, 2}));
  const std::string text = text_of(log());
  EXPECT_THAT(text, HasSubstr("fusediff: /dev/null/out"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

// The worker alone, as any libFuzzer program.
TEST_F(Campaign, AWorkerAloneEndsAtAFindingAsACrash) {
  const auto worker = [&](const std::string& option) {
    SpawnRequest request;
    request.program = FUSEDIFF_BIN_DIR "/fusediff-worker";
    request.arguments = {"-seed=1",
                         "-runs=3000",
                         "-artifact_prefix=" + root_.string() + "/",
                         "-ignore_remaining_args=1",
                         "--target",
                         kUnruly,
                         "--target-option",
                         option};
    request.output_file = log().string();
    return wait(*spawn(request));
  };
  EXPECT_EQ(worker(""), (Ended{0, 0})) << text_of(log());
  EXPECT_NE(worker("wrong"), (Ended{0, 0})) << text_of(log());
  std::vector<std::string> artifacts;
  for (const auto& entry : fs::directory_iterator(root_)) {
    if (entry.path().filename().string().starts_with("crash-")) artifacts.push_back(entry.path());
  }
  ASSERT_EQ(artifacts.size(), 1u) << text_of(log());
  EXPECT_EQ(run({"check", artifacts.front(), "--target", kUnruly, "--target-option", "wrong"}), (Ended{0, 1}));
}

TEST_F(Campaign, WhatATargetPrintsStaysOffStdout) {
  const fs::path file = root_ / "case.json";
  ASSERT_TRUE(
      write_file(file, R"({"fusediff_case":1,"op":"copy","dims":{"N":2},"inputs":{"x":{"fill":{"ramp":[0,1]}}}})")
          .ok());
  SpawnRequest request;
  request.program = "/bin/sh";
  request.arguments = {"-c",     "\"$0\" check \"$1\" --target \"$2\" --target-option noise > \"$3\"",
                       kProgram, file,
                       kUnruly,  root_ / "stdout"};
  request.output_file = log().string();
  EXPECT_EQ(wait(*spawn(request)), (Ended{0, 0})) << text_of(log());
  EXPECT_THAT(text_of(root_ / "stdout"), HasSubstr("pass"));
  EXPECT_THAT(text_of(root_ / "stdout"), testing::Not(HasSubstr("the target prints")));
}

}  // namespace
}  // namespace fusediff
