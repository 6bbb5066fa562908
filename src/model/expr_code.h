// The inside of an Expr: a postfix program for a small stack. For expr.cpp and expr_parse.cpp only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fusediff {

enum class ExprOp : std::uint8_t {
  kConstant,  // push value
  kName,      // push what strings[value] stands for, or slot
  kString,    // push strings[value]
  kNegate,
  kNot,
  kMultiply,
  kDivide,
  kRemainder,
  kAdd,
  kSubtract,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAndJump,  // top is false: make it 0 and go to value; else pop
  kOrJump,   // top is true: make it 1 and go to value; else pop
  kTruth,    // top becomes 0 or 1
};

inline constexpr std::uint32_t kNoSlot = UINT32_MAX;

struct ExprStep {
  ExprOp op = ExprOp::kConstant;
  std::uint32_t slot = kNoSlot;  // kName, once resolved
  std::uint32_t begin = 0;       // the part of the text that this step computes
  std::uint32_t end = 0;
  std::int64_t value = 0;
};

struct ExprCode {
  std::vector<ExprStep> steps;
  std::vector<std::string> strings;  // names and string literals
};

// Deep enough for kMaxExprNesting levels, each of which holds at most one operand per level of precedence.
inline constexpr std::size_t kExprStack = 64 * 8;

}  // namespace fusediff
