// One element's value as JSON, both ways.
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "model/case_read.h"

namespace fusediff {

namespace {

constexpr std::string_view kBitsPrefix = "bits:0x";

struct Name {
  std::string_view text;
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::array kNames = {Name{"inf", kInfinity}, Name{"-inf", -kInfinity}, Name{"nan", kNaN},
                               Name{"-nan", -kNaN}};

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// [-]0x1.8p+1, rounded to nearest even where it has more digits than a double; nothing when it is not one or overflows.
std::optional<double> hex_float(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (!text.starts_with("0x")) return std::nullopt;
  text.remove_prefix(2);
  if (text.empty() || !is_hex(text[0])) return std::nullopt;
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::hex);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return negative ? -value : value;
}

std::optional<std::uint64_t> bits_of(std::string_view text) {
  text.remove_prefix(kBitsPrefix.size());
  if (text.empty() || !is_hex(text[0])) return std::nullopt;
  std::uint64_t bits = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return bits;
}

std::optional<Literal> spelled(std::string_view text) {
  Literal literal;
  if (text.starts_with(kBitsPrefix)) {
    const std::optional<std::uint64_t> bits = bits_of(text);
    if (!bits) return std::nullopt;
    literal.kind = Literal::Kind::kBits;
    literal.bits = *bits;
    return literal;
  }
  for (const Name& name : kNames) {
    literal.real = name.value;
    if (name.text == text) return literal;
  }
  const std::optional<double> value = hex_float(text);
  if (!value) return std::nullopt;
  literal.real = *value;
  return literal;
}

void write_real(JsonText& json, double value, bool hex) {
  if (std::isnan(value)) return json.string(std::signbit(value) ? "-nan" : "nan");
  if (!std::isfinite(value)) return json.string(value < 0 ? "-inf" : "inf");
  if (!hex) return json.number(value, true);
  char text[40] = "-0x";
  char* const digits = text + 3;
  const char* const end = std::to_chars(digits, text + sizeof text, std::fabs(value), std::chars_format::hex).ptr;
  const char* const begin = std::signbit(value) ? text : text + 1;
  json.string(std::string_view(begin, static_cast<std::size_t>(end - begin)));
}

}  // namespace

Literal read_literal(const JsonView& at, JsonTrouble& trouble) {
  Literal literal;
  if (at.is(JsonKind::kInteger) || at.is(JsonKind::kUnsigned)) {
    literal.kind = Literal::Kind::kInteger;
    literal.integer = read_integer(at, trouble, "a value");
    return literal;
  }
  if (at.is(JsonKind::kReal)) {
    literal.real = read_number(at, trouble, "a value");
    return literal;
  }
  const std::optional<Literal> found = at.is(JsonKind::kString) ? spelled(at.text()) : std::nullopt;
  if (found) return *found;
  trouble.at(at, at.found() +
                     " is not a value; legal: a number, a hex float like \"0x1.8p+1\", \"inf\", \"-inf\", \"nan\", "
                     "\"-nan\", \"bits:0x7fc00001\"");
  return literal;
}

void write_literal(JsonText& json, const Literal& literal, bool hex) {
  switch (literal.kind) {
    case Literal::Kind::kReal:
      return write_real(json, literal.real, hex);
    case Literal::Kind::kInteger:
      return json.integer(literal.integer);
    case Literal::Kind::kBits:
      break;
  }
  char text[32] = "bits:0x";
  const char* const end = std::to_chars(text + kBitsPrefix.size(), text + sizeof text, literal.bits, 16).ptr;
  json.string(std::string_view(text, static_cast<std::size_t>(end - text)));
}

}  // namespace fusediff
