// The reruns that tell what a suspicion is: guard hits again with the tensor moved away, fills changed one at a time,
// each side against itself.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/judge.h"
#include "engine/side.h"
#include "model/finding.h"
#include "run/runner.h"

namespace fusediff {

// Counts runs and their time, and says when the time for explaining is up.
class Budget {
 public:
  explicit Budget(double seconds)
      : end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds))) {}
  bool left() const { return std::chrono::steady_clock::now() < end_; }
  void count(const Execution& execution) {
    ++runs;
    nanoseconds += execution.nanoseconds;
  }
  std::uint64_t runs = 0;
  std::uint64_t nanoseconds = 0;

 private:
  std::chrono::steady_clock::time_point end_;
};

// Everything that a rerun needs to know of the case.
struct Scene {
  Runner& runner;
  const Call& call;  // the target side's spelling
  const std::vector<std::span<const std::byte>>& inputs;
  const std::array<const SideRun*, 2>& sides;
  const std::array<const Execution*, 2>& first;  // the executions that raised the suspicion
  const std::array<Fills, 2>& fills;
  Budget& budget;
};

// The side again, with the tensor whose guard page was hit at `middle`: what shows then.
void rerun_in_the_middle(const Scene& scene, Side side, Judgement& judgement);

// Repeats the side with one fill changed at a time. Adds unwritten, dirty and overread.
void rerun_with_other_fills(const Scene& scene, Side side, Judgement& judgement);

// What is compared, to be made again on fresh contexts: a side may be more than one call.
struct Again {
  const Call& call;  // whose outputs the executions hold
  std::array<const Execution*, 2> first;
  std::array<bool, 2> deterministic;
  std::array<std::string, 2> who;  // the path, in a sentence about it
  std::function<Execution(Side, bool pinned)> run;
  const Budget& budget;
  bool pin_half = true;  // false: on how many CPUs is a matter of the sides
};

// Reruns both sides, half of the runs pinned to one CPU (see Again): up to 16 times, and up to 300 where the first
// difference did not come back. Adds nondeterminism and the rates. True: the sides differed in every rerun.
bool rerun_alike(const Again& again, const std::vector<bool>& compared, Judgement& judgement,
                 std::array<Rate, 2>& rates);
bool rerun_alike(const Scene& scene, const std::vector<bool>& compared, Judgement& judgement,
                 std::array<Rate, 2>& rates);

// That a path disagrees with itself alone. output: where it first does, as differs_from_itself() says it.
Evidence nondeterminism(const Call& call, std::size_t output, Side side, const std::string& path, const Rate& rate);

// Did it end by a status of its own? After anything else a rerun may end the process.
bool may_run_again(Ending ending);

// One run of the side with another output fill: true when an element still holds its fill, or the outputs changed.
// Cheap check for a side that only looks unwritten.
bool fill_comes_back(const Scene& scene, Side side);

}  // namespace fusediff
