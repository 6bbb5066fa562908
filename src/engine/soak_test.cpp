// Random cases of every built-in operator with every experiment: none may be a finding. A few in the ordinary run of
// the tests; FUSEDIFF_SOAK=10000 FUSEDIFF_SOAK_EXPERIMENT=threads for more of one kind, as under a sanitizer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "base/rng.h"
#include "engine/check.h"
#include "model/case_json.h"
#include "model/finding_json.h"
#include "mutate/experiments.h"
#include "mutate/mutate.h"

namespace fusediff {
namespace {

constexpr std::uint64_t kBytes = 1 << 16;  // of all tensors of a case
constexpr int kChecks = 1200;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

TEST(Soak, BuiltinOperatorsStayClean) {
  TargetLoader loader({std::filesystem::path(FUSEDIFF_BIN_DIR) / "targets"});
  const Result<const Target*> builtin = loader.load("builtin");
  ASSERT_TRUE(builtin.ok()) << builtin.error().what;
  Comparison comparison;
  comparison.sides = {PathOf{*builtin, "fused"}, PathOf{*builtin, "unfused"}};
  comparison.fallback = *builtin;
  CheckOptions options;
  options.max_bytes = std::uint64_t{1} << 28;
  options.feedback = true;
  Engine engine(comparison, options);
  const std::string wanted = variable("FUSEDIFF_SOAK");
  const std::optional<ExperimentKind> only = experiment_named(variable("FUSEDIFF_SOAK_EXPERIMENT"));
  const int checks = wanted.empty() ? kChecks : std::atoi(wanted.c_str());

  std::vector<const Operator*> ops;
  for (const Operator& op : (*builtin)->schema.operators) ops.push_back(&op);
  Rng rng(20261130);
  const Probe none;
  std::map<std::string, int> made;
  for (int i = 0; i < checks; ++i) {
    const Operator& op = *ops[static_cast<std::size_t>(i) % ops.size()];
    MutateContext context{op, rng, kBytes, none, ops};
    context.experiment_weights = {1, 1, 1, 1, 1, 1};
    if (only) {
      context.experiment_weights = {};
      context.experiment_weights[static_cast<std::size_t>(*only)] = 1;
    }
    std::optional<Case> c = random_case(context);
    if (!c) continue;
    if (only && c->experiment.kind != *only && (!draw_experiment(*c, context) || c->experiment.kind != *only)) continue;
    const Result<CheckResult> result = engine.check(*c);
    ASSERT_TRUE(result.ok()) << result.error().what << "\n" << write_case(*c, 2);
    ++made[std::string(name_of(c->experiment.kind)) + " " + std::string(name_of(result->verdict.kind))];
    ASSERT_NE(result->verdict.kind, Verdict::Kind::kHarnessError) << result->verdict.reason << "\n"
                                                                  << write_case(*c, 2);
    if (!result->verdict.finding) continue;
    FAIL() << write_finding(*result->verdict.finding, 2) << "\n" << write_case(*c, 2);
  }
  for (const auto& [what, count] : made) std::cout << "  " << count << " " << what << "\n";
  if (only) return;
  EXPECT_GT(made.size(), 8u);
}

}  // namespace
}  // namespace fusediff
