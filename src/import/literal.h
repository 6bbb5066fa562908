// Python literals as other tools write them into headers and table cells: numbers, strings, True, False, None, tuples,
// lists and dicts. Nothing is evaluated: names, calls and operators are errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fusediff {

struct PyMember;

struct PyValue {
  enum class Kind { kNone, kBool, kInteger, kReal, kString, kSequence, kDict } kind = Kind::kNone;
  bool truth = false;
  std::int64_t integer = 0;
  double real = 0;  // also of an integer
  std::string text;
  std::vector<PyValue> items;     // kSequence: a tuple or a list
  std::vector<PyMember> members;  // kDict, keys are strings

  bool is(Kind wanted) const { return kind == wanted; }
  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kReal; }
  const PyValue* find(std::string_view name) const;  // in a dict; nullptr: not there
};

struct PyMember {
  std::string name;
  PyValue value;
};

// One literal and nothing after it but spaces. At most kMaxPyNesting deep and kMaxPyValues values; an integer beyond
// int64, a key that is no string and a key that stands twice are errors. An error says at which character.
inline constexpr int kMaxPyNesting = 16;
inline constexpr std::size_t kMaxPyValues = 1 << 16;
Result<PyValue> parse_py_literal(std::string_view text);

}  // namespace fusediff
