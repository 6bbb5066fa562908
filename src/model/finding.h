// What a check concluded: verdict, finding, class, signature, and the evidence that a person reads. JSON is in
// model/finding_json.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "model/dtype.h"
#include "model/execution.h"

namespace fusediff {

// In the order of the table in DESIGN.md: the class of a finding is the first that holds for any tensor.
enum class FindingClass {
  kHang,
  kMemory,
  kOverrun,
  kOverread,
  kCrash,
  kUnwritten,
  kDirty,
  kInputChanged,
  kNondeterminism,
  kContamination,
  kUndeclaredLimit,
  kAcceptedIllegal,
  kInvariant,
  kGradient,
  kNonFinite,
  kFlip,
  kWrongPick,
  kDamage,
  kRounding,
  kZeroSign,
  kNanBits,
};
inline constexpr int kFindingClassCount = static_cast<int>(FindingClass::kNanBits) + 1;

std::string_view name_of(FindingClass cls);
std::optional<FindingClass> finding_class_named(std::string_view name);

// The two sides of a comparison. Arrays of two are indexed by it.
enum class Side { kTarget = 0, kAgainst = 1 };
inline constexpr std::array kSides = {Side::kTarget, Side::kAgainst};
constexpr std::size_t index_of(Side side) { return static_cast<std::size_t>(side); }

// How one output differs between the sides, after `agree`.
struct Difference {
  std::string output;
  DType dtype = DType::kF32;
  std::optional<int> stage;
  std::int64_t elements = 0;
  std::int64_t differing = 0;
  std::int64_t first = 0;  // logical row-major index
  std::int64_t worst = 0;  // index of the largest ULP distance
  std::array<std::uint64_t, 2> first_bits{};
  std::array<std::uint64_t, 2> worst_bits{};
  std::uint64_t max_ulp = 0;
  std::uint64_t median_ulp = 0;
  double largest = 0;         // largest absolute difference of two finite values; 0 for integers
  bool follows_pick = false;  // lies only in rows with another pick, in a later stage: a consequence, not a cause
  FindingClass cls = FindingClass::kDamage;
  // Worst error over the output against the f64 truth, ULP of the output's dtype at the bound's scale.
  std::optional<std::array<double, 2>> error;
  std::optional<double> bound;  // ULP; absent: judged relative to unfused, or no truth
  std::string judged_by;        // one clause: by which rule the class was decided
};

// Bytes of one output that keep the fill (unwritten), or follow the fill of some memory (dirty, overread).
struct ByteRanges {
  std::string output;
  std::string follows;  // "", or "output", "workspace", "guard"
  std::int64_t bytes = 0;
  std::int64_t total = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // [first, last] bytes, the first few
};

// Another pick, seen in one row.
struct Flip {
  std::string pick;  // output
  std::string by;    // what is ranked by
  DType by_dtype = DType::kF32;
  bool by_is_known = false;  // false: the ranks could not be had
  std::int64_t row = 0;
  std::int64_t slot = 0;
  std::array<std::int64_t, 2> picked{};                     // [side]
  std::array<std::array<std::uint64_t, 2>, 2> rank_bits{};  // [side][whose pick]
  std::array<std::uint64_t, 2> gap_ulp{};                   // [side] between the two ranks
  std::int64_t rows = 0;                                    // rows with another pick
  struct Stage {  // a float output of the ranked shape, at the two picks: what fed the rank
    std::string output;
    DType dtype = DType::kF32;
    std::array<std::array<std::uint64_t, 2>, 2> bits{};  // [side][whose pick]
  };
  std::vector<Stage> stages;
  struct Sum {  // a float output of the picks' shape: the row's sum, rounded once to its dtype
    std::string output;
    std::array<double, 2> value{};
  };
  std::vector<Sum> sums;
};

// Reruns of one side on fresh contexts with nothing else in flight; of a contamination's first column: how often the
// whole experiment showed it.
struct Rate {
  int runs = 0;
  int differing = 0;  // outputs other than in the first run
  int pinned_runs = 0;
  int pinned_differing = 0;
};

// One of the runs that split the cause of a contamination.
struct CauseRun {
  std::string what;            // e.g. "the case alone in 8 threads"
  std::int64_t calls = 0;      // of the call that was seen to differ, or what stands for it
  std::int64_t differing = 0;  // that gave other bits than alone
  std::int64_t digests = 0;    // different wrong results: 1 is a stable one
};

// A difference quotient beside the gradients that the paths gave: of one element, or along one direction.
struct GradientSweep {
  std::string output;                         // the gradient, e.g. "grad_bias"
  std::int64_t index = -1;                    // logical row-major; -1: along a seeded direction
  std::array<std::optional<double>, 2> path;  // [side]
  std::optional<double> truth;                // the backward in f64
  double quotient = 0;                        // central difference of the forward in f64
  double quotient_error = 0;                  // bound on its own truncation and rounding
  std::vector<std::array<double, 2>> own;     // {eps, quotient} through the target's own forward, eps falling
};

struct TensorHash {
  std::string name;
  std::array<std::optional<Hash128>, 2> hash;  // [side]; absent: that side did not get or give it
};

// One thing that an oracle saw. The engine sorts these; the first by class and stage names the finding.
struct Evidence {
  FindingClass cls = FindingClass::kDamage;
  std::string oracle;
  std::string tensor;           // "" for crash, hang and memory
  std::optional<int> stage;     // of that tensor
  std::optional<Side> accused;  // absent: the two together
  std::string what;             // one sentence, complete in itself
  std::string relation = {};    // part of the signature: which relation is broken, or which limit
};

struct Finding {
  std::string experiment;
  std::string oracle;
  std::string relation;
  std::string op;
  std::array<std::string, 2> targets;
  std::array<std::string, 2> paths;
  std::array<std::string, 2> columns;  // what the two sides of a comparison are where that is not the paths
  std::string dtype;                   // the chosen one, or "x=f32,y=bf16" where a case chose several
  std::string output;                  // the tensor that the class holds for
  FindingClass cls = FindingClass::kDamage;
  std::optional<int> stage;                // to blame
  std::vector<std::string> stage_outputs;  // the outputs of that stage that differ
  std::vector<Evidence> evidence;          // all, the naming one first: the rest is `also`
  std::vector<Difference> differences;     // by stage, then schema order
  std::vector<ByteRanges> byte_ranges;
  std::vector<Flip> flips;
  std::array<Rate, 2> rates;
  std::vector<CauseRun> causes;        // the seen run first
  std::string conclusion;              // what they say together, in words
  std::vector<GradientSweep> sweeps;   // the worst first
  std::vector<std::string> influence;  // sentences: what one side does not follow
  std::vector<std::string> notes;
  std::vector<TensorHash> input_hashes;
  std::vector<TensorHash> output_hashes;
};

// oracle, operator, paths, dtype, output, class, stage: no shapes, values, addresses, times. What one run of the
// target side does by itself is of that path alone, in whichever experiment it shows.
std::string signature_of(const Finding& finding);
// "<op>-<class>-<output>-<dtype>-<8 hex of the signature's hash>", safe as a file name.
std::string slug_of(const Finding& finding);

struct Verdict {
  enum class Kind { kPass, kFinding, kSkip, kVacuous, kHarnessError } kind = Kind::kPass;
  std::string reason;  // of a skip, a vacuous pass or a harness error
  std::optional<Finding> finding;
};
std::string_view name_of(Verdict::Kind kind);

}  // namespace fusediff
