// Mutators of sizes: alone, in pairs that move together, the typical ones at once, zero.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "mutate/mutators.h"
#include "mutate/scope.h"
#include "mutate/sizes.h"

namespace fusediff {
namespace {

// Drawn sizes may make a case too dear. It is shrunk to what it was, or to a drawn budget where that is more; nothing
// that still has a byte too many leaves here, but `where` is repair's.
bool finish(Case& c, CaseScope& scope, MutateContext& context) {
  const CaseScope before(c, context.op);
  if (before.dims() == scope.dims()) return false;
  const std::optional<Volume> was = volume_of(c, before);
  const std::uint64_t budget = std::max(draw_element_budget(context.rng), was ? was->elements : 0);
  if (!shrink_dims(c, scope, budget, context.max_bytes, context.rng)) return false;
  if (before.dims() == scope.dims()) return false;
  scope.store(c);
  return true;
}

std::int64_t within(const DimRule& rule, std::int64_t size) {
  return std::clamp(size, rule.low, std::max(rule.low, rule.high));
}

enum class Together { kEqual, kProductKept, kBothScaled, kBothStepped, kBothDrawn };
constexpr std::array kTogether = {Together::kEqual, Together::kProductKept, Together::kBothScaled,
                                  Together::kBothStepped, Together::kBothDrawn};

void move_together(std::int64_t& a, std::int64_t& b, const DimRule& rule_a, const DimRule& rule_b, Rng& rng) {
  switch (rng.pick(kTogether)) {
    case Together::kEqual:
      a = draw_dim(rule_a, rng);
      b = a;
      break;
    case Together::kProductKept:
      a = a <= std::numeric_limits<std::int64_t>::max() / 2 ? a * 2 : a;
      b /= 2;
      break;
    case Together::kBothScaled: {
      const bool up = rng.one_in(2);
      for (std::int64_t* size : {&a, &b}) *size = up && *size < rule_a.high + rule_b.high ? *size * 2 : *size / 2;
      break;
    }
    case Together::kBothStepped: {
      // Both just off, or both onto, a multiple that a tile may have.
      const std::int64_t tile = std::int64_t{8} << rng.below(6);
      const std::int64_t step = rng.between(-1, 1);
      a = (a + tile - 1) / tile * tile + step;
      b = (b + tile - 1) / tile * tile + step;
      break;
    }
    case Together::kBothDrawn:
      a = draw_dim(rule_a, rng);
      b = draw_dim(rule_b, rng);
      break;
  }
  a = within(rule_a, a);
  b = within(rule_b, b);
}

}  // namespace

bool change_one_dim(Case& c, MutateContext& context) {
  if (context.op.dims.empty()) return false;
  CaseScope scope(c, context.op);
  const std::size_t at = static_cast<std::size_t>(context.rng.below(context.op.dims.size()));
  const DimRule& rule = context.op.dims[at];
  std::int64_t& size = scope.dims()[at];
  // A step beside where it is finds the edge of a rule that the search has come near to.
  size = context.rng.one_in(4) ? within(rule, size + (context.rng.one_in(2) ? 1 : -1)) : draw_dim(rule, context.rng);
  return finish(c, scope, context);
}

bool change_two_dims(Case& c, MutateContext& context) {
  const std::size_t count = context.op.dims.size();
  if (count < 2) return false;
  CaseScope scope(c, context.op);
  const std::size_t a = static_cast<std::size_t>(context.rng.below(count));
  const std::size_t b = (a + 1 + static_cast<std::size_t>(context.rng.below(count - 1))) % count;
  move_together(scope.dims()[a], scope.dims()[b], context.op.dims[a], context.op.dims[b], context.rng);
  return finish(c, scope, context);
}

bool change_to_typical_dims(Case& c, MutateContext& context) {
  CaseScope scope(c, context.op);
  for (std::size_t i = 0; i < context.op.dims.size(); ++i) {
    const DimRule& rule = context.op.dims[i];
    if (!rule.typical.empty()) scope.dims()[i] = context.rng.pick(rule.typical);
  }
  return finish(c, scope, context);
}

bool change_dim_to_zero(Case& c, MutateContext& context) {
  CaseScope scope(c, context.op);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < context.op.dims.size(); ++i) {
    if (context.op.dims[i].low <= 0 && scope.dims()[i] != 0) open.push_back(i);
  }
  if (open.empty()) return false;
  scope.dims()[context.rng.pick(open)] = 0;
  return finish(c, scope, context);
}

}  // namespace fusediff
