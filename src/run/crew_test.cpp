// Several threads in one target at once: whose calls they are, what they do to each other, and how each fault ends.
#include "run/crew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <set>
#include <thread>

#include "run/fake_target.h"

namespace fusediff {
namespace {

using fake::behaviour;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// Two calls of a fake operator, of 8 and of 16 elements.
class Crew : public testing::Test {
 protected:
  Crew() : abi_(fake::table()), runner_(RunLimits{.seconds = 1, .bytes = 1 << 20}) {
    behaviour = {};
    target_.abi = &abi_;
    op_.name = "fake_op";
    for (const std::int64_t size : {8, 16}) {
      Call& call = calls_[size == 8 ? 0 : 1];
      call.op = &op_;
      call.inputs = {fake::tensor("x", {size})};
      call.outputs = {fake::tensor("y", {size})};
    }
    for (std::size_t r = 0; r < 2; ++r) {
      bytes_[r] = fake::ramp(stored_bytes(calls_[r].inputs[0]), static_cast<unsigned>(1 + r));
      spans_[r] = bytes_[r];
      requests_[r].target = &target_;
      requests_[r].path = "fused";
      requests_[r].call = &calls_[r];
      requests_[r].inputs = {&spans_[r], 1};
    }
    plan_.target = &target_;
    plan_.requests = requests_;
    plan_.nanoseconds = {1000, 1000};
  }
  ~Crew() override { behaviour = {}; }

  void turns(std::size_t threads, std::size_t rounds, bool mixed) {
    plan_.turns.assign(threads, {});
    for (std::size_t t = 0; t < threads; ++t) {
      for (std::size_t r = 0; r < rounds; ++r) plan_.turns[t].push_back(mixed ? (t + r) % 2 : 0);
    }
  }

  CrewOutcome run() {
    return runner_.run_together(plan_, [this](std::size_t request, const Execution& execution) {
      return execution.ending != Ending::kOk || execution.outputs[0] != bytes_[request];
    });
  }

  fusediff_target_v1 abi_;
  Target target_;
  Operator op_;
  std::array<Call, 2> calls_;
  std::array<std::vector<std::byte>, 2> bytes_;
  std::array<std::span<const std::byte>, 2> spans_;
  std::array<RunRequest, 2> requests_;
  CrewPlan plan_;
  Runner runner_;
};

TEST_F(Crew, MakesEveryCallWithBuffersOfItsOwn) {
  behaviour.run = fake::copy;
  turns(8, 50, true);
  const CrewOutcome outcome = run();
  EXPECT_EQ(outcome.requests[0].calls, 200);
  EXPECT_EQ(outcome.requests[1].calls, 200);
  EXPECT_EQ(outcome.requests[0].notable + outcome.requests[1].notable, 0);
  EXPECT_EQ(outcome.runs, 400u);
  EXPECT_FALSE(outcome.context);
  EXPECT_THAT(outcome.stuck, SizeIs(0));
  EXPECT_EQ(behaviour.opened, 1);
  EXPECT_EQ(behaviour.closed, 1);
  EXPECT_FALSE(runner_.tainted());
}

TEST_F(Crew, OneThreadMakesItsCallsInTurnOnOneContext) {
  std::vector<std::int64_t> seen;
  behaviour.run = [&](const fusediff_call& call) {
    seen.push_back(call.inputs[0].shape[0]);
    return fake::copy(call);
  };
  plan_.turns = {{1, 0, 0, 1}};
  run();
  EXPECT_THAT(seen, ElementsAre(16, 8, 8, 16));
  EXPECT_EQ(behaviour.opened, 1);
}

TEST_F(Crew, OpensAContextForEachThreadWhereAsked) {
  std::atomic<int> opened{0};
  behaviour.open = [&](const char*, void**) {
    ++opened;
    return FUSEDIFF_OK;
  };
  behaviour.run = fake::copy;
  turns(6, 3, false);
  plan_.context_each = true;
  EXPECT_EQ(run().requests[0].calls, 18);
  EXPECT_EQ(opened.load(), 6);
}

// A scratch that all calls share, filled and read within some hundred nanoseconds: without the pauses within calls two
// of them practically never meet there on a machine with few CPUs.
TEST_F(Crew, CallsMeetInTheMiddle) {
  static std::array<std::atomic<std::uint32_t>, 16> scratch;
  behaviour.run = [](const fusediff_call& call) {
    const auto* x = static_cast<const std::uint32_t*>(call.inputs[0].data);
    auto* y = static_cast<std::uint32_t*>(call.outputs[0].data);
    const auto count = static_cast<std::size_t>(call.inputs[0].shape[0]);
    for (std::size_t i = 0; i < count; ++i) scratch[i].store(x[i], std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) y[i] = scratch[i].load(std::memory_order_relaxed);
    return FUSEDIFF_OK;
  };
  turns(4, 500, true);
  const CrewOutcome outcome = run();
  EXPECT_GT(outcome.requests[0].notable + outcome.requests[1].notable, 0);
}

TEST_F(Crew, KeepsTheFirstNotableCallAndCountsDigests) {
  std::atomic<int> number{0};
  behaviour.run = [&](const fusediff_call& call) {
    fake::copy(call);
    const int mine = number++;
    if (mine % 4 == 1) static_cast<unsigned char*>(call.outputs[0].data)[0] = 0xEE;
    return FUSEDIFF_OK;
  };
  plan_.turns = {{0, 0, 0, 0, 0, 0, 0, 0}};
  const CrewOutcome outcome = run();
  EXPECT_EQ(outcome.requests[0].notable, 2);
  EXPECT_THAT(outcome.requests[0].digests, SizeIs(1));
  ASSERT_TRUE(outcome.requests[0].first);
  EXPECT_EQ(outcome.requests[0].first->outputs[0][0], std::byte{0xEE});
}

TEST_F(Crew, ADeadlockEndsWithTheStateOfEachThread) {
  static std::timed_mutex first, second;
  std::atomic<int> inside{0};
  behaviour.run = [&](const fusediff_call& call) {
    const bool small = call.inputs[0].shape[0] == 8;
    std::timed_mutex& one = small ? first : second;
    std::timed_mutex& other = small ? second : first;
    one.lock();
    ++inside;
    while (inside < 2) std::this_thread::yield();
    if (other.try_lock_for(std::chrono::seconds(60))) other.unlock();
    one.unlock();
    return FUSEDIFF_OK;
  };
  plan_.turns = {{0}, {1}};
  const CrewOutcome outcome = run();
  EXPECT_THAT(outcome.stuck, ElementsAre(HasSubstr("thread 0: in its call 1 of 1 (fake_op)"),
                                         HasSubstr("thread 1: in its call 1 of 1 (fake_op)")));
  EXPECT_TRUE(runner_.tainted());
}

TEST_F(Crew, ACrashOnOneThreadEndsTheCrew) {
  std::atomic<int> number{0};
  behaviour.run = [&](const fusediff_call& call) {
    if (number++ == 20) std::raise(SIGSEGV);
    return fake::copy(call);
  };
  turns(4, 1000, false);
  const CrewOutcome outcome = run();
  ASSERT_TRUE(outcome.requests[0].first);
  EXPECT_EQ(outcome.requests[0].first->ending, Ending::kSignal);
  EXPECT_LT(outcome.requests[0].calls, 4000);
  EXPECT_TRUE(runner_.tainted());
}

TEST_F(Crew, AFaultOnAThreadOfTheTargetIsSeen) {
  std::atomic<bool> started{false};
  behaviour.run = [&](const fusediff_call& call) {
    if (!started.exchange(true)) std::thread([] { std::raise(SIGFPE); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return fake::copy(call);
  };
  turns(2, 1, false);
  const CrewOutcome outcome = run();
  ASSERT_TRUE(outcome.context);
  EXPECT_EQ(outcome.context->ending, Ending::kSignal);
  EXPECT_THAT(outcome.context->message, HasSubstr("SIGFPE, on a thread that the target started"));
}

TEST_F(Crew, AContextThatDoesNotOpenIsReported) {
  behaviour.open = [](const char*, void**) { return FUSEDIFF_FAILED; };
  turns(2, 1, false);
  const CrewOutcome outcome = run();
  ASSERT_TRUE(outcome.context);
  EXPECT_EQ(outcome.context->phase, Phase::kOpen);
  EXPECT_EQ(outcome.requests[0].calls, 0);
}

// A slow call is no hang as long as others come back.
TEST_F(Crew, ManyThreadsMayTakeLongerThanOneRun) {
  behaviour.run = [](const fusediff_call& call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return fake::copy(call);
  };
  turns(2, 50, false);
  const CrewOutcome outcome = run();
  EXPECT_EQ(outcome.requests[0].calls, 100);
  EXPECT_THAT(outcome.stuck, SizeIs(0));
}

}  // namespace
}  // namespace fusediff
