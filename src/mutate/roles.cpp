#include "mutate/roles.h"

#include <array>

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
constexpr std::array kScales = {kUniform, kNormal, kGrid, kConstant, kRamp, kShifted};
constexpr std::array kProbabilities = {kUniform, kNormal, kGrid, kConstant, kRamp, kOneHot};
constexpr std::array kIntegers = {kUniform, kGrid, kConstant, kRamp, kOneHot};
constexpr std::array kMasks = {kUniform, kIndexUniform, kSkewed, kUnused, kConstant, kOneHot};
constexpr std::array kIndices = {kIndexUniform, kPermutation, kSkewed, kUnused};
constexpr std::array kGroups = {kIndexUniform, kSkewed, kUnused};

Recipes recipes(const InputRule& rule, DType dtype) {
  switch (rule.role) {
    case Role::kMask:
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

bool is_drawn(const InputRule& rule) { return rule.role != Role::kSaved; }

bool takes_any_value(const InputRule& rule) {
  return rule.role == Role::kActivation || rule.role == Role::kScore || rule.role == Role::kBias ||
         rule.role == Role::kCotangent;
}

std::span<const FillKind> recipes_of(const InputRule& rule, DType dtype) { return recipes(rule, dtype).kinds; }

std::size_t usual_recipes(const InputRule& rule, DType dtype) { return recipes(rule, dtype).usual; }

bool may_patch(const InputRule& rule) {
  return takes_any_value(rule) || rule.role == Role::kScale || rule.role == Role::kMask ||
         (rule.role == Role::kIndex && !rule.distinct && !rule.sorted);
}

bool may_set(const InputRule& rule) {
  return may_patch(rule) || rule.role == Role::kIndex || (rule.role == Role::kCounts && !rule.sum);
}

bool may_repeat(const InputRule& rule) { return is_drawn(rule) && rule.role != Role::kOffsets; }

bool may_repeat_last(const InputRule& rule) {
  if (rule.role == Role::kIndex) return !rule.distinct;
  return rule.role != Role::kProbability && rule.role != Role::kCounts && rule.role != Role::kOffsets;
}

}  // namespace fusediff
