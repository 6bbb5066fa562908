// A target in a process of its own: what it does comes back as it would from this process, and what would have ended
// this process ends only its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "run/crew.h"
#include "run/fake_target.h"
#include "run/runner.h"

namespace fusediff {
namespace {

using testing::HasSubstr;

class Isolated : public testing::TestWithParam<const char*> {
 protected:
  Isolated() : loader_({FUSEDIFF_BIN_DIR "/targets"}), runner_({.seconds = 10, .bytes = std::uint64_t{1} << 30}) {
    LoadOptions how;
    how.isolate = true;
    how.options = "noted";
    target_ = load(how);
    op_.name = "copy";
    call_.op = &op_;
    call_.inputs = {fake::tensor("x", {7})};
    call_.outputs = {fake::tensor("y", {7})};
    x_ = fake::ramp(28);
  }

  const Target* load(const LoadOptions& how) {
    const auto loaded = loader_.load(std::string(FIXTURE_DIRECTORY "/") + GetParam() + ".so", how);
    EXPECT_TRUE(loaded.ok()) << loaded.error().what;
    return loaded.ok() ? *loaded : nullptr;
  }

  const Execution& run(const char* how, const Target* target = nullptr) {
    call_.attrs = {{"how", std::string(how)}};
    span_ = x_;
    RunRequest request;
    request.target = target == nullptr ? target_ : target;
    request.path = "fused";
    request.call = &call_;
    request.inputs = {&span_, 1};
    request.keep_context = keep_;
    runner_.run(request, execution_);
    return execution_;
  }
  void works() {
    EXPECT_EQ(run("well").ending, Ending::kOk) << execution_.message;
    EXPECT_EQ(execution_.outputs.at(0), x_);
    EXPECT_FALSE(runner_.tainted());
  }
  bool in_own_memory() const { return std::string_view(GetParam()) == "misbehaves_elsewhere"; }

  TargetLoader loader_;
  Runner runner_;
  const Target* target_ = nullptr;
  Operator op_;
  Call call_;
  std::vector<std::byte> x_;
  std::span<const std::byte> span_;
  Execution execution_;
  bool keep_ = false;
};

TEST_P(Isolated, GivesWhatTheTargetGives) {
  works();
  EXPECT_EQ(target_->name, "misbehaves");
  EXPECT_EQ(execution_.note, "noted");
  EXPECT_TRUE(execution_.overruns.empty());
  EXPECT_TRUE(execution_.changed_inputs.empty());
}

TEST_P(Isolated, ASignalIsTheRunsEndingAndTheNextRunWorks) {
  for (const auto& [how, signal] : {std::pair("aborts", SIGABRT), std::pair("killed", SIGKILL)}) {
    EXPECT_EQ(run(how).ending, Ending::kSignal) << how;
    EXPECT_EQ(execution_.signal, signal) << how;
    EXPECT_EQ(execution_.phase, Phase::kRun) << how;
    works();
  }
  run("aborts");
  EXPECT_EQ(execution_.printed, "last line\n");
}

TEST_P(Isolated, AnExitIsTheRunsEnding) {
  EXPECT_EQ(run("exits").ending, Ending::kExit);
  EXPECT_EQ(execution_.message, "exit code 3");
  works();
}

TEST_P(Isolated, AnExitIsSeenThoughAChildHoldsTheSocket) {
  EXPECT_EQ(run("forks_and_exits").ending, Ending::kExit) << execution_.message;
  works();
}

TEST_P(Isolated, AttributesComeInTheOrderOfTheSchema) {
  call_.attrs = {{"how", std::string("order")}, {"b", std::int64_t{7}}, {"a", std::int64_t{3}}};
  span_ = x_;
  RunRequest request;
  request.target = target_;
  request.path = "fused";
  request.call = &call_;
  request.inputs = {&span_, 1};
  runner_.run(request, execution_);
  ASSERT_EQ(execution_.ending, Ending::kOk) << execution_.message;
  float first = 0;
  std::memcpy(&first, execution_.outputs.at(0).data(), sizeof first);
  EXPECT_EQ(first, 7);
}

TEST_P(Isolated, AKeptContextIsOpenedAgainAfterADeath) {
  keep_ = true;
  works();
  EXPECT_EQ(run("aborts").ending, Ending::kSignal);
  works();
}

TEST_P(Isolated, AHangIsEndedAtTheTimeCap) {
  Runner impatient({.seconds = 0.3, .bytes = 1 << 20});
  call_.attrs = {{"how", std::string("hangs")}};
  span_ = x_;
  RunRequest request;
  request.target = target_;
  request.path = "fused";
  request.call = &call_;
  request.inputs = {&span_, 1};
  impatient.run(request, execution_);
  EXPECT_EQ(execution_.ending, Ending::kHang) << execution_.message;
  EXPECT_FALSE(impatient.tainted());
  call_.attrs = {{"how", std::string("well")}};
  impatient.run(request, execution_);
  EXPECT_EQ(execution_.ending, Ending::kOk) << execution_.message;
}

TEST_P(Isolated, AStrayWriteIsNamedWithItsTensor) {
  run("overruns");
  if (in_own_memory()) {
    ASSERT_EQ(execution_.overruns.size(), 1u) << execution_.message;
    EXPECT_EQ(execution_.overruns[0].tensor, "y");
    EXPECT_EQ(execution_.overruns[0].distance, 1);
  } else {
    ASSERT_EQ(execution_.ending, Ending::kGuardHit) << execution_.message;
    EXPECT_EQ(execution_.guard_hit->tensor, "y");
    EXPECT_EQ(execution_.guard_hit->distance, 1);
    EXPECT_TRUE(execution_.guard_hit->behind);
    EXPECT_EQ(execution_.guard_hit->access, Access::kWrite);
    EXPECT_EQ(execution_.signal, SIGSEGV);
  }
  works();
  run("workspace");
  if (in_own_memory()) {
    ASSERT_EQ(execution_.overruns.size(), 1u);
    EXPECT_EQ(execution_.overruns[0].tensor, "workspace");
  } else {
    // The workspace is aligned to 64 bytes: the byte behind 100 lies in its page.
    EXPECT_EQ(execution_.ending, Ending::kOk) << execution_.message;
    ASSERT_EQ(execution_.overruns.size(), 1u);
    EXPECT_EQ(execution_.overruns[0].tensor, "workspace");
  }
}

TEST_P(Isolated, AStrayReadIsNamedWhereThereAreGuardPages) {
  if (in_own_memory()) GTEST_SKIP() << "the target's own memory has no guard pages";
  run("overreads");
  ASSERT_EQ(execution_.ending, Ending::kGuardHit) << execution_.message;
  EXPECT_EQ(execution_.guard_hit->tensor, "x");
  EXPECT_EQ(execution_.guard_hit->access, Access::kRead);
  works();
}

TEST_P(Isolated, AWriteBeforeATensorAtTheStartOfItsPagesIsNamed) {
  call_.outputs[0].place = Place::kStart;
  run("underruns");
  if (in_own_memory()) {
    ASSERT_EQ(execution_.overruns.size(), 1u);
    EXPECT_FALSE(execution_.overruns[0].behind);
  } else {
    ASSERT_EQ(execution_.ending, Ending::kGuardHit) << execution_.message;
    EXPECT_EQ(execution_.guard_hit->tensor, "y");
    EXPECT_FALSE(execution_.guard_hit->behind);
    EXPECT_EQ(execution_.guard_hit->distance, 4);
  }
}

TEST_P(Isolated, AChangedInputIsSeen) {
  run("changes");
  ASSERT_EQ(execution_.changed_inputs.size(), 1u);
  EXPECT_EQ(execution_.changed_inputs[0].elements, 1);
}

TEST_P(Isolated, AStatusComesWithItsWords) {
  EXPECT_EQ(run("fails").ending, Ending::kFailed);
  EXPECT_EQ(execution_.message, "it did not work");
  LoadOptions how;
  how.isolate = true;
  how.options = "refused";
  EXPECT_EQ(run("well", load(how)).ending, Ending::kRejected);
  EXPECT_EQ(execution_.phase, Phase::kOpen);
  EXPECT_EQ(execution_.message, "no such option");
}

TEST_P(Isolated, WhatItPrintsIsKept) {
  EXPECT_EQ(run("prints").ending, Ending::kOk);
  // A library's buffered line comes when the process ends, if at all; stderr comes at once.
  run("aborts");
  EXPECT_THAT(execution_.printed, HasSubstr("last line"));
}

TEST_P(Isolated, EachTargetHasItsOwnEnvironment) {
  const auto value = [&](const char* line) {
    LoadOptions how;
    how.environment = {line};
    EXPECT_EQ(run("environment", load(how)).ending, Ending::kOk) << execution_.message;
    float first = 0;
    std::memcpy(&first, execution_.outputs.at(0).data(), sizeof first);
    return first;
  };
  EXPECT_EQ(value("MISBEHAVES=3"), 3);
  EXPECT_EQ(value("MISBEHAVES=4"), 4);
  EXPECT_EQ(value("MISBEHAVES=3"), 3);
}

TEST_P(Isolated, TensorsOfManySizesShareTheMemory) {
  for (std::int64_t n = 1; n < 3000; n += 97) {
    call_.inputs = {fake::tensor("x", {n})};
    call_.outputs = {fake::tensor("y", {n})};
    x_ = fake::ramp(static_cast<std::size_t>(n) * 4);
    works();
  }
}

TEST_P(Isolated, ThreadsOfACrewCallItAtOnce) {
  call_.attrs = {{"how", std::string("well")}};
  span_ = x_;
  RunRequest request;
  request.target = target_;
  request.path = "fused";
  request.call = &call_;
  request.inputs = {&span_, 1};
  CrewPlan plan;
  plan.target = target_;
  plan.requests = {&request, 1};
  plan.turns.assign(4, {0, 0, 0, 0, 0});
  plan.nanoseconds = {1000};
  const auto wrong = [&](std::size_t, const Execution& e) { return e.ending != Ending::kOk || e.outputs[0] != x_; };
  CrewOutcome outcome = runner_.run_together(plan, wrong);
  EXPECT_EQ(outcome.runs, 20u);
  EXPECT_EQ(outcome.requests[0].notable, 0);
  EXPECT_FALSE(outcome.context.has_value());
  // One that dies takes the calls beside it along, and nothing else.
  call_.attrs = {{"how", std::string("aborts")}};
  outcome = runner_.run_together(plan, wrong);
  ASSERT_TRUE(outcome.requests[0].first.has_value());
  EXPECT_EQ(outcome.requests[0].first->ending, Ending::kSignal);
  works();
}

TEST_P(Isolated, AnIdleHostThatIsKilledIsStartedAgain) {
  works();
  target_->host->end();
  works();
}

INSTANTIATE_TEST_SUITE_P(Memory, Isolated, testing::Values("misbehaves", "misbehaves_elsewhere"),
                         [](const auto& one) { return std::string(one.param); });

TEST(IsolatedLoading, SaysInOneLineWhatCannotBeHosted) {
  TargetLoader loader({FUSEDIFF_BIN_DIR "/targets"});
  LoadOptions how;
  how.isolate = true;
  const auto none = loader.load("/nonexistent/x.so", how);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().what, HasSubstr("there is no such library"));
  const std::string text = testing::TempDir() + "no_library.so";
  std::filesystem::remove(text);
  std::filesystem::copy_file(FUSEDIFF_SOURCE_DIR "/README.md", text);
  const auto no_library = loader.load(text, how);
  ASSERT_FALSE(no_library.ok());
  EXPECT_EQ(no_library.error().what.find('\n'), std::string::npos);
  EXPECT_THAT(no_library.error().what, HasSubstr("no_library.so"));
  TargetLoader nowhere({testing::TempDir()});
  const auto no_host = nowhere.load(FIXTURE_DIRECTORY "/misbehaves.so", how);
  ASSERT_FALSE(no_host.ok());
  EXPECT_THAT(no_host.error().what, HasSubstr("fusediff-host"));
}

}  // namespace
}  // namespace fusediff
