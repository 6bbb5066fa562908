// Writes JSON text, keys in the order of the calls: on one line, or indented with lists of numbers on one line. It
// trusts its caller to open, name and close in order.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusediff {

class JsonText {
 public:
  // Appends to out, which must outlive it. indent: spaces a level; -1: one line.
  JsonText(std::string& out, int indent) : out_(out), indent_(indent) {}

  void open(char bracket);   // '{' or '['
  void close(char bracket);  // '}' or ']'
  void key(std::string_view name);
  void string(std::string_view text);
  template <typename Integer>
  void integer(Integer value) {
    item();
    char text[24];
    out_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }
  template <typename Integer>
  void integers(const std::vector<Integer>& values) {
    item();
    out_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += indent_ < 0 ? "," : ", ";
      char text[24];
      out_.append(text, std::to_chars(text, text + sizeof text, values[i]).ptr);
    }
    out_ += ']';
  }
  // The shortest text that reads back to the same double. with_point: never in the spelling of an integer. What is not
  // finite becomes a string.
  void number(double value, bool with_point);
  void numbers(double first, double second);

 private:
  void item();  // comma and line break in front of an item, unless a key stands there
  void line();
  void append_number(double value, bool with_point);
  void append_string(std::string_view text);

  std::string& out_;
  int indent_;
  int depth_ = 0;
  bool first_ = true;
  bool keyed_ = false;
};

}  // namespace fusediff
