// What a misbehaving target does to a run: each fault is caught, named, and leaves the process usable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>

#include "run/fake_target.h"
#include "run/runner.h"

namespace fusediff {
namespace {

using fake::behaviour;
using fake::Bench;
using fake::tensor;
using testing::HasSubstr;

#if defined(__x86_64__) || defined(__aarch64__)
constexpr bool kAccessKnown = true;
#else
constexpr bool kAccessKnown = false;
#endif

void poke(void* data, std::ptrdiff_t at, unsigned char value = 0x99) {
  volatile unsigned char* byte = static_cast<unsigned char*>(data) + at;
  *byte = value;
}
unsigned char peek(const void* data, std::ptrdiff_t at) {
  const volatile unsigned char* byte = static_cast<const unsigned char*>(data) + at;
  return *byte;
}

// Whether the runner still works after what happened before.
void expect_usable(Bench& bench) {
  behaviour.run = [](const fusediff_call&) { return FUSEDIFF_OK; };
  behaviour.open = nullptr;
  behaviour.workspace = nullptr;
  behaviour.close = nullptr;
  const Execution& execution = bench.run();
  EXPECT_EQ(execution.ending, Ending::kOk) << execution.message;
  EXPECT_TRUE(execution.overruns.empty());
  EXPECT_TRUE(execution.changed_inputs.empty());
  EXPECT_FALSE(execution.guard_hit.has_value());
}

TEST(RunnerFaults, AWriteBehindHitsTheGuardPage) {
  Bench bench;
  bench.add_input(tensor("x", {10}));
  bench.add_output(tensor("y", {5}, DType::kU8));
  behaviour.run = [](const fusediff_call& call) {
    poke(call.inputs[0].data, 0);  // found although the call never returned
    poke(call.outputs[0].data, -3);
    poke(call.outputs[0].data, 5 + 6);
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  ASSERT_EQ(execution.ending, Ending::kGuardHit) << execution.message;
  EXPECT_EQ(execution.signal, SIGSEGV);
  EXPECT_EQ(execution.phase, Phase::kRun);
  ASSERT_TRUE(execution.guard_hit.has_value());
  EXPECT_EQ(execution.guard_hit->tensor, "y");
  EXPECT_TRUE(execution.guard_hit->behind);
  EXPECT_EQ(execution.guard_hit->distance, 7);
  if (kAccessKnown) {
    EXPECT_EQ(execution.guard_hit->access, Access::kWrite);
  }
  ASSERT_EQ(execution.changed_inputs.size(), 1u);
  EXPECT_EQ(execution.changed_inputs[0].first, 0);
  ASSERT_EQ(execution.overruns.size(), 1u);
  EXPECT_EQ(execution.overruns[0].tensor, "y");
  EXPECT_FALSE(execution.overruns[0].behind);
  EXPECT_EQ(execution.overruns[0].distance, 3);
  EXPECT_TRUE(bench.runner.tainted());
  expect_usable(bench);
}

TEST(RunnerFaults, AReadBehindAnInputHitsTheGuardPage) {
  Bench bench;
  bench.add_input(tensor("x", {10}));
  bench.add_output(tensor("y", {4}));
  behaviour.run = [](const fusediff_call& call) {
    poke(call.outputs[0].data, 0, peek(call.inputs[0].data, 40));
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  ASSERT_EQ(execution.ending, Ending::kGuardHit);
  EXPECT_EQ(execution.guard_hit->tensor, "x");
  EXPECT_TRUE(execution.guard_hit->behind);
  EXPECT_EQ(execution.guard_hit->distance, 1);
  if (kAccessKnown) {
    EXPECT_EQ(execution.guard_hit->access, Access::kRead);
  }
  bench.request.middle = "x";  // there the read goes through, to the guard bytes
  const Execution& again = bench.run();
  EXPECT_EQ(again.ending, Ending::kOk);
  EXPECT_EQ(again.outputs[0][0], kFirstFills.guard);
}

TEST(RunnerFaults, AWriteBeforeHitsTheGuardPageInFront) {
  Bench bench;
  Tensor y = tensor("y", {6}, DType::kI64);
  y.place = Place::kStart;
  y.offset = 2;
  bench.add_output(y);
  behaviour.run = [](const fusediff_call& call) {
    poke(call.outputs[0].data, -17);
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  ASSERT_EQ(execution.ending, Ending::kGuardHit);
  EXPECT_EQ(execution.guard_hit->tensor, "y");
  EXPECT_FALSE(execution.guard_hit->behind);
  EXPECT_EQ(execution.guard_hit->distance, 17);
}

TEST(RunnerFaults, OneByteOutsideIsSeenInTheSlack) {
  for (const Place place : {Place::kEnd, Place::kStart, Place::kMiddle}) {
    for (const bool behind : {false, true}) {
      if (place == (behind ? Place::kEnd : Place::kStart)) continue;  // a guard page lies there
      for (const bool on_input : {false, true}) {
        Bench bench;
        Tensor x = tensor("x", {10});
        Tensor y = tensor("y", {10});
        x.place = y.place = place;
        bench.add_input(x);
        bench.add_output(y);
        behaviour.run = [&](const fusediff_call& call) {
          poke((on_input ? call.inputs : call.outputs)[0].data, behind ? 40 : -1);
          return FUSEDIFF_OK;
        };
        const Execution& execution = bench.run();
        ASSERT_EQ(execution.ending, Ending::kOk);
        ASSERT_EQ(execution.overruns.size(), 1u);
        EXPECT_EQ(execution.overruns[0].tensor, on_input ? "x" : "y");
        EXPECT_EQ(execution.overruns[0].is_output, !on_input);
        EXPECT_FALSE(execution.overruns[0].gap);
        EXPECT_EQ(execution.overruns[0].behind, behind);
        EXPECT_EQ(execution.overruns[0].distance, 1);
        EXPECT_EQ(execution.overruns[0].bytes, 1);
        EXPECT_TRUE(execution.changed_inputs.empty());
        expect_usable(bench);
      }
    }
  }
}

TEST(RunnerFaults, EveryByteOfTheSlackIsWatched) {
  Bench bench;
  bench.add_output(tensor("y", {100}, DType::kU8));
  for (std::ptrdiff_t before = 1; before <= 4096 - 100; ++before) {
    behaviour.run = [&](const fusediff_call& call) {
      poke(call.outputs[0].data, -before);
      return FUSEDIFF_OK;
    };
    const Execution& execution = bench.run();
    ASSERT_EQ(execution.overruns.size(), 1u) << before;
    ASSERT_EQ(execution.overruns[0].distance, before);
  }
  expect_usable(bench);
}

TEST(RunnerFaults, GapsOfStridedTensorsAreWatched) {
  for (const bool on_input : {false, true}) {
    Bench bench;
    Tensor x = tensor("x", {3, 4});
    x.stride = {8, 1};
    Tensor y = x;
    y.name = "y";
    bench.add_input(x);
    bench.add_output(y);
    behaviour.run = [&](const fusediff_call& call) {
      fake::copy(call);
      poke((on_input ? call.inputs : call.outputs)[0].data, 17);
      poke((on_input ? call.inputs : call.outputs)[0].data, 50);
      return FUSEDIFF_OK;
    };
    const Execution& execution = bench.run();
    EXPECT_EQ(execution.outputs[0], bench.inputs[0]);
    EXPECT_TRUE(execution.changed_inputs.empty());
    ASSERT_EQ(execution.overruns.size(), 1u);
    EXPECT_EQ(execution.overruns[0].tensor, on_input ? "x" : "y");
    EXPECT_TRUE(execution.overruns[0].gap);
    EXPECT_EQ(execution.overruns[0].distance, 17);
    EXPECT_EQ(execution.overruns[0].bytes, 2);
    expect_usable(bench);
  }
}

TEST(RunnerFaults, AGapOfAnOutputOnItsInputIsWatched) {
  Bench bench;
  Tensor x = tensor("x", {3, 4});
  x.stride = {8, 1};
  Tensor y = x;
  y.name = "y";
  y.on = 0;
  bench.add_input(x);
  bench.add_output(y);
  behaviour.run = [&](const fusediff_call& call) {
    poke(call.outputs[0].data, 0);
    poke(call.outputs[0].data, 16);
    poke(call.outputs[0].data, -1);
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  EXPECT_TRUE(execution.changed_inputs.empty());
  ASSERT_EQ(execution.overruns.size(), 2u);
  EXPECT_EQ(execution.overruns[0].tensor, "y");
  EXPECT_TRUE(execution.overruns[0].is_output);
  EXPECT_EQ(execution.overruns[0].distance, 1);
  EXPECT_TRUE(execution.overruns[1].gap);
  EXPECT_EQ(execution.overruns[1].distance, 16);
}

TEST(RunnerFaults, ChangedInputsAreCounted) {
  for (const bool strided : {false, true}) {
    Bench bench;
    Tensor x = tensor("x", {4, 4});
    if (strided) x.stride = {2, 9};
    bench.add_input(tensor("w", {4}));
    bench.add_input(x);
    bench.add_output(tensor("y", {4}));
    behaviour.run = [](const fusediff_call& call) {
      for (const std::int64_t n : {6, 7, 13}) poke(call.inputs[1].data, fake::offset_of(call.inputs[1], n) * 4 + 3);
      return FUSEDIFF_OK;
    };
    const Execution& execution = bench.run();
    ASSERT_EQ(execution.changed_inputs.size(), 1u);
    EXPECT_EQ(execution.changed_inputs[0].input, 1);
    EXPECT_EQ(execution.changed_inputs[0].first, 6);
    EXPECT_EQ(execution.changed_inputs[0].elements, 3);
    EXPECT_TRUE(execution.overruns.empty());
    expect_usable(bench);
  }
}

TEST(RunnerFaults, TheWorkspaceIsGuardedToo) {
  Bench bench;
  behaviour.workspace = [](const fusediff_call&, std::size_t& bytes) {
    bytes = 128;
    return FUSEDIFF_OK;
  };
  behaviour.run = [](const fusediff_call& call) {
    poke(call.workspace, 128);
    return FUSEDIFF_OK;
  };
  const Execution& hit = bench.run();
  ASSERT_EQ(hit.ending, Ending::kGuardHit);
  EXPECT_EQ(hit.guard_hit->tensor, "workspace");
  EXPECT_EQ(hit.guard_hit->distance, 1);
  bench.request.middle = "workspace";
  behaviour.run = [](const fusediff_call& call) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(call.workspace) % 64, 0u);
    poke(call.workspace, 129);
    poke(call.workspace, -64);
    return FUSEDIFF_OK;
  };
  const Execution& slack = bench.run();
  ASSERT_EQ(slack.overruns.size(), 2u);
  EXPECT_EQ(slack.overruns[0].tensor, "workspace");
  EXPECT_FALSE(slack.overruns[0].behind);
  EXPECT_EQ(slack.overruns[0].distance, 64);
  EXPECT_TRUE(slack.overruns[1].behind);
  EXPECT_EQ(slack.overruns[1].distance, 2);
}

TEST(RunnerFaults, SignalsAreNamed) {
  const std::pair<int, const char*> expected[] = {
      {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGBUS, "SIGBUS"}, {SIGTRAP, "SIGTRAP"}, {SIGSEGV, "SIGSEGV"}};
  for (const auto& [signal, name] : expected) {
    Bench bench;
    bench.add_output(tensor("y", {2}));
    behaviour.run = [number = signal](const fusediff_call&) {
      raise(number);
      return FUSEDIFF_OK;
    };
    const Execution& execution = bench.run();
    EXPECT_EQ(execution.ending, Ending::kSignal);
    EXPECT_EQ(execution.signal, signal);
    EXPECT_THAT(execution.message, HasSubstr(name));
    EXPECT_TRUE(bench.runner.tainted());
    expect_usable(bench);
  }
}

#if defined(__x86_64__)
TEST(RunnerFaults, ADivisionByZeroIsCaught) {
  Bench bench;
  behaviour.run = [](const fusediff_call&) {
    int quotient = 1;
    int remainder = 0;
    asm volatile("idivl %2" : "+a"(quotient), "+d"(remainder) : "r"(0) : "cc");
    return FUSEDIFF_OK;
  };
  EXPECT_EQ(bench.run().ending, Ending::kSignal);
  EXPECT_EQ(bench.execution.signal, SIGFPE);
  expect_usable(bench);
}
#endif

TEST(RunnerFaults, AbortIsCaughtAgainAndAgain) {
  Bench bench;
  for (int i = 0; i < 3; ++i) {
    behaviour.run = [](const fusediff_call&) -> fusediff_status { std::abort(); };
    EXPECT_EQ(bench.run().ending, Ending::kSignal);
    EXPECT_EQ(bench.execution.signal, SIGABRT);
  }
  expect_usable(bench);
}

TEST(RunnerFaults, ANullPointerIsASignalAndNoGuardHit) {
  Bench bench;
  bench.add_output(tensor("y", {0}));
  behaviour.run = [](const fusediff_call& call) {
    volatile std::uintptr_t near_null = reinterpret_cast<std::uintptr_t>(call.outputs[0].data) + 8;
    poke(reinterpret_cast<void*>(near_null), 0);
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  EXPECT_EQ(execution.ending, Ending::kSignal);
  EXPECT_FALSE(execution.guard_hit.has_value());
  EXPECT_THAT(execution.message, HasSubstr("0x8 (near NULL)"));
}

__attribute__((noinline)) int descend(volatile int* depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(*depth);
  *depth = *depth + 1;
  return *depth < 0 ? 0 : descend(depth) + frame[0];
}

TEST(RunnerFaults, AStackOverflowIsCaught) {
  Bench bench;
  bench.add_output(tensor("y", {2}));
  behaviour.run = [](const fusediff_call&) {
    volatile int depth = 0;
    return descend(&depth) == 0 ? FUSEDIFF_OK : FUSEDIFF_FAILED;
  };
  const Execution& execution = bench.run();
  EXPECT_EQ(execution.ending, Ending::kSignal);
  EXPECT_THAT(execution.message, HasSubstr("stack overflow"));
  expect_usable(bench);
}

TEST(RunnerFaults, ExceptionsAreCaughtInEveryPhase) {
  Bench bench;
  bench.add_output(tensor("y", {2}));
  behaviour.run = [](const fusediff_call&) -> fusediff_status { throw std::runtime_error("what it says"); };
  EXPECT_EQ(bench.run().ending, Ending::kException);
  EXPECT_EQ(bench.execution.message, "what it says");
  EXPECT_EQ(behaviour.closed, 1);
  behaviour.run = [](const fusediff_call&) -> fusediff_status { throw 42; };
  EXPECT_EQ(bench.run().ending, Ending::kException);
  behaviour.run = [](const fusediff_call&) -> fusediff_status { throw std::bad_alloc(); };
  EXPECT_EQ(bench.run().ending, Ending::kMemory);
  expect_usable(bench);
  behaviour.open = [](const char*, void**) -> fusediff_status { throw std::runtime_error("open"); };
  EXPECT_EQ(bench.run().phase, Phase::kOpen);
  behaviour.open = nullptr;
  behaviour.workspace = [](const fusediff_call&, std::size_t&) -> fusediff_status { throw std::runtime_error("ws"); };
  EXPECT_EQ(bench.run().phase, Phase::kWorkspace);
  behaviour.workspace = nullptr;
  behaviour.close = [](void*) { throw std::runtime_error("close"); };
  EXPECT_EQ(bench.run().phase, Phase::kClose);
  EXPECT_EQ(bench.execution.ending, Ending::kException);
  EXPECT_FALSE(bench.runner.tainted());
  expect_usable(bench);
}

TEST(RunnerFaults, AnEndlessLoopIsAHang) {
  Bench bench(RunLimits{.seconds = 0.2});
  bench.add_output(tensor("y", {2}));
  for (int i = 0; i < 2; ++i) {
    behaviour.run = [](const fusediff_call& call) {
      for (volatile bool on = true; on;) {
        poke(call.outputs[0].data, 0);
        ::usleep(100);  // ThreadSanitizer delivers asynchronous signals in blocking calls only
      }
      return FUSEDIFF_OK;
    };
    const Execution& execution = bench.run();
    EXPECT_EQ(execution.ending, Ending::kHang);
    EXPECT_EQ(execution.phase, Phase::kRun);
    EXPECT_THAT(execution.message, HasSubstr("0.2 s"));
    EXPECT_TRUE(bench.runner.tainted());
  }
  expect_usable(bench);
}

TEST(RunnerFaults, LongButTimelyRunsAreLeftAlone) {
  using Clock = std::chrono::steady_clock;
  const std::chrono::milliseconds cap(100);
  Bench bench(RunLimits{.seconds = 0.1});
  bench.add_output(tensor("y", {2}));
  behaviour.run = [](const fusediff_call&) {
    ::usleep(4000);
    return FUSEDIFF_OK;
  };
  for (int i = 0; i < 60; ++i) {  // together more than twice the cap
    const Clock::time_point start = Clock::now();
    const Ending ending = bench.run().ending;
    // A busy machine may stop the thread for longer than the cap: then a hang is right.
    ASSERT_TRUE(ending == Ending::kOk || Clock::now() - start >= cap);
  }
}

TEST(RunnerFaults, AFaultOnAnotherThreadEndsTheRun) {
  Bench bench(RunLimits{.seconds = 5});
  bench.add_output(tensor("y", {2}));
  behaviour.run = [](const fusediff_call& call) {
    std::thread worker([&] { poke(call.outputs[0].data, 8); });
    worker.join();
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  ASSERT_EQ(execution.ending, Ending::kGuardHit) << execution.message;
  EXPECT_EQ(execution.guard_hit->tensor, "y");
  EXPECT_EQ(execution.guard_hit->distance, 1);
  EXPECT_THAT(execution.message, HasSubstr("thread that the target started"));
  EXPECT_TRUE(bench.runner.tainted());
  expect_usable(bench);
}

TEST(RunnerFaults, TooMuchMemoryIsRefusedBeforeItIsTaken) {
  Bench bench(RunLimits{.seconds = 10, .bytes = 1 << 20});
  bench.add_output(tensor("y", {1000}));
  behaviour.workspace = [](const fusediff_call&, std::size_t& bytes) {
    bytes = std::size_t{1} << 50;
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  EXPECT_EQ(execution.ending, Ending::kMemory);
  EXPECT_EQ(execution.phase, Phase::kWorkspace);
  EXPECT_EQ(execution.workspace_bytes, std::size_t{1} << 50);
  EXPECT_THAT(execution.message, HasSubstr("1125899906842624 bytes of workspace"));
  EXPECT_EQ(execution.outputs[0].size(), 4000u);
  behaviour.workspace = nullptr;
  bench.call.outputs[0] = tensor("y", {1 << 20});
  EXPECT_EQ(bench.run().ending, Ending::kMemory);
  EXPECT_THAT(bench.execution.message, HasSubstr("4194304 bytes, the cap is 1048576"));
  EXPECT_FALSE(bench.runner.tainted());
  bench.call.outputs[0] = tensor("y", {1000});
  expect_usable(bench);
}

TEST(RunnerFaults, AKeptContextIsDroppedAfterAFault) {
  Bench bench;
  bench.add_output(tensor("y", {2}));
  bench.request.keep_context = true;
  bench.run();
  behaviour.run = [](const fusediff_call&) {
    raise(SIGSEGV);
    return FUSEDIFF_OK;
  };
  bench.run();
  EXPECT_EQ(behaviour.closed, 0);
  expect_usable(bench);
  EXPECT_EQ(behaviour.opened, 2);
}

TEST(RunnerFaultsDeathTest, ASignalOutsideOfARunIsNotOurs) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  Bench bench;
  bench.add_output(tensor("y", {2}));
  bench.run();
  EXPECT_DEATH(raise(SIGABRT), "");
}

}  // namespace
}  // namespace fusediff
