#include "report/python_text.h"

#include <cmath>

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWidth = 120;
constexpr std::size_t kStep = 4;

std::string scalar(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    return std::isnan(number) ? "float(\"nan\")" : number > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  }
  // A JSON string is a Python string too: every escape that is written here means the same in both.
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string key_text(const std::string& key) { return scalar(Json(key)) + ": "; }

// On one line, however long; cut short once it is longer than `most`.
std::string flat(const Json& value, std::size_t most) {
  if (!value.is_structured()) return scalar(value);
  std::string text = value.is_object() ? "{" : "[";
  bool first = true;
  for (const auto& [key, entry] : value.items()) {
    if (!first) text += ", ";
    first = false;
    if (value.is_object()) text += key_text(key);
    text += flat(entry, most);
    if (text.size() > most) return text;
  }
  return text + (value.is_object() ? "}" : "]");
}

}  // namespace

std::string python_literal(const Json& value, std::size_t column, std::size_t indent) {
  const std::string line = flat(value, kWidth);
  if (column + line.size() < kWidth || !value.is_structured()) return line;
  std::string text = value.is_object() ? "{" : "[";
  const std::size_t inner = indent + kStep;
  std::string run;  // of short entries of a list that share a line
  for (const auto& [key, entry] : value.items()) {
    if (value.is_array() && !entry.is_structured()) {
      const std::string one = scalar(entry) + ",";
      if (!run.empty() && inner + run.size() + 1 + one.size() < kWidth) {
        run += " " + one;
        continue;
      }
      if (!run.empty()) text += "\n" + std::string(inner, ' ') + run;
      run = one;
      continue;
    }
    const std::string name = value.is_object() ? key_text(key) : "";
    text += "\n" + std::string(inner, ' ') + name + python_literal(entry, inner + name.size(), inner) + ",";
  }
  if (!run.empty()) text += "\n" + std::string(inner, ' ') + run;
  return text + "\n" + std::string(indent, ' ') + (value.is_object() ? "}" : "]");
}

std::string python_docstring(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\' || c == '"') safe += '\\';
    safe += c;
  }
  return safe;
}

}  // namespace fusediff
