#include "opencl/expression.h"

#include <algorithm>
#include <cctype>

#include "kit/failure.h"

namespace fusediff::opencl {
namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

constexpr int kMaxNesting = 64;

// Recursive descent, one function a level of precedence.
class Parser {
 public:
  Parser(std::string_view text, const Names& names, bool checks_only)
      : text_(text), names_(names), checks_only_(checks_only) {}

  int64_t whole() {
    const int64_t value = either();
    skip_spaces();
    if (at_ != text_.size()) {
      wrong("unexpected '" + std::string(text_.substr(at_, 1)) + "'");
    }
    return value;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    kit::fail("expression \"", text_, "\": ", std::string_view(what));
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
  }

  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) {
      return false;
    }
    at_ += token.size();
    return true;
  }

  int64_t either() {
    int64_t left = both();
    while (take("||")) {
      const int64_t right = both();
      left = left != 0 || right != 0 ? 1 : 0;
    }
    return left;
  }

  int64_t both() {
    int64_t left = compared();
    while (take("&&")) {
      const int64_t right = compared();
      left = left != 0 && right != 0 ? 1 : 0;
    }
    return left;
  }

  int64_t compared() {
    const int64_t left = sum();
    if (take("==")) return left == sum() ? 1 : 0;
    if (take("!=")) return left != sum() ? 1 : 0;
    if (take("<=")) return left <= sum() ? 1 : 0;
    if (take(">=")) return left >= sum() ? 1 : 0;
    if (take("<")) return left < sum() ? 1 : 0;
    if (take(">")) return left > sum() ? 1 : 0;
    return left;
  }

  int64_t exact(bool overflows, int64_t value) const {
    if (overflows && !checks_only_) {
      wrong("overflow");
    }
    return overflows ? 1 : value;
  }

  int64_t sum() {
    int64_t left = product();
    while (true) {
      int64_t value = 0;
      if (take("+")) {
        const bool overflows = __builtin_add_overflow(left, product(), &value);
        left = exact(overflows, value);
      } else if (take("-")) {
        const bool overflows = __builtin_sub_overflow(left, product(), &value);
        left = exact(overflows, value);
      } else {
        return left;
      }
    }
  }

  int64_t product() {
    int64_t left = single();
    while (true) {
      if (take("*")) {
        int64_t value = 0;
        const bool overflows = __builtin_mul_overflow(left, single(), &value);
        left = exact(overflows, value);
      } else if (take("/")) {
        const int64_t by = divisor(left);
        left /= by;
      } else if (take("%")) {
        const int64_t by = divisor(left);
        left %= by;
      } else {
        return left;
      }
    }
  }

  int64_t divisor(int64_t of) {
    const int64_t by = single();
    if (by == 0 || (by == -1 && of == INT64_MIN)) {
      if (!checks_only_) {
        wrong("division by zero or overflow");
      }
      return 1;
    }
    return by;
  }

  int64_t single() {
    if (++depth_ > kMaxNesting) {
      wrong("nested too deeply");
    }
    const int64_t value = single_of_depth();
    --depth_;
    return value;
  }

  int64_t single_of_depth() {
    if (take("(")) {
      const int64_t inner = either();
      if (!take(")")) {
        wrong("a ) is missing");
      }
      return inner;
    }
    if (take("-")) {
      int64_t value = 0;
      const bool overflows = __builtin_sub_overflow(int64_t{0}, single(), &value);
      return exact(overflows, value);
    }
    if (take("!")) {
      return single() == 0 ? 1 : 0;
    }
    skip_spaces();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      return number();
    }
    if (at_ < text_.size() && starts_name(text_[at_])) {
      return named();
    }
    wrong(at_ == text_.size() ? "it ends too early" : "unexpected '" + std::string(text_.substr(at_, 1)) + "'");
  }

  int64_t number() {
    int64_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
        wrong("overflow");
      }
    }
    return value;
  }

  int64_t named() {
    const size_t from = at_;
    while (at_ < text_.size() && in_name(text_[at_])) {
      ++at_;
    }
    const std::string_view name = text_.substr(from, at_ - from);
    if ((name == "min" || name == "max") && take("(")) {
      const int64_t a = either();
      if (!take(",")) {
        wrong("a , is missing");
      }
      const int64_t b = either();
      if (!take(")")) {
        wrong("a ) is missing");
      }
      return name == "min" ? std::min(a, b) : std::max(a, b);
    }
    const auto known = names_.find(name);
    if (known == names_.end()) {
      wrong("no dim or attribute is named " + std::string(name));
    }
    return known->second;
  }

  std::string_view text_;
  const Names& names_;
  bool checks_only_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

int64_t evaluate(std::string_view text, const Names& names) { return Parser(text, names, false).whole(); }

void check_expression(std::string_view text, const Names& names) { Parser(text, names, true).whole(); }

bool is_name(std::string_view text) {
  return !text.empty() && starts_name(text[0]) && std::all_of(text.begin(), text.end(), in_name);
}

}  // namespace fusediff::opencl
