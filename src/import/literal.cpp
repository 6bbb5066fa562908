#include "import/literal.h"

#include <charconv>

#include "model/quote.h"

namespace fusediff {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<PyValue> parse() {
    PyValue value;
    if (!read(value, 0)) return error();
    skip_spaces();
    if (at_ != text_.size()) fail("nothing more belongs here");
    if (!wrong_.empty()) return error();
    return value;
  }

 private:
  Error error() const { return user_error("character " + std::to_string(at_ + 1) + ": " + wrong_); }

  bool fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
    return false;
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool read(PyValue& value, int depth) {
    if (depth > kMaxPyNesting) return fail("nested deeper than " + std::to_string(kMaxPyNesting));
    if (++count_ > kMaxPyValues) return fail("more than " + std::to_string(kMaxPyValues) + " values");
    const char c = peek();
    if (c == '(' || c == '[') return read_sequence(value, c == '(' ? ')' : ']', depth);
    if (c == '{') return read_dict(value, depth);
    if (c == '\'' || c == '"') return read_string(value);
    if ((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.') return read_number(value);
    return read_word(value);
  }

  bool read_sequence(PyValue& value, char close, int depth) {
    ++at_;
    value.kind = PyValue::Kind::kSequence;
    bool comma = true;
    while (!take(close)) {
      if (!comma) return fail("a comma or a bracket belongs here");
      PyValue item;
      if (!read(item, depth + 1)) return false;
      value.items.push_back(std::move(item));
      comma = take(',');
    }
    if (close == ')' && value.items.size() == 1 && !comma) {  // (3) is 3
      PyValue only = std::move(value.items.front());
      value = std::move(only);
    }
    return true;
  }

  bool read_dict(PyValue& value, int depth) {
    ++at_;
    value.kind = PyValue::Kind::kDict;
    bool comma = true;
    while (!take('}')) {
      if (!comma) return fail("a comma or a bracket belongs here");
      PyValue key, item;
      if (peek() != '\'' && peek() != '"') return fail("a key in quotes belongs here");
      if (!read_string(key)) return false;
      if (value.find(key.text) != nullptr) return fail("the key " + quote(key.text) + " stands twice");
      if (!take(':')) return fail("a colon belongs here");
      if (!read(item, depth + 1)) return false;
      value.members.push_back({std::move(key.text), std::move(item)});
      comma = take(',');
    }
    return true;
  }

  bool read_string(PyValue& value) {
    const char end = peek();
    ++at_;
    value.kind = PyValue::Kind::kString;
    while (at_ < text_.size() && text_[at_] != end) {
      if (text_[at_] == '\\') {
        ++at_;
        if (at_ >= text_.size() || std::string_view("\\'\"").find(text_[at_]) == std::string_view::npos) {
          return fail("an escape that is not read; legal are \\\\, \\' and \\\"");
        }
      }
      value.text += text_[at_++];
    }
    if (at_ >= text_.size()) return fail("a string that does not end");
    ++at_;
    return true;
  }

  bool read_number(PyValue& value) {
    const bool plus = text_[at_] == '+';
    if (plus) ++at_;
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    const auto real = std::from_chars(begin, end, value.real);
    const auto integer = std::from_chars(begin, end, value.integer);
    if (real.ec != std::errc()) return fail("a number that is not read");
    const bool whole = integer.ec == std::errc() && integer.ptr == real.ptr;
    if (!whole && std::string_view(begin, real.ptr).find_first_of(".eEn") == std::string_view::npos) {
      return fail("an integer beyond 64 bits");
    }
    value.kind = whole ? PyValue::Kind::kInteger : PyValue::Kind::kReal;
    if (!whole) value.integer = 0;
    at_ += static_cast<std::size_t>(real.ptr - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // of Python 2
    return true;
  }

  bool read_word(PyValue& value) {
    for (const auto& [word, kind, truth] :
         {Word{"None", PyValue::Kind::kNone, false}, Word{"True", PyValue::Kind::kBool, true},
          Word{"False", PyValue::Kind::kBool, false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      value.kind = kind;
      value.truth = truth;
      value.integer = truth ? 1 : 0;
      return true;
    }
    return fail(at_ >= text_.size() ? "ends too early" : "a Python literal belongs here");
  }

  struct Word {
    std::string_view word;
    PyValue::Kind kind;
    bool truth;
  };

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t count_ = 0;
  std::string wrong_;
};

}  // namespace

const PyValue* PyValue::find(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<PyValue> parse_py_literal(std::string_view text) { return Parser(text).parse(); }

}  // namespace fusediff
