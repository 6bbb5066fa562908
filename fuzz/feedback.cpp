#include "feedback.h"

#include <algorithm>
#include <array>

#include "base/hash.h"

namespace fusediff {
namespace {

constexpr std::size_t kOperators = 32;  // more share counters
// Counters of one operator: what is counted, and from where.
constexpr std::size_t kVerdicts = 5;
constexpr std::size_t kClasses = static_cast<std::size_t>(kFindingClassCount);
constexpr std::size_t kEndings = 11;
constexpr std::size_t kGaps = 24;
constexpr std::size_t kUlps = 24;
constexpr std::size_t kShares = 16;
constexpr std::size_t kShapes = 48;
constexpr std::size_t kValues = 8;
constexpr std::size_t kDTypeBuckets = 24;
constexpr std::size_t kReasons = 16;
constexpr std::size_t kExperiments = (kExperimentKindCount + kRelationKindCount) * kVerdicts;
constexpr std::size_t kCauses = 16;
constexpr std::size_t kMargins = 16;
constexpr std::size_t kNotes = 32;  // implementations that a target names
constexpr std::size_t kPerOperator = kVerdicts + kClasses + 2 * kEndings + kGaps + kUlps + kShares + kShapes + kValues +
                                     kDTypeBuckets + kReasons + kExperiments + kCauses + kMargins + 2 * kNotes;

// Volatile: nothing in the program reads it and the compiler would drop the stores.
__attribute__((section("__libfuzzer_extra_counters"),
               used)) volatile std::uint8_t counters[1 + kOperators * kPerOperator];

std::array<bool, sizeof(counters)> seen{};  // by any check so far

// Relations, which ask different questions, count as experiments of their own.
std::size_t kind_of(const Experiment& experiment) {
  return experiment.kind == ExperimentKind::kRelation
             ? static_cast<std::size_t>(kExperimentKindCount) + static_cast<std::size_t>(experiment.relation)
             : static_cast<std::size_t>(experiment.kind);
}

// Walks the groups of one operator in order; a value beyond its group counts as the last of it.
class Group {
 public:
  explicit Group(std::size_t op) : next_(1 + op % kOperators * kPerOperator) {}
  void set(std::size_t size, std::size_t value) {
    const std::size_t at = next_ + std::min(value, size - 1);
    counters[at] = 1;
    fresh_ += seen[at] ? 0 : 1;
    seen[at] = true;
  }
  void skip(std::size_t size) { next_ += size; }
  void take(std::size_t size, std::size_t value) {
    set(size, value);
    skip(size);
  }
  std::size_t fresh() const { return fresh_; }

 private:
  std::size_t fresh_ = 0;
  std::size_t next_;
};

}  // namespace

void report_nothing() { counters[0] = 1; }

std::size_t report_features(std::size_t op, const Case& c, const CheckResult& result) {
  const Features& f = result.features;
  const Verdict& verdict = result.verdict;
  Group group(op);
  group.take(kVerdicts, static_cast<std::size_t>(verdict.kind));
  if (verdict.finding) group.set(kClasses, static_cast<std::size_t>(verdict.finding->cls));
  group.skip(kClasses);
  for (const std::uint8_t ending : f.ending) group.take(kEndings, ending);
  if (f.smallest_gap != 255) group.set(kGaps, f.smallest_gap);
  group.skip(kGaps);
  group.take(kUlps, f.max_ulp);
  group.take(kShares, f.differing_share);
  group.take(kShapes, f.shape_class % kShapes);
  for (std::size_t bit = 0; bit < kValues; ++bit) {
    if ((f.value_class >> bit & 1) != 0) group.set(kValues, bit);
  }
  group.skip(kValues);
  for (const auto& [tensor, dtype] : c.dtypes) group.set(kDTypeBuckets, static_cast<std::size_t>(dtype));
  group.skip(kDTypeBuckets);
  if (!verdict.reason.empty()) group.set(kReasons, hash128(verdict.reason).low % kReasons);
  group.skip(kReasons);
  group.take(kExperiments, kind_of(c.experiment) * kVerdicts + static_cast<std::size_t>(verdict.kind));
  if (verdict.finding && !verdict.finding->conclusion.empty())
    group.set(kCauses, hash128(verdict.finding->conclusion).low % kCauses);
  group.skip(kCauses);
  if (f.margin != 255) group.set(kMargins, f.margin);
  group.skip(kMargins);
  for (const std::uint8_t note : f.note) {
    if (note != 0) group.set(kNotes, note % kNotes);
    group.skip(kNotes);
  }
  return group.fresh();
}

}  // namespace fusediff
