#include "mutate/roles.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fusediff {
namespace {

using enum FillKind;

// Each list: the usual recipes first, then the odd ones.
struct Recipes {
  std::span<const FillKind> kinds;
  std::size_t usual;
};

constexpr std::array kFloats = {kNormal,  kUniform, kGrid,     kNormal,  kUniform, kConstant,
                                kSpecial, kRamp,    kNegative, kShifted, kOneHot,  kFiniteSpecial};
constexpr std::array kIntegers = {kUniform, kGrid, kConstant, kRamp, kOneHot, kNormal, kSpecial};
constexpr std::array kScales = {kUniform, kNormal, kGrid, kConstant, kRamp, kShifted, kNegative, kFiniteSpecial};
constexpr std::array kProbabilities = {kUniform, kNormal, kGrid, kConstant, kRamp, kOneHot, kShifted, kNegative};
constexpr std::array kMasks = {kIndexUniform, kUnused, kSkewed, kPermutation, kConstant, kOneHot};
constexpr std::array kMasksWithoutInfinity = {kConstant};
constexpr std::array kIndices = {kIndexUniform, kPermutation, kSkewed, kUnused};
constexpr std::array kGroups = {kIndexUniform, kSkewed, kUnused, kPermutation};

Recipes recipes(const InputRule& rule, DType dtype) {
  switch (rule.role) {
    case Role::kMask:
      if (is_float(dtype) && !float_format(dtype).has_infinity) return {kMasksWithoutInfinity, 1};
      return {kMasks, 2};
    case Role::kIndex:
      return {kIndices, 2};
    case Role::kCounts:
    case Role::kOffsets:
      return {kGroups, 1};
    case Role::kScale:
      return {kScales, 3};
    case Role::kProbability:
      return {kProbabilities, 3};
    default:
      if (is_float(dtype)) return {kFloats, 5};
      return {kIntegers, 2};
  }
}

}  // namespace

bool is_drawn(const InputRule& rule) { return rule.role != Role::kSaved && !rule.saved; }

bool takes_any_value(const InputRule& rule) {
  return rule.role == Role::kActivation || rule.role == Role::kScore || rule.role == Role::kBias ||
         rule.role == Role::kCotangent;
}

std::span<const FillKind> recipes_of(const InputRule& rule, DType dtype) { return recipes(rule, dtype).kinds; }

std::size_t usual_recipes(const InputRule& rule, DType dtype) { return recipes(rule, dtype).usual; }

bool may_patch(const InputRule& rule) {
  return takes_any_value(rule) || rule.role == Role::kScale || rule.role == Role::kMask ||
         rule.role == Role::kProbability || (rule.role == Role::kIndex && !rule.distinct && !rule.sorted);
}

bool may_set(const InputRule& rule) {
  if (rule.role == Role::kProbability) return false;  // the row would no longer sum to 1
  return may_patch(rule) || rule.role == Role::kIndex || (rule.role == Role::kCounts && !rule.sum);
}

namespace {

// A weight that a row can be divided by the sum of.
bool is_weight(const Fill& fill) {
  return fill.kind != FillKind::kBits &&
         (fill.kind != FillKind::kConstant ||
          (fill.constant.kind == Literal::Kind::kReal && std::isfinite(fill.constant.real)));
}

}  // namespace

bool obeys_by_construction(const InputValue& value, const InputRule& rule) {
  const FillKind kind = value.fill.kind;
  if (takes_any_value(rule)) return true;
  if (kind == FillKind::kBits) return false;
  if (!value.set.empty()) return false;
  if (rule.role == Role::kProbability) {
    return is_weight(value.fill) && std::all_of(value.patches.begin(), value.patches.end(),
                                                [](const Patch& patch) { return is_weight(patch.fill); });
  }
  return value.patches.empty() && kind != FillKind::kConstant && kind != FillKind::kRamp;
}

bool may_repeat(const InputRule& rule) { return is_drawn(rule) && rule.role != Role::kOffsets; }

bool may_repeat_last(const InputRule& rule) {
  if (rule.role == Role::kIndex) return !rule.distinct;
  return rule.role != Role::kProbability && rule.role != Role::kCounts && rule.role != Role::kOffsets;
}

}  // namespace fusediff
