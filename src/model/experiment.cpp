#include "model/experiment.h"

#include <algorithm>
#include <array>

#include "model/case.h"

namespace fusediff {
namespace {

constexpr std::array<std::string_view, kExperimentKindCount> kExperiments = {"pair",     "repeat",   "threads",
                                                                             "relation", "gradient", "history"};
constexpr std::array<std::string_view, kRelationKindCount> kRelations = {
    "row_alone", "rows_permuted", "batch_split", "dense", "moved", "inplace", "same_value", "one_cpu"};

template <typename Kind, std::size_t kCount>
std::optional<Kind> named(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<Kind>(at - names.begin());
}

}  // namespace

bool Experiment::operator==(const Experiment& other) const {
  return kind == other.kind && count == other.count && rounds == other.rounds && seed == other.seed &&
         relation == other.relation && row == other.row && calls == other.calls;
}

std::string_view name_of(ExperimentKind kind) { return kExperiments[static_cast<std::size_t>(kind)]; }
std::optional<ExperimentKind> experiment_named(std::string_view name) {
  return named<ExperimentKind>(kExperiments, name);
}
std::string_view name_of(RelationKind kind) { return kRelations[static_cast<std::size_t>(kind)]; }
std::optional<RelationKind> relation_named(std::string_view name) { return named<RelationKind>(kRelations, name); }

}  // namespace fusediff
