// An operator as data: the structs that schema.md describes. Reading the JSON is in model/schema_json.h; nothing here
// knows an operator by name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/dtype.h"
#include "model/expr.h"

namespace fusediff {

// The value of an attribute; a bool is an int64 0 or 1, as in the ABI.
using AttrValue = std::variant<std::int64_t, double, std::string>;

struct DimRule {
  std::string name;
  std::int64_t low = 0;  // the range that is tried, inclusive; never a rule of legality
  std::int64_t high = 0;
  std::vector<std::int64_t> typical;
};

enum class AttrKind { kInt, kFloat, kBool, kChoice };

struct AttrRule {
  std::string name;
  AttrKind kind = AttrKind::kInt;
  std::optional<Expr> derived;  // kInt given by an expression over dims: never stands in a case
  std::int64_t int_low = 0;     // kInt with a range
  std::int64_t int_high = 0;
  double float_low = 0;  // kFloat
  double float_high = 0;
  bool log_scale = false;
  std::vector<std::string> choices;   // kChoice
  std::optional<AttrValue> standard;  // "default"
  std::vector<AttrValue> also;
  std::optional<Expr> condition;  // "if": where false, passed with its default
};

struct DTypeRule {
  std::vector<DType> choices;  // one: fixed
  std::string same_as;         // "=x": the dtype that tensor x got; choices is empty then
};

enum class LayoutRule { kDense, kInnerDense, kAny };

enum class Role {
  kActivation,
  kScore,
  kBias,
  kProbability,
  kScale,
  kCotangent,
  kMask,
  kIndex,
  kCounts,
  kOffsets,
  kSaved
};

// Where a saved tensor comes from: the output of another operator, computed once from this case's inputs and givens.
struct SavedRule {
  std::string op;
  std::string output;
  std::map<std::string, std::string> inputs;  // producer input -> tensor of this operator
};

struct InputRule {
  std::string name;
  std::vector<Expr> shape;
  DTypeRule dtype;
  LayoutRule layout = LayoutRule::kDense;
  std::int64_t align = 0;  // bytes; 0: the element
  Role role = Role::kActivation;
  std::optional<std::pair<Expr, Expr>> range;  // kIndex, kCounts: inclusive
  bool distinct = false;                       // kIndex: in a row
  bool sorted = false;                         // kIndex: in a row
  std::vector<std::int64_t> also;              // kIndex: sentinels outside the range
  std::optional<Expr> sum;                     // kCounts, kOffsets
  std::optional<SavedRule> saved;
  bool optional = false;
  std::optional<Expr> condition;  // "if": present exactly when it holds
};

enum class AlwaysKind { kRange, kDistinctInRow, kFiniteIfInputsFinite, kRowSums, kPermutation };

struct AlwaysRule {
  AlwaysKind kind = AlwaysKind::kRange;
  std::variant<Expr, double> low, high;  // kRange
  double row_sum = 0, within = 0;        // kRowSums
  std::optional<Expr> condition;
};

// How much two paths may differ: by nothing, or by a number of ULP per dtype.
struct AgreeRule {
  std::map<DType, std::uint64_t> ulp;  // empty: bits
  std::string why;
  std::uint64_t allowed(DType dtype) const {
    const auto at = ulp.find(dtype);
    return at == ulp.end() ? 0 : at->second;
  }
};

// kAbsInputs: the truth computed on the absolute values of all float inputs: the sum of absolute terms of a sum of
// products. kRowMaxProduct: the largest magnitudes of tensors in the row of the element, see BoundRule::products.
enum class BoundScale { kElement, kRowMax, kRowAbsSum, kAbsInputs, kRowMaxProduct };

// Is the scale made of input values?
constexpr bool made_of_inputs(BoundScale of) {
  return of == BoundScale::kAbsInputs || of == BoundScale::kRowMaxProduct;
}

struct BoundRule {
  Expr ulp;                        // of every dtype, where by_dtype is empty
  std::map<DType, Expr> by_dtype;  // a dtype that is not there has no stated bound
  std::string by;                  // the tensor whose dtype by_dtype means; "": this output
  BoundScale of = BoundScale::kElement;
  // kRowMaxProduct: the scale is the sum of these products. A factor is a float input, output or attribute; the same
  // one may stand twice. A product of nothing is 1.
  std::vector<std::vector<std::string>> products;
  std::string why;
};

struct OutputRule {
  std::string name;
  std::vector<Expr> shape;
  DTypeRule dtype;
  LayoutRule layout = LayoutRule::kDense;
  std::int64_t align = 0;
  std::optional<int> stage;
  bool optional = false;
  std::optional<Expr> condition;
  std::vector<AlwaysRule> always;
  AgreeRule agree;
  bool nan_bits = false;  // "nan": "bits"
  std::optional<BoundRule> bound;
};

enum class Order { kLargest, kSmallest, kByAttr };
enum class NanOrder { kLeast, kGreatest, kAsMinusInf, kNever };

struct DecideRule {
  std::string by;
  std::string pick;
  Expr count;
  Order order = Order::kLargest;
  std::string order_attr;  // kByAttr: a bool; true is largest
  NanOrder nan = NanOrder::kLeast;
  bool zeros_equal = true;
  bool tie_lowest_index = true;  // false: any
  bool sorted = true;
  std::string among;  // input with the number of candidates per row, or ""
  std::int64_t none = -1;
  bool has_none = false;
  std::string values;  // output that equals `by` at the picks, or ""
};

struct RowsRule {
  std::string dim;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  bool all_outputs = false;
};

struct InplaceRule {
  std::string output;
  std::string input;
  bool always = false;
};

struct GradientRule {
  std::string of;
  std::map<std::string, std::string> wrt;         // gradient output -> forward input
  std::map<std::string, std::string> cotangents;  // input here -> forward output
};

struct Operator {
  std::string name;
  std::vector<std::string> paths;
  std::vector<DimRule> dims;
  std::vector<AttrRule> attrs;
  std::vector<Expr> where;
  std::vector<InputRule> inputs;
  std::vector<InputRule> given;
  std::vector<OutputRule> outputs;
  std::vector<DecideRule> decide;
  std::optional<RowsRule> rows;
  std::vector<InplaceRule> inplace;
  std::optional<GradientRule> gradient;
  std::vector<std::string> deterministic_paths;  // of paths
  bool shared_context = true;                    // "threads"
  std::uint64_t slots_key = 0;                   // of its resolved expressions, see resolve_names(); 0: by name

  bool has_path(std::string_view path) const;
  bool is_deterministic(std::string_view path) const;
  const DimRule* dim(std::string_view name) const;  // nullptr: no such; likewise below
  const AttrRule* attr(std::string_view name) const;
  const InputRule* input(std::string_view name) const;   // inputs only
  const InputRule* source(std::string_view name) const;  // inputs, then given
  const OutputRule* output(std::string_view name) const;
};

// Turns the names in all expressions of the operator into positions, dims first and then attributes, so that they are
// fast to evaluate. Once dims and attributes are complete; to be called again when one is added.
void resolve_names(Operator& op);

struct Schema {
  std::vector<Operator> operators;
  const Operator* find(std::string_view name) const;
};

}  // namespace fusediff
