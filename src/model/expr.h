// Integer expressions of a schema: over dims and attributes, in checked 64-bit arithmetic. No floating point.
//   primary: integer | name | 'string' | ( expression )      precedence as in C: ! -  * / %  + -  < <= > >=  == !=  &&
//   ||
// A string may only be compared, by == and !=, with another string. && and || look at the right side only when they
// must.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"

namespace fusediff {

using ExprValue = std::variant<std::int64_t, std::string_view>;
// What a name stands for; nullptr result (false) when unknown.
using ExprScope = std::function<bool(std::string_view name, ExprValue& value)>;

class Expr {
 public:
  Expr() = default;  // the constant 0
  explicit Expr(std::int64_t constant);
  static Result<Expr> parse(std::string_view text);

  // Overflow, division or remainder by zero, an unknown name and a string used as a number are errors that quote the
  // expression and the offending part.
  Result<std::int64_t> evaluate(const ExprScope& scope) const;
  const std::string& text() const { return text_; }
  const std::set<std::string>& names() const { return names_; }

 private:
  struct Node;
  friend struct ExprParser;
  friend struct ExprEvaluator;
  std::string text_ = "0";
  std::set<std::string> names_;
  std::shared_ptr<const Node> root_;
};

}  // namespace fusediff
