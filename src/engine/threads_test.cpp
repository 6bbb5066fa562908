// threads: what calls in flight do to each other, and what the split of the cause says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using testing::HasSubstr;
using testing::Not;
using toy::check;
using toy::in_short;
using toy::ones;
using toy::Toy;

const std::string kTwo = toy::one_to_one() + R"(, {"name": "add", "paths": ["fused", "unfused"],
  "dims": {"N": {"range": [0, 64]}}, "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32"}],
  "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32"}]})";

std::string mate(int n, int value = 2) {
  return R"({"op": "op", "dims": {"N": )" + std::to_string(n) +
         R"(}, "dtypes": {"x": "f32"}, "inputs": {"x": {"fill": {"constant": )" + std::to_string(value) + "}}}}";
}
Case in_threads(int count, int rounds, const std::string& mates = "") {
  return ones(8, R"({"ramp": [1, 8]})",
              R"(, "experiment": {"threads": {"count": )" + std::to_string(count) + R"(, "rounds": )" +
                  std::to_string(rounds) + R"(, "mates": [)" + mates + "]}}");
}

using Scratch = std::array<std::atomic<float>, 64>;

// Copies x into the scratch and from there, doubled, to y.
fusediff_status through(Scratch& scratch, const fusediff_call& call) {
  const std::int64_t n = toy::count(call.inputs[0]);
  for (std::int64_t i = 0; i < n; ++i)
    scratch[static_cast<std::size_t>(i)].store(static_cast<float>(toy::get(call.inputs[0], i)),
                                               std::memory_order_relaxed);
  for (std::int64_t i = 0; i < n; ++i)
    toy::set(call.outputs[0], i,
             2 * static_cast<double>(scratch[static_cast<std::size_t>(i)].load(std::memory_order_relaxed)));
  return FUSEDIFF_OK;
}

class Threads : public testing::Test {
 protected:
  Threads() : toy_(kTwo) {
    toy_.paths["fused"] = toy_.paths["unfused"] = toy::each([](double x) { return 2 * x; });
  }
  Toy toy_;
};

TEST_F(Threads, AMateThatDiesAloneTakesThoseBehindItOutOfTheCompany) {
  toy_.paths["fused"] = [](const fusediff_call& call) {
    if (toy::count(call.inputs[0]) == 0) ::raise(SIGFPE);
    return toy::each([](double x) { return 2 * x; })(call);
  };
  EXPECT_EQ(in_short(check(toy_, in_threads(4, 8, mate(0) + "," + mate(4) + "," + mate(16)))), "pass");
}

TEST_F(Threads, ACleanPathPasses) {
  EXPECT_EQ(in_short(check(toy_, in_threads(8, 20, mate(4) + "," + mate(16)))), "pass");
  EXPECT_EQ(in_short(check(toy_, in_threads(64, 2))), "pass");
}

TEST_F(Threads, AScratchKeyedByShapeIsCleanForDifferentShapes) {
  static std::array<Scratch, 65> scratches;
  toy_.paths["op:fused"] = [](const fusediff_call& call) {
    return through(scratches[static_cast<std::size_t>(toy::count(call.inputs[0]))], call);
  };
  const Verdict verdict = check(toy_, in_threads(4, 50, mate(8)));
  ASSERT_EQ(in_short(verdict), "contamination y");
  const Finding& f = *verdict.finding;
  EXPECT_THAT(f.conclusion, HasSubstr("another call of the same shape"));
  EXPECT_THAT(f.conclusion, HasSubstr("contexts of their own do not help"));
  EXPECT_THAT(f.conclusion, HasSubstr("add is clean under the same load"));
  EXPECT_GT(f.causes[0].differing, 0);
  EXPECT_THAT(f.columns[1], "alone");
}

// One scratch for all, given to one shape at a time: equal calls write the same values into it and are clean.
TEST_F(Threads, MixedShapesDirtyWhatEqualOnesDoNot) {
  static Scratch scratch;
  toy_.paths["op:fused"] = [](const fusediff_call& call) { return through(scratch, call); };
  const Verdict verdict = check(toy_, in_threads(4, 50, mate(16) + "," + mate(4, 3)));
  ASSERT_EQ(in_short(verdict), "contamination y");
  const Finding& f = *verdict.finding;
  EXPECT_THAT(f.conclusion, HasSubstr("needs at least two different shapes in flight"));
  EXPECT_THAT(f.conclusion, HasSubstr("one after another it is clean"));
  ASSERT_EQ(f.causes.size(), 5u);
  EXPECT_EQ(f.causes[1].differing, 0) << "equal calls";
  EXPECT_EQ(f.causes[3].differing, 0) << "one after another";
}

TEST_F(Threads, AScratchOfTheThreadIsClean) {
  toy_.paths["op:fused"] = [](const fusediff_call& call) {
    thread_local Scratch scratch;
    return through(scratch, call);
  };
  EXPECT_EQ(in_short(check(toy_, in_threads(8, 50, mate(16)))), "pass");
}

TEST_F(Threads, AScratchBehindALockIsClean) {
  static Scratch scratch;
  static std::mutex mutex;
  toy_.paths["op:fused"] = [](const fusediff_call& call) {
    const std::lock_guard lock(mutex);
    return through(scratch, call);
  };
  EXPECT_EQ(in_short(check(toy_, in_threads(8, 50, mate(16)))), "pass");
}

TEST_F(Threads, WhatAnEarlierCallLeavesIsSaidToBeThat) {
  static std::atomic<int> largest{0};
  toy_.open = [] {
    largest = 0;
    return FUSEDIFF_OK;
  };
  toy_.paths["op:fused"] = [](const fusediff_call& call) {
    const int n = static_cast<int>(toy::count(call.inputs[0]));
    const bool wrong = n < largest.load();
    int seen = largest.load();
    while (n > seen && !largest.compare_exchange_weak(seen, n)) {
    }
    toy::each([](double x) { return 2 * x; })(call);
    if (wrong) toy::set(call.outputs[0], 0, 99);
    return FUSEDIFF_OK;
  };
  const Verdict verdict = check(toy_, in_threads(2, 10, mate(16)));
  ASSERT_EQ(in_short(verdict), "contamination y");
  EXPECT_THAT(verdict.finding->conclusion, HasSubstr("calls one after another are enough"));
}

// The branch for an empty batch returns before it writes: what memory held comes out, alone and in flight alike.
TEST_F(Threads, AnUnwrittenOutputIsNoContamination) {
  toy_.paths["op:fused"] = [](const fusediff_call& call) {
    if (toy::count(call.inputs[0]) == 8) return FUSEDIFF_OK;
    return toy::each([](double x) { return 2 * x; })(call);
  };
  EXPECT_THAT(in_short(check(toy_, in_threads(8, 20, mate(16)))), Not(HasSubstr("contamination")));
}

TEST_F(Threads, AMateThatDiffersIsNamed) {
  static Scratch scratch;
  toy_.paths["op:fused"] = [](const fusediff_call& call) {
    if (toy::count(call.inputs[0]) == 8) return toy::each([](double x) { return 2 * x; })(call);
    return through(scratch, call);
  };
  const Verdict verdict = check(toy_, in_threads(4, 50, mate(16, 3) + "," + mate(4, 5)));
  ASSERT_EQ(in_short(verdict), "contamination y");
  ASSERT_FALSE(verdict.finding->notes.empty());
  EXPECT_THAT(verdict.finding->notes[0], HasSubstr("one of the calls beside it"));
}

TEST_F(Threads, APathThatSumsInAnyOrderIsNondeterminism) {
  static std::atomic<int> number{0};
  toy_.paths["op:fused"] = [](const fusediff_call& call) {
    const bool wrong = number++ % 2 == 1;
    toy::each([](double x) { return 2 * x; })(call);
    if (wrong) toy::set(call.outputs[0], 0, 99);
    return FUSEDIFF_OK;
  };
  EXPECT_EQ(in_short(check(toy_, in_threads(4, 4))), "nondeterminism y");
}

TEST_F(Threads, ADeadlockIsAHangWithTheStateOfEachThread) {
  static std::timed_mutex first, second;
  static std::atomic<int> inside{0};
  inside = 0;
  toy_.paths["op:fused"] = [](const fusediff_call& call) {
    const bool small = toy::count(call.inputs[0]) == 8;
    std::timed_mutex& one = small ? first : second;
    std::timed_mutex& other = small ? second : first;
    const std::lock_guard lock(one);
    if (++inside > 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (!other.try_lock_for(std::chrono::seconds(inside > 2 ? 60 : 0))) return FUSEDIFF_OK;
    other.unlock();
    return toy::each([](double x) { return 2 * x; })(call);
  };
  CheckOptions options = toy::quick();
  options.seconds = 1;
  const Verdict verdict = check(toy_, in_threads(2, 50, mate(16)), options);
  ASSERT_EQ(in_short(verdict), "hang");
  EXPECT_THAT(verdict.finding->evidence[0].what, HasSubstr("thread 0: in its call"));
  EXPECT_THAT(verdict.finding->evidence[0].what, HasSubstr("thread 1: in its call"));
}

TEST_F(Threads, MemoryDecidesHowManyThreads) {
  CheckOptions options = toy::quick();
  options.max_bytes = 100;
  const Verdict verdict = check(toy_, in_threads(8, 2), options);
  EXPECT_EQ(verdict.kind, Verdict::Kind::kSkip);
  EXPECT_THAT(verdict.reason, HasSubstr("memory cap"));
}

}  // namespace
}  // namespace fusediff
