#include "opencl/expression.h"

#include <gtest/gtest.h>

#include <string>

#include "kit/failure.h"

namespace fusediff::opencl {
namespace {

std::string error_of(std::string_view text, const Names& names) {
  try {
    evaluate(text, names);
  } catch (const kit::Failure& failure) {
    return failure.what();
  }
  return "none";
}

TEST(ExpressionTest, Values) {
  const Names names{{"N", 7}, {"row_width", 4}};
  EXPECT_EQ(evaluate("2 + 3 * N - 1", names), 22);
  EXPECT_EQ(evaluate("(2+3)*N%4", names), 3);
  EXPECT_EQ(evaluate("10 - 4 - 3", names), 3);
  EXPECT_EQ(evaluate("(N + row_width - 1) / row_width * row_width", names), 8);
  EXPECT_EQ(evaluate("-N + --1", names), -6);
  EXPECT_EQ(evaluate("min(N, 5) * max(1, row_width)", names), 20);
  EXPECT_EQ(evaluate("N > 6 && row_width <= 3 || !(N == 7)", names), 0);
  EXPECT_EQ(evaluate("N >= 7 && N != 8 && row_width < 5", names), 1);
}

TEST(ExpressionTest, Errors) {
  const Names names{{"N", 0}, {"big", INT64_MAX}};
  EXPECT_EQ(error_of("1 / N", names), "expression \"1 / N\": division by zero or overflow");
  EXPECT_EQ(error_of("1 % N", names), "expression \"1 % N\": division by zero or overflow");
  EXPECT_EQ(error_of("big + 1", names), "expression \"big + 1\": overflow");
  EXPECT_EQ(error_of("(-big - 1) / -1", names), "expression \"(-big - 1) / -1\": division by zero or overflow");
  EXPECT_EQ(error_of("99999999999999999999", names), "expression \"99999999999999999999\": overflow");
  EXPECT_EQ(error_of("M", names), "expression \"M\": no dim or attribute is named M");
  EXPECT_EQ(error_of("1 +", names), "expression \"1 +\": it ends too early");
  EXPECT_EQ(error_of("(1", names), "expression \"(1\": a ) is missing");
  EXPECT_EQ(error_of("1 2", names), "expression \"1 2\": unexpected '2'");
  EXPECT_EQ(error_of("", names), "expression \"\": it ends too early");
  const std::string deep(100, '(');
  EXPECT_NE(error_of(deep, names).find("nested too deeply"), std::string::npos);
}

TEST(ExpressionTest, ACheckLooksAtNamesAndNotAtValues) {
  const Names names{{"N", 0}};
  EXPECT_NO_THROW(check_expression("1 / N + 9223372036854775807 * 2", names));
  EXPECT_THROW(check_expression("1 / M", names), kit::Failure);
  EXPECT_THROW(check_expression("N N", names), kit::Failure);
}

TEST(ExpressionTest, Names) {
  EXPECT_TRUE(is_name("a_1"));
  EXPECT_FALSE(is_name("1a"));
  EXPECT_FALSE(is_name("a b"));
  EXPECT_FALSE(is_name(""));
}

}  // namespace
}  // namespace fusediff::opencl
