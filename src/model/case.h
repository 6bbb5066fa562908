// A case: the recipe of one check, as it stands in a corpus file. It names no target. Reading and writing JSON is in
// model/case_json.h, binding to an operator in model/call.h, drawing the values in model/values.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/experiment.h"
#include "model/schema.h"
#include "model/tensor.h"

namespace fusediff {

enum class FillKind {
  kNormal,         // a: mean, b: standard deviation
  kUniform,        // [a, b)
  kGrid,           // `count` equally spaced values from a to b
  kConstant,       // a (a double, or integer, or bits)
  kSpecial,        // NaN, infinities, zeros, denormals, largest finite, around the overflow of exp
  kFiniteSpecial,  // the finite ones of these
  kShifted,        // mean 10^a, spread 10^-b
  kNegative,       // minus the magnitude of normal(a, b)
  kRamp,           // from a to b, by index
  kOneHot,         // 1 at one seeded column of each row, else 0
  kBits,           // raw elements
  // Of roles index, counts, offsets and mask, within the rule's range and sum:
  kIndexUniform,
  kSkewed,  // all on one
  kUnused,  // some values never
  kPermutation,
};

// Does the recipe draw from its seed?
bool draws(FillKind kind);

// One element's value as a case spells it.
struct Literal {
  enum class Kind { kReal, kInteger, kBits } kind = Kind::kReal;
  double real = 0;
  std::int64_t integer = 0;
  std::uint64_t bits = 0;
  // By kind and what that kind spells: -0 differs from 0; a NaN equals a NaN of the same sign.
  bool operator==(const Literal& other) const;
};

struct Fill {
  FillKind kind = FillKind::kConstant;
  double a = 0;
  double b = 0;
  std::int64_t count = 0;  // kGrid
  std::uint64_t seed = 0;
  Literal constant;                                    // kConstant
  std::shared_ptr<const std::vector<std::byte>> bits;  // kBits: stored elements, little-endian
  std::string bits_file;                               // kBits from "file.safetensors#name", as written
  std::optional<DType> bits_dtype;                     // kBits: what the elements are, where it is known: always of a file
  // By kind and what that kind uses (a seed only where the recipe draws); bits by content.
  bool operator==(const Fill& other) const;
};

// Lays another fill over a block of the stored elements; rows count the flattened leading dims; both ends inclusive.
struct Patch {
  std::int64_t row_low = 0, row_high = 0;
  std::int64_t column_low = 0, column_high = 0;
  Fill fill;
  bool operator==(const Patch&) const = default;
};

struct InputValue {
  Fill fill;
  std::vector<Patch> patches;
  std::map<std::int64_t, Literal> set;  // logical row-major index (index 0 only along a dimension of stride 0)
  bool operator==(const InputValue&) const = default;
};

struct LayoutChoice {
  std::optional<std::vector<std::int64_t>> stride;  // absent: dense
  std::int64_t offset = 0;
  Place place = Place::kEnd;
  std::string on;  // outputs: the input that it lies on
  bool operator==(const LayoutChoice&) const = default;
};

struct Case {
  std::string op;
  std::map<std::string, std::int64_t> dims;
  std::map<std::string, AttrValue> attrs;      // those that differ from absent
  std::map<std::string, DType> dtypes;         // of the tensors that have a choice
  std::map<std::string, InputValue> inputs;    // inputs and givens; an optional input that is missing is absent
  std::map<std::string, LayoutChoice> layout;  // of inputs and outputs
  std::vector<std::string> unwanted;           // optional outputs that are not asked for
  Experiment experiment;
  bool operator==(const Case&) const = default;
};

}  // namespace fusediff
