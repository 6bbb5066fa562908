#include <array>
#include <charconv>
#include <optional>

#include "model/expr.h"
#include "model/expr_code.h"
#include "model/quote.h"

namespace fusediff {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

struct BinaryOp {
  std::string_view sign;
  ExprOp op;
  int level;  // higher binds tighter
};

// Longer signs first.
constexpr std::array kBinaryOps = {BinaryOp{"||", ExprOp::kOrJump, 0},    BinaryOp{"&&", ExprOp::kAndJump, 1},
                                   BinaryOp{"==", ExprOp::kEqual, 2},     BinaryOp{"!=", ExprOp::kNotEqual, 2},
                                   BinaryOp{"<=", ExprOp::kLessEqual, 3}, BinaryOp{">=", ExprOp::kGreaterEqual, 3},
                                   BinaryOp{"<", ExprOp::kLess, 3},       BinaryOp{">", ExprOp::kGreater, 3},
                                   BinaryOp{"+", ExprOp::kAdd, 4},        BinaryOp{"-", ExprOp::kSubtract, 4},
                                   BinaryOp{"*", ExprOp::kMultiply, 5},   BinaryOp{"/", ExprOp::kDivide, 5},
                                   BinaryOp{"%", ExprOp::kRemainder, 5}};

constexpr std::size_t kMaxExprText = 4096;

}  // namespace

// Precedence climbing into postfix code. Every function returns false once `error` is set.
struct ExprParser {
  std::string_view text;
  std::size_t at = 0;
  int depth = 0;
  ExprCode code;
  std::set<std::string> names;
  std::string error;

  bool fail(std::string what) {
    if (error.empty()) error = std::move(what);
    return false;
  }

  void skip() {
    while (at < text.size() && is_space(text[at])) ++at;
  }

  bool deeper() {
    if (++depth <= kMaxExprNesting) return true;
    return fail("nested deeper than " + std::to_string(kMaxExprNesting));
  }

  std::size_t push(ExprOp op, std::size_t begin, std::int64_t value = 0) {
    code.steps.push_back({op, kNoSlot, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at), value});
    return code.steps.size() - 1;
  }

  bool push_string(ExprOp op, std::size_t begin, std::string_view content) {
    code.strings.emplace_back(content);
    push(op, begin, static_cast<std::int64_t>(code.strings.size() - 1));
    return true;
  }

  // Digits at `at`; with `negative`, so that the lowest int64 can be written.
  bool integer(std::size_t begin, bool negative) {
    const std::size_t first = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at < text.size() && (is_letter(text[at]) || text[at] == '.')) {
      return fail("only whole decimal numbers may stand in an expression, at " + quote(text.substr(first)));
    }
    std::string digits = negative ? "-" : "";
    digits += text.substr(first, at - first);
    std::int64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (read.ec != std::errc()) return fail(quote(digits) + " is beyond a 64-bit integer");
    push(ExprOp::kConstant, begin, value);
    return true;
  }

  bool literal() {
    const std::size_t begin = at++;
    const std::size_t close = text.find('\'', at);
    if (close == std::string_view::npos) return fail("a string lacks its closing quote");
    const std::string_view content = text.substr(at, close - at);
    at = close + 1;
    return push_string(ExprOp::kString, begin, content);
  }

  bool primary() {
    skip();
    if (at == text.size()) return fail("a number, name or \"(\" is missing at the end");
    const std::size_t begin = at;
    const char c = text[at];
    if (is_digit(c)) return integer(begin, false);
    if (c == '\'') return literal();
    if (is_letter(c)) {
      while (at < text.size() && (is_letter(text[at]) || is_digit(text[at]))) ++at;
      const std::string_view name = text.substr(begin, at - begin);
      names.emplace(name);
      return push_string(ExprOp::kName, begin, name);
    }
    if (c != '(') return fail("unexpected " + quote(text.substr(at)));
    ++at;
    if (!deeper() || !binary(0)) return false;
    --depth;
    skip();
    if (at == text.size() || text[at] != ')') return fail("a \")\" is missing");
    ++at;
    return true;
  }

  bool unary() {
    skip();
    const std::size_t begin = at;
    if (at == text.size() || (text[at] != '-' && text[at] != '!')) return primary();
    const bool negate = text[at++] == '-';
    skip();
    if (negate && at < text.size() && is_digit(text[at])) return integer(begin, true);
    if (!deeper() || !unary()) return false;
    --depth;
    push(negate ? ExprOp::kNegate : ExprOp::kNot, begin);
    return true;
  }

  const BinaryOp* next_binary(int level) {
    skip();
    for (const BinaryOp& op : kBinaryOps) {
      if (text.substr(at).starts_with(op.sign)) return op.level >= level ? &op : nullptr;
    }
    return nullptr;
  }

  bool binary(int level) {
    skip();
    const std::size_t begin = at;
    if (!unary()) return false;
    while (const BinaryOp* op = next_binary(level)) {
      at += op->sign.size();
      const bool jumps = op->op == ExprOp::kAndJump || op->op == ExprOp::kOrJump;
      const std::size_t jump = jumps ? push(op->op, begin) : 0;
      if (!binary(op->level + 1)) return false;
      if (jumps) {
        code.steps[jump].value = static_cast<std::int64_t>(push(ExprOp::kTruth, begin)) + 1;
      } else {
        push(op->op, begin);
      }
    }
    return true;
  }

  Result<Expr> parse() {
    if (text.size() > kMaxExprText) {
      return user_error("an expression of " + std::to_string(text.size()) + " characters; at most " +
                        std::to_string(kMaxExprText));
    }
    if (binary(0)) {
      skip();
      if (at != text.size()) fail("unexpected " + quote(text.substr(at)));
    }
    if (!error.empty()) return user_error("in expression " + quote(text) + ": " + error);
    Expr expr;
    expr.text_ = std::string(text);
    expr.names_ = std::move(names);
    expr.code_ = std::make_shared<const ExprCode>(std::move(code));
    Status kinds = expr.check_kinds([](std::string_view) { return ExprKind::kUnknown; });
    if (!kinds.ok()) return kinds.error();
    return expr;
  }
};

Result<Expr> Expr::parse(std::string_view text) {
  ExprParser parser;
  parser.text = text;
  return parser.parse();
}

}  // namespace fusediff
