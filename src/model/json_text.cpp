#include "model/json_text.h"

#include <cmath>

namespace fusediff {

void JsonText::line() {
  if (indent_ < 0) return;
  out_ += '\n';
  out_.append(static_cast<std::size_t>(depth_ * indent_), ' ');
}

void JsonText::item() {
  if (keyed_) {
    keyed_ = false;
    return;
  }
  if (!first_) out_ += ',';
  if (depth_ > 0) line();
  first_ = false;
}

void JsonText::open(char bracket) {
  item();
  out_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonText::close(char bracket) {
  --depth_;
  if (!first_) line();
  out_ += bracket;
  first_ = false;
}

void JsonText::key(std::string_view name) {
  item();
  append_string(name);
  out_ += indent_ < 0 ? ":" : ": ";
  keyed_ = true;
}

void JsonText::string(std::string_view text) {
  item();
  append_string(text);
}

void JsonText::number(double value, bool with_point) {
  item();
  append_number(value, with_point);
}

void JsonText::numbers(double first, double second) {
  item();
  out_ += '[';
  append_number(first, false);
  out_ += indent_ < 0 ? "," : ", ";
  append_number(second, false);
  out_ += ']';
}

void JsonText::append_number(double value, bool with_point) {
  char text[32];
  const std::string_view digits(text,
                                static_cast<std::size_t>(std::to_chars(text, text + sizeof text, value).ptr - text));
  if (!std::isfinite(value)) {
    append_string(digits);
    return;
  }
  out_ += digits;
  // "-0" is the integer 0 to JSON readers and would lose its sign.
  const bool integral = digits.find_first_of(".e") == std::string_view::npos;
  if (integral && (with_point || (value == 0 && std::signbit(value)))) out_ += ".0";
}

void JsonText::append_string(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out_ += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out_ += "\\u00";
      out_ += kHex[static_cast<unsigned char>(c) >> 4];
      out_ += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out_ += c;
    }
  }
  out_ += '"';
}

}  // namespace fusediff
