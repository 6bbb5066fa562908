// Integer expressions of a schema: over dims and attributes, in checked 64-bit arithmetic. No floating point.
//   primary: integer | name | 'string' | ( expression )
//   precedence as in C, tightest first:  ! -   * / %   + -   < <= > >=   == !=   &&   ||
// A string may only be compared, by == and !=, with another string. && and || look at the right side only when they
// must. Division truncates towards zero and the remainder has the sign of the dividend, as in C.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace fusediff {

using ExprValue = std::variant<std::int64_t, std::string_view>;
// What a name stands for; nullptr result (false) when unknown.
using ExprScope = std::function<bool(std::string_view name, ExprValue& value)>;
// The same for a name that resolve() has turned into its position in a list of names; false when there is none.
using ExprSlots = bool (*)(const void* context, std::uint32_t slot, ExprValue& value);

// What a name may be in an expression.
enum class ExprKind { kNumber, kString, kUnknown };

struct ExprCode;

class Expr {
 public:
  Expr() : Expr(0) {}
  explicit Expr(std::int64_t constant);
  // At most kMaxExprNesting deep; integers beyond int64 and strings used as numbers are errors.
  static Result<Expr> parse(std::string_view text);

  // Overflow, division or remainder by zero, an unknown name and a string used as a number are errors that quote the
  // expression and the offending part. Allocates nothing when it succeeds. A result that is a string is an error.
  Result<std::int64_t> evaluate(const ExprScope& scope) const;
  const std::string& text() const { return text_; }
  const std::set<std::string>& names() const { return names_; }
  // The integers that the expression mentions, as written.
  std::vector<std::int64_t> constants() const;

  // The kinds of all names being known: is every string compared with a string, and every number used as one?
  Status check_kinds(const std::function<ExprKind(std::string_view name)>& kind_of) const;

  // The fast way: names become positions in `names` (unknown ones stay by name and fail in evaluate()). `key` tells
  // lists apart, see slots_key(); 0 is no key.
  Expr resolved(std::span<const std::string> names, std::uint64_t key) const;
  std::uint64_t slots_key() const { return slots_key_; }
  // REQUIRES: slots reads the list that resolved() got.
  Result<std::int64_t> evaluate(ExprSlots slots, const void* context) const;

 private:
  friend struct ExprParser;
  std::string text_;
  std::set<std::string> names_;
  std::shared_ptr<const ExprCode> code_;  // null: constant_
  std::int64_t constant_ = 0;
  std::uint64_t slots_key_ = 0;
};

inline constexpr int kMaxExprNesting = 64;

}  // namespace fusediff
