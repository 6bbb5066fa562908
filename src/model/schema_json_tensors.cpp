// Inputs and outputs.
#include <algorithm>

#include "model/schema_read.h"

namespace fusediff {

namespace {

constexpr std::int64_t kMaxAlign = 4096;
constexpr std::size_t kMaxRank = 16;
constexpr std::int64_t kMaxStage = 1000;
constexpr std::int64_t kMaxUlp = std::int64_t{1} << 62;

constexpr SpellingTable<LayoutRule, 3> kLayouts = {
    {{"dense", LayoutRule::kDense}, {"inner_dense", LayoutRule::kInnerDense}, {"any", LayoutRule::kAny}}};

constexpr SpellingTable<Role, 11> kRoles = {{{"activation", Role::kActivation},
                                             {"score", Role::kScore},
                                             {"bias", Role::kBias},
                                             {"probability", Role::kProbability},
                                             {"scale", Role::kScale},
                                             {"cotangent", Role::kCotangent},
                                             {"mask", Role::kMask},
                                             {"index", Role::kIndex},
                                             {"counts", Role::kCounts},
                                             {"offsets", Role::kOffsets},
                                             {"saved", Role::kSaved}}};

constexpr SpellingTable<BoundScale, 4> kScales = {{{"element", BoundScale::kElement},
                                                   {"row_max", BoundScale::kRowMax},
                                                   {"row_abs_sum", BoundScale::kRowAbsSum},
                                                   {"abs_inputs", BoundScale::kAbsInputs}}};

DTypeRule read_dtype_rule(const JsonView& at, JsonTrouble& trouble) {
  DTypeRule rule;
  if (at.is(JsonKind::kString) && at.text().starts_with('=')) {
    rule.same_as = std::string(at.text().substr(1));
  } else {
    rule.choices = read_dtypes(at, trouble);
  }
  return rule;
}

SavedRule read_saved(const JsonView& at, JsonTrouble& trouble) {
  SavedRule rule;
  JsonObject object(at, trouble, "the origin of a saved tensor");
  if (const auto value = object.need("op")) rule.op = read_string(*value, trouble, "an operator");
  if (const auto value = object.need("output")) rule.output = read_identifier(*value, trouble, "an output");
  const auto inputs = object.need("inputs");
  if (inputs && expect_object(*inputs, trouble, "a map from the producer's inputs to tensors here")) {
    for (const JsonView item : *inputs) {
      rule.inputs.emplace(item.key(), read_identifier(item, trouble, "a tensor of this operator"));
    }
  }
  object.finish();
  return rule;
}

// A key that is read only by some roles.
bool belongs(const std::optional<JsonView>& at, JsonTrouble& trouble, bool fits, std::string_view roles) {
  if (at && !fits) trouble.at(*at, "belongs to the role " + std::string(roles) + " only");
  return at.has_value();
}

void read_role_keys(const JsonView& at, JsonObject& object, JsonTrouble& trouble, InputRule& rule) {
  const bool index = rule.role == Role::kIndex;
  const bool counts = rule.role == Role::kCounts;
  const bool offsets = rule.role == Role::kOffsets;
  const auto range = object.find("range");
  if (belongs(range, trouble, index || counts, "index or counts") &&
      expect_array(*range, trouble, "a range of values", 2, 2)) {
    auto end = range->begin();
    const Expr low = read_expr(*end, trouble);
    rule.range = std::pair(low, read_expr(*++end, trouble));
  }
  const auto distinct = object.find("distinct");
  if (belongs(distinct, trouble, index, "index")) rule.distinct = read_bool(*distinct, trouble);
  const auto sorted = object.find("sorted");
  if (belongs(sorted, trouble, index, "index")) rule.sorted = read_bool(*sorted, trouble);
  const auto also = object.find("also");
  if (belongs(also, trouble, index, "index") && expect_array(*also, trouble, "a list of sentinels", 1)) {
    for (const JsonView item : *also) rule.also.push_back(read_integer(item, trouble, "a sentinel"));
  }
  const auto sum = object.find("sum");
  if (belongs(sum, trouble, counts || offsets, "counts or offsets")) rule.sum = read_expr(*sum, trouble);
  if (index && !rule.range) trouble.at(at, "the role index needs a range");
  if (offsets && !rule.sum) trouble.at(at, "the role offsets needs a sum");
}

InputRule read_input(const JsonView& at, JsonTrouble& trouble, bool given) {
  JsonObject object(at, trouble, given ? "a given tensor" : "an input");
  TensorRule tensor = read_tensor(object, trouble);
  InputRule rule;
  rule.name = std::move(tensor.name);
  rule.shape = std::move(tensor.shape);
  rule.dtype = std::move(tensor.dtype);
  rule.layout = tensor.layout;
  rule.align = tensor.align;
  rule.optional = tensor.optional;
  rule.condition = std::move(tensor.condition);
  const auto role = object.find("role");
  if (role) rule.role = read_spelling(*role, trouble, "a role", kRoles);
  read_role_keys(at, object, trouble, rule);
  if (const auto saved = object.find("saved")) {
    rule.saved = read_saved(*saved, trouble);
    if (!role) rule.role = Role::kSaved;
    if (rule.role != Role::kSaved) trouble.at(*saved, "only the role saved has an origin");
  } else if (rule.role == Role::kSaved) {
    trouble.at(at, "the role saved needs the key \"saved\": which output of which operator");
  }
  if (given && rule.role == Role::kSaved) trouble.at(at, "a given tensor is made with the case and cannot be saved");
  object.finish();
  return rule;
}

AgreeRule read_agree(const JsonView& at, JsonTrouble& trouble) {
  AgreeRule rule;
  if (at.is(JsonKind::kString)) {
    read_spelling(at, trouble, "an agreement", SpellingTable<bool, 1>{{{"bits", true}}});
    return rule;
  }
  JsonObject object(at, trouble, "an agreement (\"bits\", or an object with \"ulp\" and \"why\")");
  const auto read_ulp = [&](const JsonView& value) {
    return static_cast<std::uint64_t>(read_integer(value, trouble, "a number of ULP", 1, kMaxUlp));
  };
  if (const auto ulp = object.need("ulp")) {
    if (ulp->is(JsonKind::kObject)) {
      for (const JsonView item : *ulp) {
        const std::optional<DType> dtype = dtype_named(item.key());
        if (!dtype) trouble.at(item, quote(item.key()) + " is not a dtype");
        rule.ulp[dtype.value_or(DType::kF32)] = read_ulp(item);
      }
      if (ulp->size() == 0) trouble.at(*ulp, "no dtype is named; \"bits\" says that nothing may differ");
    } else {
      const std::uint64_t allowed = read_ulp(*ulp);
      for (const DType dtype : kDTypes) rule.ulp[dtype] = allowed;
    }
  }
  if (const auto why = object.need("why")) rule.why = read_string(*why, trouble, "a reason");
  object.finish();
  return rule;
}

void read_bound_ulp(const JsonView& at, JsonTrouble& trouble, BoundRule& rule) {
  if (!at.is(JsonKind::kObject)) {
    rule.ulp = read_expr(at, trouble);
    return;
  }
  for (const JsonView item : at) {
    const std::optional<DType> dtype = dtype_named(item.key());
    if (!dtype) trouble.at(item, quote(item.key()) + " is not a dtype");
    rule.by_dtype[dtype.value_or(DType::kF32)] = read_expr(item, trouble);
  }
  if (at.size() == 0) trouble.at(at, "no dtype is named; leave the bound out where none is stated");
}

std::vector<std::string> read_factors(const JsonView& at, JsonTrouble& trouble) {
  std::vector<std::string> factors;
  if (!expect_array(at, trouble, "a list of factors, names of float inputs or attributes")) return factors;
  for (const JsonView item : at) factors.push_back(read_identifier(item, trouble, "a factor"));
  return factors;
}

void read_bound_scale(const JsonView& at, JsonTrouble& trouble, BoundRule& rule) {
  if (!at.is(JsonKind::kObject)) {
    rule.of = read_spelling(at, trouble, "a scale of a bound", kScales);
    return;
  }
  rule.of = BoundScale::kRowMaxProduct;
  JsonObject object(at, trouble, "a scale made of inputs");
  if (const auto products = object.need("row_max_product");
      products && expect_array(*products, trouble, "a list of factors, or of such lists", 1)) {
    if ((*products->begin()).is(JsonKind::kString)) {
      rule.products.push_back(read_factors(*products, trouble));
    } else {
      for (const JsonView item : *products) rule.products.push_back(read_factors(item, trouble));
    }
  }
  object.finish();
}

BoundRule read_bound(const JsonView& at, JsonTrouble& trouble) {
  BoundRule rule;
  JsonObject object(at, trouble, "a bound");
  if (const auto ulp = object.need("ulp")) read_bound_ulp(*ulp, trouble, rule);
  if (const auto by = object.find("by")) {
    rule.by = read_identifier(*by, trouble, "an input");
    if (rule.by_dtype.empty()) trouble.at(*by, "names the input whose dtype chooses from \"ulp\", which is no map");
  }
  if (const auto of = object.find("of")) read_bound_scale(*of, trouble, rule);
  if (const auto why = object.need("why")) rule.why = read_string(*why, trouble, "a reason");
  object.finish();
  return rule;
}

std::variant<Expr, double> read_end(const JsonView& at, JsonTrouble& trouble) {
  if (at.is(JsonKind::kReal)) return read_number(at, trouble, "an end of a range");
  return read_expr(at, trouble);
}

void read_promise(const JsonView& at, JsonTrouble& trouble, AlwaysKind kind, AlwaysRule& rule) {
  rule.kind = kind;
  if (kind == AlwaysKind::kRange) {
    if (!expect_array(at, trouble, "a range of values", 2, 2)) return;
    auto end = at.begin();
    rule.low = read_end(*end, trouble);
    rule.high = read_end(*++end, trouble);
  } else if (kind == AlwaysKind::kRowSums) {
    rule.row_sum = read_number(at, trouble, "a sum of a row");
  } else if (!read_bool(at, trouble)) {
    trouble.at(at, "only true is a promise; leave the rule out instead");
  }
}

AlwaysRule read_always(const JsonView& at, JsonTrouble& trouble) {
  constexpr SpellingTable<AlwaysKind, 5> kPromises = {{{"range", AlwaysKind::kRange},
                                                       {"distinct_in_row", AlwaysKind::kDistinctInRow},
                                                       {"finite_if_inputs_finite", AlwaysKind::kFiniteIfInputsFinite},
                                                       {"row_sums", AlwaysKind::kRowSums},
                                                       {"permutation", AlwaysKind::kPermutation}}};
  AlwaysRule rule;
  JsonObject object(at, trouble, "a rule");
  int promises = 0;
  for (const auto& [name, kind] : kPromises) {
    const auto value = object.find(name);
    if (!value) continue;
    ++promises;
    read_promise(*value, trouble, kind, rule);
  }
  const auto within = object.find("within");
  if (within) {
    rule.within = read_number(*within, trouble, "a tolerance");
    if (!(rule.within >= 0)) trouble.at(*within, "a tolerance is not negative");
  }
  if (const auto value = object.find("if")) rule.condition = read_expr(*value, trouble);
  object.finish();
  if (promises != 1) {
    trouble.at(at,
               "exactly one of range, distinct_in_row, finite_if_inputs_finite, row_sums, permutation belongs here");
  }
  if (within.has_value() != (rule.kind == AlwaysKind::kRowSums)) {
    trouble.at(at, within ? "\"within\" belongs to row_sums" : "row_sums needs \"within\"");
  }
  return rule;
}

OutputRule read_output(const JsonView& at, JsonTrouble& trouble) {
  JsonObject object(at, trouble, "an output");
  TensorRule tensor = read_tensor(object, trouble);
  OutputRule rule;
  rule.name = std::move(tensor.name);
  rule.shape = std::move(tensor.shape);
  rule.dtype = std::move(tensor.dtype);
  rule.layout = tensor.layout;
  rule.align = tensor.align;
  rule.optional = tensor.optional;
  rule.condition = std::move(tensor.condition);
  if (const auto stage = object.find("stage")) {
    rule.stage = static_cast<int>(read_integer(*stage, trouble, "a stage", 0, kMaxStage));
  }
  const auto always = object.find("always");
  if (always && expect_array(*always, trouble, "a list of rules")) {
    for (const JsonView item : *always) rule.always.push_back(read_always(item, trouble));
  }
  if (const auto agree = object.find("agree")) rule.agree = read_agree(*agree, trouble);
  if (const auto nan = object.find("nan")) {
    rule.nan_bits = read_spelling(*nan, trouble, "a rule for NaN", SpellingTable<bool, 1>{{{"bits", true}}});
  }
  if (const auto bound = object.find("bound")) rule.bound = read_bound(*bound, trouble);
  object.finish();
  return rule;
}

}  // namespace

TensorRule read_tensor(JsonObject& object, JsonTrouble& trouble) {
  TensorRule rule;
  if (const auto name = object.need("name")) rule.name = read_identifier(*name, trouble, "the name of a tensor");
  const auto shape = object.need("shape");
  if (shape && expect_array(*shape, trouble, "a shape", 0, kMaxRank)) {
    for (const JsonView size : *shape) rule.shape.push_back(read_expr(size, trouble));
  }
  if (const auto dtype = object.need("dtype")) rule.dtype = read_dtype_rule(*dtype, trouble);
  if (const auto layout = object.find("layout")) rule.layout = read_spelling(*layout, trouble, "a layout", kLayouts);
  if (const auto align = object.find("align")) {
    rule.align = read_integer(*align, trouble, "an alignment", 1, kMaxAlign);
    if ((rule.align & (rule.align - 1)) != 0) trouble.at(*align, align->found() + " is not a power of two");
  }
  if (const auto optional = object.find("optional")) rule.optional = read_bool(*optional, trouble);
  if (const auto condition = object.find("if")) rule.condition = read_expr(*condition, trouble);
  return rule;
}

std::vector<InputRule> read_inputs(const JsonView& at, JsonTrouble& trouble, bool given) {
  std::vector<InputRule> inputs;
  if (!expect_array(at, trouble, given ? "a list of given tensors" : "a list of inputs")) return inputs;
  for (const JsonView item : at) inputs.push_back(read_input(item, trouble, given));
  return inputs;
}

std::vector<OutputRule> read_outputs(const JsonView& at, JsonTrouble& trouble) {
  std::vector<OutputRule> outputs;
  if (!expect_array(at, trouble, "a list of outputs", 1)) return outputs;
  for (const JsonView item : at) outputs.push_back(read_output(item, trouble));
  return outputs;
}

}  // namespace fusediff
