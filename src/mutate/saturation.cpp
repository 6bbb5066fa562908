// Mutators of scores that rank equally without being equal: saturated ones, and both zeros. No probe is needed.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "mutate/mutators.h"
#include "mutate/recipes.h"
#include "mutate/roles.h"

namespace fusediff {
namespace {

constexpr std::int64_t kMostChanged = 16;

// A score, or what a decision ranks by, with room for two different elements in a row; nothing: pointers null.
Source draw_score(const Call& call, const Case& c, Rng& rng) {
  std::vector<Source> sources = drawn_sources(call);
  const std::vector<DecideRule>& decide = call.op->decide;
  std::erase_if(sources, [&](const Source& source) {
    const bool by =
        std::any_of(decide.begin(), decide.end(), [&](const DecideRule& rule) { return rule.by == source.rule->name; });
    return !(by || source.rule->role == Role::kScore) || !is_float(source.tensor->dtype) ||
           !takes_any_value(*source.rule) || stored_count(*source.tensor) != element_count(*source.tensor) ||
           stored_count(*source.tensor) == 0 || column_count(*source.tensor) < 2 ||
           !c.inputs.contains(source.rule->name);
  });
  return sources.empty() ? Source{nullptr, nullptr} : rng.pick(sources);
}

// Different columns of one row, as logical indices.
std::vector<std::int64_t> draw_elements(const Tensor& tensor, Rng& rng) {
  const std::int64_t columns = column_count(tensor);
  const std::int64_t row = draw_position(row_count(tensor), rng);
  const std::int64_t count = rng.between(2, std::min(columns, kMostChanged));
  // A run, or evenly spread, from a drawn column: both meet ties across tiles and groups.
  const std::int64_t step = rng.one_in(2) ? 1 : std::max<std::int64_t>(1, columns / count);
  const std::int64_t first = rng.between(0, columns - 1);
  std::vector<std::int64_t> elements;
  for (std::int64_t i = 0; i < count; ++i) elements.push_back(row * columns + (first + i * step) % columns);
  return elements;
}

}  // namespace

bool saturate_scores(Case& c, MutateContext& context) {
  if (context.op.decide.empty()) return false;
  const Result<Call> call = bind(c, context.op, context.max_bytes);
  if (!call.ok()) return false;
  const Source source = draw_score(*call, c, context.rng);
  if (source.tensor == nullptr) return false;
  Rng& rng = context.rng;
  const DType dtype = source.tensor->dtype;
  // The f32 sigmoid is 1 from about 17 and 0 below about -104; either way different inputs rank equally.
  const bool high = rng.one_in(2);
  for (const std::int64_t element : draw_elements(*source.tensor, rng)) {
    const double depth = static_cast<double>(rng.below(256)) / 4.0;
    const double value = high ? 17.0 + depth : -104.0 - depth;
    c.inputs[source.rule->name].set[element] = literal_of(dtype, round_to_bits(dtype, value));
  }
  return true;
}

bool mix_zeros(Case& c, MutateContext& context) {
  if (context.op.decide.empty()) return false;
  const Result<Call> call = bind(c, context.op, context.max_bytes);
  if (!call.ok()) return false;
  const Source source = draw_score(*call, c, context.rng);
  if (source.tensor == nullptr) return false;
  InputValue& value = c.inputs[source.rule->name];
  const std::vector<std::int64_t> elements = draw_elements(*source.tensor, context.rng);
  if (context.rng.one_in(2)) {
    // The rest of the row below zero, so that the zeros are picked.
    const std::int64_t columns = column_count(*source.tensor);
    const std::int64_t row = elements.front() / columns;
    Fill fill;
    fill.kind = FillKind::kNegative;
    fill.b = 1;
    fill.seed = context.rng.below(std::uint64_t{1} << 32);
    value.patches.push_back({row, row, 0, columns - 1, fill});
  }
  const bool first = context.rng.one_in(2);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    value.set[elements[i]] = Literal{Literal::Kind::kReal, (i % 2 == 0) == first ? 0.0 : -0.0, 0, 0};
  }
  return true;
}

}  // namespace fusediff
