// Every recipe in every dtype against values_golden.txt: the same case gives the same bits on every machine and
// compiler. FUSEDIFF_BLESS=1 in the environment writes the file anew.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "base/hash.h"
#include "model/values.h"

namespace fusediff {
namespace {

struct Recipe {
  const char* name;
  Role role;
  FillKind kind;
  double a = 0;
  double b = 0;
};

constexpr Recipe kRecipes[] = {
    {"normal", Role::kActivation, FillKind::kNormal, 0, 1},
    {"normal_off_centre", Role::kActivation, FillKind::kNormal, 0.3, 2.7},
    {"uniform", Role::kActivation, FillKind::kUniform, 0, 1},
    {"uniform_about_zero", Role::kActivation, FillKind::kUniform, -0.1, 0.1},
    {"grid", Role::kActivation, FillKind::kGrid, -1, 2},
    {"constant", Role::kActivation, FillKind::kConstant},
    {"special", Role::kActivation, FillKind::kSpecial},
    {"finite_special", Role::kActivation, FillKind::kFiniteSpecial},
    {"shifted", Role::kActivation, FillKind::kShifted, 3, 2},
    {"negative", Role::kActivation, FillKind::kNegative, 0, 3},
    {"ramp", Role::kActivation, FillKind::kRamp, -7, 11},
    {"one_hot", Role::kActivation, FillKind::kOneHot},
    {"probability_normal", Role::kProbability, FillKind::kNormal, 0, 1},
    {"probability_uniform", Role::kProbability, FillKind::kUniform, 0, 1},
    {"scale_normal", Role::kScale, FillKind::kNormal, 0, 1},
    {"scale_finite_special", Role::kScale, FillKind::kFiniteSpecial},
    {"mask_uniform", Role::kMask, FillKind::kIndexUniform},
    {"mask_skewed", Role::kMask, FillKind::kSkewed},
    {"mask_unused", Role::kMask, FillKind::kUnused},
    {"mask_permutation", Role::kMask, FillKind::kPermutation},
    {"index_uniform", Role::kIndex, FillKind::kIndexUniform},
    {"index_skewed", Role::kIndex, FillKind::kSkewed},
    {"index_unused", Role::kIndex, FillKind::kUnused},
    {"index_permutation", Role::kIndex, FillKind::kPermutation},
    {"counts_uniform", Role::kCounts, FillKind::kIndexUniform},
    {"counts_skewed", Role::kCounts, FillKind::kSkewed},
    {"counts_unused", Role::kCounts, FillKind::kUnused},
    {"counts_permutation", Role::kCounts, FillKind::kPermutation},
    {"offsets_uniform", Role::kOffsets, FillKind::kIndexUniform},
    {"offsets_skewed", Role::kOffsets, FillKind::kSkewed},
    {"offsets_unused", Role::kOffsets, FillKind::kUnused},
    {"offsets_permutation", Role::kOffsets, FillKind::kPermutation},
};

bool has_recipe(const Recipe& recipe, DType dtype) {
  if (recipe.role == Role::kProbability) return is_float(dtype);
  if (recipe.role == Role::kMask) return dtype != DType::kF8E4M3FN;
  return true;
}

std::string line_of(const Recipe& recipe, DType dtype, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  InputRule rule;
  rule.name = std::string(1, 'x');
  rule.role = recipe.role;
  const bool small = dtype == DType::kBool || dtype == DType::kF8E5M2 || dtype == DType::kF8E4M3FN;
  if (recipe.role == Role::kIndex) rule.range = {Expr(0), Expr(small ? 1 : 69)};
  if (recipe.role == Role::kCounts || recipe.role == Role::kOffsets) rule.sum = Expr(small ? 1 : 100);
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {rows, columns};
  tensor.stride = dense_strides(tensor.shape);
  InputValue value;
  value.fill.kind = recipe.kind;
  value.fill.a = recipe.a;
  value.fill.b = recipe.b;
  value.fill.count = 7;
  value.fill.seed = seed;
  value.fill.constant.kind = Literal::Kind::kInteger;
  value.fill.constant.integer = 1;
  const Result<std::vector<std::byte>> bytes = draw_values(value, rule, tensor, Call{});
  const std::string found = bytes.ok() ? hash128(std::span<const std::byte>(*bytes)).hex() : bytes.error().what;
  return std::string(recipe.name) + " " + std::string(name_of(dtype)) + " " + std::to_string(rows) + "x" +
         std::to_string(columns) + " seed " + std::to_string(seed) + " " + found + "\n";
}

std::string all_lines() {
  std::string lines = "# XXH3-128 of the elements, by recipe, dtype, shape and seed; see values_golden_test.cpp\n";
  for (const Recipe& recipe : kRecipes) {
    for (const DType dtype : kDTypes) {
      if (!has_recipe(recipe, dtype)) continue;
      lines += line_of(recipe, dtype, 5, 7, 17);
      lines += line_of(recipe, dtype, 1, 64, 3);
      lines += line_of(recipe, dtype, 3, 700, 0xFEDCBA9876543210u);
    }
  }
  return lines;
}

TEST(ValuesGolden, EveryRecipeGivesItsBits) {
  const std::string path = std::string(FUSEDIFF_SOURCE_DIR) + "/src/model/values_golden.txt";
  const std::string found = all_lines();
  if (std::getenv("FUSEDIFF_BLESS") != nullptr) {
    ASSERT_TRUE(write_file(path, found).ok());
    return;
  }
  const Result<std::string> golden = read_file(path, 1 << 20);
  ASSERT_TRUE(golden.ok()) << golden.error().what;
  std::size_t at = 0;
  while (at < found.size()) {  // by line, so that the first difference is named
    const std::size_t end = found.find('\n', at);
    const std::string line = found.substr(at, end - at);
    ASSERT_EQ(golden->substr(at, end - at), line);
    at = end + 1;
  }
  EXPECT_EQ(golden->size(), found.size());
}

}  // namespace
}  // namespace fusediff
