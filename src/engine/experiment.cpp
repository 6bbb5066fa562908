#include "engine/experiment.h"

#include "engine/gradient.h"
#include "engine/history.h"
#include "engine/pair.h"
#include "engine/relation.h"
#include "engine/repeat.h"
#include "engine/threads.h"

namespace fusediff {
namespace {

template <typename Check>
std::unique_ptr<ExperimentCheck> make(const Subject& subject) {
  return std::make_unique<Check>(subject);
}

using Make = std::unique_ptr<ExperimentCheck> (*)(const Subject&);
// [ExperimentKind]
constexpr std::array<Make, kExperimentKindCount> kChecks = {
    make<PairCheck>, make<RepeatCheck>, make<ThreadsCheck>, make<RelationCheck>, make<GradientCheck>, make<HistoryCheck>,
};

}  // namespace

std::unique_ptr<ExperimentCheck> make_experiment(const Subject& subject) {
  return kChecks[static_cast<std::size_t>(subject.c.experiment.kind)](subject);
}

}  // namespace fusediff
