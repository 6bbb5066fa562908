// Mutators of blocks: one dead row, one zero block, one masked tile, specials in one row, in an ordinary tensor.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "mutate/mutators.h"
#include "mutate/recipes.h"
#include "mutate/roles.h"

namespace fusediff {
namespace {

constexpr std::size_t kMaxPatches = 8;

// One, all, or a run whose ends are next to multiples of 8 to 128. REQUIRES: size > 0.
std::pair<std::int64_t, std::int64_t> draw_run(std::int64_t size, Rng& rng) {
  switch (rng.below(4)) {
    case 0:
      return {0, size - 1};
    case 1: {
      const std::int64_t at = draw_position(size, rng);
      return {at, at};
    }
    case 2: {
      const std::int64_t tile = std::int64_t{8} << rng.below(5);
      const std::int64_t tiles = (size + tile - 1) / tile;
      const std::int64_t first = rng.between(0, tiles - 1);
      const std::int64_t last = rng.one_in(2) ? first : rng.between(first, tiles - 1);
      return {first * tile, std::min(size, (last + 1) * tile) - 1};
    }
    default: {
      const std::int64_t a = draw_position(size, rng), b = draw_position(size, rng);
      return {std::min(a, b), std::max(a, b)};
    }
  }
}

Literal constant_for(const InputRule& rule, DType dtype, const Call& call, Rng& rng) {
  if (rule.role == Role::kIndex) {
    return Literal{Literal::Kind::kInteger, 0, draw_in_range(rule, call, rng).value_or(0), 0};
  }
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr std::array<double, 5> kDead = {0, -kInf, 0, std::numeric_limits<double>::quiet_NaN(), 1};
  constexpr std::array<double, 2> kMasked = {0, -kInf};
  if (!is_float(dtype)) return Literal{Literal::Kind::kInteger, 0, static_cast<std::int64_t>(rng.below(2)), 0};
  if (rule.role == Role::kScale || rule.role == Role::kProbability) return Literal{Literal::Kind::kReal, 1.0, 0, 0};
  const double value = rule.role == Role::kMask ? rng.pick(kMasked) : rng.pick(kDead);
  return literal_of(dtype, round_to_bits(dtype, value));
}

Fill patch_fill(const InputRule& rule, const Tensor& tensor, const Call& call, Rng& rng) {
  Fill fill;
  if ((takes_any_value(rule) || rule.role == Role::kProbability) && rng.one_in(2)) {
    do {
      fill = draw_fill(rule, tensor, rng);
    } while (fill.kind == FillKind::kBits);
    return fill;
  }
  fill.kind = FillKind::kConstant;
  fill.constant = constant_for(rule, tensor.dtype, call, rng);
  return fill;
}

}  // namespace

bool add_patch(Case& c, MutateContext& context) {
  const Result<Call> call = bind(c, context.op, context.max_bytes);
  if (!call.ok()) return false;
  std::vector<Source> sources = drawn_sources(*call);
  std::erase_if(sources, [&](const Source& source) {
    const auto at = c.inputs.find(source.rule->name);
    return !may_patch(*source.rule) || stored_count(*source.tensor) == 0 || at == c.inputs.end() ||
           at->second.patches.size() >= kMaxPatches;
  });
  if (sources.empty()) return false;
  const Source& source = context.rng.pick(sources);
  Patch patch;
  std::tie(patch.row_low, patch.row_high) = draw_run(row_count(*source.tensor), context.rng);
  std::tie(patch.column_low, patch.column_high) = draw_run(column_count(*source.tensor), context.rng);
  patch.fill = patch_fill(*source.rule, *source.tensor, *call, context.rng);
  c.inputs[source.rule->name].patches.push_back(std::move(patch));
  return true;
}

bool drop_patch(Case& c, MutateContext& context) {
  std::vector<InputValue*> patched;
  for (auto& [name, value] : c.inputs) {
    if (!value.patches.empty()) patched.push_back(&value);
  }
  if (patched.empty()) return false;
  std::vector<Patch>& patches = context.rng.pick(patched)->patches;
  patches.erase(patches.begin() + static_cast<std::ptrdiff_t>(context.rng.below(patches.size())));
  return true;
}

}  // namespace fusediff
