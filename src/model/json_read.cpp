// The strict readers of json_tree.h.
#include <algorithm>
#include <array>
#include <charconv>

#include "model/json_tree.h"
#include "model/quote.h"

namespace fusediff {

namespace {

constexpr std::size_t kMaxIdentifier = 128;

std::string between(std::size_t low, std::size_t high) {
  if (low == high) return std::to_string(low);
  if (high == std::numeric_limits<std::size_t>::max()) return "at least " + std::to_string(low);
  return std::to_string(low) + " to " + std::to_string(high);
}

}  // namespace

std::string JsonView::found() const {
  const JsonNode& at = node();
  switch (at.kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return at.integer != 0 ? "true" : "false";
    case JsonKind::kInteger:
      return std::to_string(at.integer);
    case JsonKind::kUnsigned:
      return std::to_string(at.unsigned_one);
    case JsonKind::kReal: {
      const std::string text = quote(at.text);
      return text.substr(1, text.size() - 2);
    }
    case JsonKind::kString:
      return quote(at.text);
    case JsonKind::kArray:
      return "a list of " + std::to_string(at.count);
    case JsonKind::kObject:
      return "an object";
  }
  return "";
}

void JsonTrouble::at(const JsonView& where, std::string_view what) {
  if (!error_) at(where.pointer(), what);
}

void JsonTrouble::at(const std::string& pointer, std::string_view what) {
  if (error_) return;
  std::string text = pointer.empty() ? "" : pointer + ": ";
  error_ = user_error(text.append(what));
}

std::int64_t read_integer(const JsonView& value, JsonTrouble& trouble, std::string_view what, std::int64_t low,
                          std::int64_t high) {
  constexpr auto kHighest = std::numeric_limits<std::int64_t>::max();
  const JsonNode& node = value.node();
  const bool small = node.kind == JsonKind::kUnsigned && node.unsigned_one <= static_cast<std::uint64_t>(kHighest);
  if (small || node.kind == JsonKind::kInteger) {
    const std::int64_t number = small ? static_cast<std::int64_t>(node.unsigned_one) : node.integer;
    if (number >= low && number <= high) return number;
  }
  std::string legal = "; an integer ";
  if (low == std::numeric_limits<std::int64_t>::min()) {
    legal += high == kHighest ? "of 64 bits" : "up to " + std::to_string(high);
  } else {
    legal += "from " + std::to_string(low) + (high == kHighest ? "" : " to " + std::to_string(high));
  }
  trouble.at(value, value.found() + " is not " + std::string(what) + legal + " belongs here");
  return low > 0 ? low : std::min<std::int64_t>(high, 0);
}

std::uint64_t read_unsigned(const JsonView& value, JsonTrouble& trouble, std::string_view what) {
  if (value.is(JsonKind::kUnsigned)) return value.node().unsigned_one;
  trouble.at(value, value.found() + " is not " + std::string(what) + "; an integer from 0 to 2^64 - 1 belongs here");
  return 0;
}

double read_number(const JsonView& value, JsonTrouble& trouble, std::string_view what) {
  const JsonNode& node = value.node();
  if (node.kind == JsonKind::kReal) return node.real;
  if (node.kind == JsonKind::kUnsigned) return static_cast<double>(node.unsigned_one);
  if (node.kind == JsonKind::kInteger) {
    // A sign in front of 0 is kept: "-0" is an integer to JSON, but a number here.
    return node.integer == 0 ? -0.0 : static_cast<double>(node.integer);
  }
  trouble.at(value, value.found() + " is not " + std::string(what) + "; a finite number belongs here");
  return 0;
}

bool read_bool(const JsonView& value, JsonTrouble& trouble) {
  if (!value.is(JsonKind::kBool)) trouble.at(value, value.found() + " stands where true or false belongs");
  return value.is(JsonKind::kBool) && value.node().integer != 0;
}

std::string read_string(const JsonView& value, JsonTrouble& trouble, std::string_view what) {
  if (!value.is(JsonKind::kString)) {
    trouble.at(value, value.found() + " is not " + std::string(what) + "; a string belongs here");
    return "";
  }
  return std::string(value.text());
}

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto fine = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= kMaxIdentifier && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), fine);
}

std::string read_identifier(const JsonView& value, JsonTrouble& trouble, std::string_view what) {
  std::string text = read_string(value, trouble, what);
  if (value.is(JsonKind::kString) && !is_identifier(text)) {
    trouble.at(value,
               quote(text) + " is not " + std::string(what) + ": letters, digits and _, no digit first, belong here");
  }
  return text;
}

bool expect_array(const JsonView& value, JsonTrouble& trouble, std::string_view what, std::size_t low,
                  std::size_t high) {
  if (value.is(JsonKind::kArray) && value.size() >= low && value.size() <= high) return true;
  std::string legal = "a list";
  if (low > 0 || high != std::numeric_limits<std::size_t>::max()) legal += " of " + between(low, high);
  trouble.at(value, value.found() + " is not " + std::string(what) + "; " + legal + " belongs here");
  return false;
}

bool expect_object(const JsonView& value, JsonTrouble& trouble, std::string_view what) {
  if (value.is(JsonKind::kObject)) return true;
  trouble.at(value, value.found() + " is not " + std::string(what) + "; an object belongs here");
  return false;
}

JsonObject::JsonObject(const JsonView& value, JsonTrouble& trouble, std::string_view what)
    : value_(value), trouble_(trouble), fine_(expect_object(value, trouble, what)) {}

std::optional<JsonView> JsonObject::find(std::string_view key) {
  if (!fine_) return std::nullopt;
  asked_.push_back(key);
  std::optional<JsonView> found = value_.find(key);
  if (found) ++used_;
  return found;
}

std::optional<JsonView> JsonObject::need(std::string_view key) {
  std::optional<JsonView> found = find(key);
  if (!found && fine_) trouble_.at(value_, "the key " + quote(key) + " is missing");
  return found;
}

void JsonObject::finish() {
  if (!fine_ || used_ == value_.size()) return;
  for (const JsonView member : value_) {
    if (std::find(asked_.begin(), asked_.end(), member.key()) != asked_.end()) continue;
    const std::vector<std::string> legal(asked_.begin(), asked_.end());
    trouble_.at(member, not_one_of(member.key(), "a key here", legal));
    return;
  }
}

}  // namespace fusediff
