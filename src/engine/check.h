// check(): the one function that decides what a bug is. Every command, the worker and the minimiser call it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/case.h"
#include "model/execution.h"
#include "model/finding.h"
#include "model/recording.h"
#include "run/runner.h"
#include "target/target.h"

namespace fusediff {

// One side of a comparison.
struct PathOf {
  const Target* target = nullptr;
  std::string path;
};

struct Comparison {
  std::array<PathOf, 2> sides;  // [Side]
  const Target* fallback =
      nullptr;  // the built-in target, for truth and saved tensors that the sides cannot give; may be null
};

struct CheckOptions {
  double seconds = 10;                               // of one run, and again for all reruns that explain a finding
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  // of all tensors of a run
  bool outside = false;                              // call what `where` forbids; it must be REJECTED
  bool keep_context = false;
  bool feedback = false;  // fill in CheckResult::features
  // Signatures that are explained already: such a finding is returned without reruns, influence and hashes.
  std::function<bool(const std::string& signature)> is_known;
};

// Coarse facts of a check for the fuzzer's feedback; a small number each, the meaning is the field's.
struct Features {
  std::array<std::uint8_t, 2> ending{};  // Ending
  std::uint8_t smallest_gap = 255;       // log2 of the smallest boundary gap in ULP of any decision; 255: none
  std::uint8_t max_ulp = 0;              // log2 bucket of the largest ULP distance between the sides
  std::uint8_t differing_share = 0;      // log2 bucket of the share of differing elements; 0: none
  std::uint8_t shape_class = 0;          // hash of size classes of the dims, 8 bits
  std::uint8_t margin = 255;             // log2 of the smallest ratio of an error's bound to the error; 255: none
  std::uint8_t value_class = 0;          // NaN, inf, zero, denormal seen in outputs: bits
  std::array<std::uint8_t, 2> note{};    // [Side] hash of what the target said of its run; 0: nothing
};

struct CheckResult {
  Verdict verdict;
  Features features;
  std::uint64_t runs = 0;                // of paths
  std::uint64_t bytes = 0;               // of the case's inputs, as they are stored
  std::uint64_t target_nanoseconds = 0;  // inside them
};

struct RanCase;

// Holds what is worth keeping between checks: the runner's arena, buffers, a cache of drawn inputs.
class Engine {
 public:
  Engine(Comparison comparison, CheckOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A call within the experiment that is not legal is an error too; one that the target does not offer is a skip.
  // The verdict is a function of the case (and of the target's own randomness, whose rate it then states). An illegal
  // case is the user's error.
  // anew: explain a finding whose signature is known as if it were not.
  Result<CheckResult> check(const Case& c, bool anew = false);

  // The inputs as both sides receive them and the outputs of each, for a bundle: of the last checked case.
  struct Captured {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::vector<Captured> captured_inputs() const;
  std::vector<Captured> captured_outputs() const;  // names "target/y", "against/y"

  // Bits of output `output` (or of input, when no output is named so), and the picks, of one side: for near ties.
  struct Stage {
    DType dtype = DType::kF32;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::optional<std::vector<Stage>> stages(const Case& c, Side side, const std::vector<std::string>& tensors);

  // Is there an f64 truth for this case's outputs? False too where it cannot be run.
  bool has_truth(const Case& c);

  // One run of each wanted path on the case's own call: engine/run_sides.h.
  Result<RanCase> run_sides(const Case& c, const std::array<bool, 2>& wanted);
  // Would check() take the case? Draws every value; runs nothing. An error says what is not legal.
  Status legal(const Case& c);

  // The runs that the case is about, with everything that they take and give: engine/record.h.
  Result<Recording> record(const Case& c, bool run);

  const Operator* find(std::string_view op) const;  // of the target side's schema
  const Schema& schema() const;
  std::uint64_t max_bytes() const;
  bool tainted() const;  // a fault of the target may have broken this process: end it soon

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusediff
