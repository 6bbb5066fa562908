// The parts of parse_schema(), one JSON object each: they say what has the wrong type or spelling. Whether names are
// declared and rules fit together is in schema_check.h. For schema_json*.cpp only.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json_tree.h"
#include "model/quote.h"
#include "model/schema.h"

namespace fusediff {

template <typename Value, std::size_t kCount>
using SpellingTable = std::array<std::pair<std::string_view, Value>, kCount>;

// The value that the table spells so. kind: with its article.
template <typename Value, std::size_t kCount>
Value read_spelling(const JsonView& at, JsonTrouble& trouble, std::string_view kind,
                    const SpellingTable<Value, kCount>& table) {
  const std::string text = read_string(at, trouble, kind);
  std::vector<std::string> legal;
  for (const auto& [name, value] : table) {
    if (name == text) return value;
    legal.emplace_back(name);
  }
  trouble.at(at, not_one_of(text, kind, legal));
  return table[0].second;
}

// An expression as text, or an integer.
Expr read_expr(const JsonView& at, JsonTrouble& trouble);
DType read_dtype(const JsonView& at, JsonTrouble& trouble);
// A list of different dtypes, or one name.
std::vector<DType> read_dtypes(const JsonView& at, JsonTrouble& trouble);
// A list of different names. kind: of one of them, with its article.
std::vector<std::string> read_names(const JsonView& at, JsonTrouble& trouble, std::string_view kind);

std::vector<DimRule> read_dims(const JsonView& at, JsonTrouble& trouble);
std::vector<AttrRule> read_attrs(const JsonView& at, JsonTrouble& trouble);
// given: of tensors that are never passed.
std::vector<InputRule> read_inputs(const JsonView& at, JsonTrouble& trouble, bool given);
std::vector<OutputRule> read_outputs(const JsonView& at, JsonTrouble& trouble);
std::vector<DecideRule> read_decide(const JsonView& at, JsonTrouble& trouble);
RowsRule read_rows(const JsonView& at, JsonTrouble& trouble);
std::vector<InplaceRule> read_inplace(const JsonView& at, JsonTrouble& trouble);
GradientRule read_gradient(const JsonView& at, JsonTrouble& trouble);

// What inputs and outputs share.
struct TensorRule {
  std::string name;
  std::vector<Expr> shape;
  DTypeRule dtype;
  LayoutRule layout = LayoutRule::kDense;
  std::int64_t align = 0;
  bool optional = false;
  std::optional<Expr> condition;
};
TensorRule read_tensor(JsonObject& object, JsonTrouble& trouble);

}  // namespace fusediff
