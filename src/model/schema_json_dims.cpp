// Dims, attributes, and the small spellings that all records share.
#include <algorithm>

#include "model/schema_read.h"

namespace fusediff {

Expr read_expr(const JsonView& at, JsonTrouble& trouble) {
  if (at.is(JsonKind::kInteger) || at.is(JsonKind::kUnsigned)) return Expr(read_integer(at, trouble, "a size"));
  if (!at.is(JsonKind::kString)) {
    trouble.at(at, at.found() + " is not an expression; a string or an integer belongs here");
    return {};
  }
  Result<Expr> expr = Expr::parse(at.text());
  if (expr.ok()) return *std::move(expr);
  trouble.at(at, expr.error().what);
  return {};
}

DType read_dtype(const JsonView& at, JsonTrouble& trouble) {
  const std::string text = read_string(at, trouble, "a dtype");
  const std::optional<DType> dtype = dtype_named(text);
  if (dtype) return *dtype;
  std::vector<std::string> legal;
  for (const DType known : kDTypes) legal.emplace_back(name_of(known));
  trouble.at(at, not_one_of(text, "a dtype", legal));
  return DType::kF32;
}

std::vector<DType> read_dtypes(const JsonView& at, JsonTrouble& trouble) {
  if (at.is(JsonKind::kString)) return {read_dtype(at, trouble)};
  std::vector<DType> dtypes;
  if (!expect_array(at, trouble, "a dtype or a list of them", 1)) return {DType::kF32};
  for (const JsonView item : at) {
    const DType dtype = read_dtype(item, trouble);
    if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end())
      trouble.at(item, item.found() + " stands twice");
    dtypes.push_back(dtype);
  }
  return dtypes;
}

std::vector<std::string> read_names(const JsonView& at, JsonTrouble& trouble, std::string_view kind) {
  std::vector<std::string> names;
  if (!expect_array(at, trouble, "a list of names")) return names;
  for (const JsonView item : at) {
    std::string name = read_identifier(item, trouble, kind);
    if (std::find(names.begin(), names.end(), name) != names.end()) trouble.at(item, quote(name) + " stands twice");
    names.push_back(std::move(name));
  }
  return names;
}

namespace {

DimRule read_dim(const JsonView& at, JsonTrouble& trouble) {
  DimRule dim;
  dim.name = std::string(at.key());
  if (!is_identifier(dim.name)) trouble.at(at, quote(dim.name) + " cannot name a dim: letters, digits and _ can");
  JsonObject object(at, trouble, "a dim");
  const auto range = object.need("range");
  if (range && expect_array(*range, trouble, "the range of a dim", 2, 2)) {
    auto end = range->begin();
    dim.low = read_integer(*end, trouble, "a size", 0);
    dim.high = read_integer(*++end, trouble, "a size", 0);
    if (dim.low > dim.high) trouble.at(*range, "the low end stands above the high end");
  }
  const auto typical = object.find("typical");
  if (typical && expect_array(*typical, trouble, "a list of sizes", 1)) {
    for (const JsonView size : *typical) {
      dim.typical.push_back(read_integer(size, trouble, "a size within the range", dim.low, dim.high));
    }
  }
  object.finish();
  return dim;
}

AttrValue read_attr_value(const JsonView& at, JsonTrouble& trouble, const AttrRule& rule) {
  switch (rule.kind) {
    case AttrKind::kInt:
      return read_integer(at, trouble, "a value of an int attribute");
    case AttrKind::kFloat:
      return read_number(at, trouble, "a value of a float attribute");
    case AttrKind::kBool:
      return std::int64_t{read_bool(at, trouble) ? 1 : 0};
    case AttrKind::kChoice:
      break;
  }
  std::string text = read_string(at, trouble, "a choice");
  if (std::find(rule.choices.begin(), rule.choices.end(), text) == rule.choices.end()) {
    trouble.at(at, not_one_of(text, "one of the choices", rule.choices));
  }
  return text;
}

void read_int(const JsonView& at, JsonTrouble& trouble, AttrRule& rule) {
  rule.kind = AttrKind::kInt;
  if (!at.is(JsonKind::kArray)) {
    rule.derived = read_expr(at, trouble);
    return;
  }
  if (!expect_array(at, trouble, "the range of an int attribute", 2, 2)) return;
  auto end = at.begin();
  rule.int_low = read_integer(*end, trouble, "the low end of a range");
  rule.int_high = read_integer(*++end, trouble, "the high end of a range");
  if (rule.int_low > rule.int_high) trouble.at(at, "the low end stands above the high end");
}

void read_float(const JsonView& at, JsonTrouble& trouble, AttrRule& rule) {
  rule.kind = AttrKind::kFloat;
  if (!expect_array(at, trouble, "the range of a float attribute", 2, 2)) return;
  auto end = at.begin();
  rule.float_low = read_number(*end, trouble, "the low end of a range");
  rule.float_high = read_number(*++end, trouble, "the high end of a range");
  if (rule.float_low > rule.float_high) trouble.at(at, "the low end stands above the high end");
}

void read_choices(const JsonView& at, JsonTrouble& trouble, AttrRule& rule) {
  rule.kind = AttrKind::kChoice;
  if (!expect_array(at, trouble, "a list of choices", 1)) return;
  for (const JsonView item : at) {
    std::string text = read_string(item, trouble, "a choice");
    const bool twice = std::find(rule.choices.begin(), rule.choices.end(), text) != rule.choices.end();
    if (twice) trouble.at(item, quote(text) + " stands twice");
    if (text.find('\0') != std::string::npos) trouble.at(item, "a choice cannot hold a zero byte");
    rule.choices.push_back(std::move(text));
  }
}

void read_kind(const JsonView& at, JsonObject& object, JsonTrouble& trouble, AttrRule& rule) {
  int kinds = 0;
  if (const auto value = object.find("int")) {
    ++kinds;
    read_int(*value, trouble, rule);
  }
  if (const auto value = object.find("float")) {
    ++kinds;
    read_float(*value, trouble, rule);
  }
  if (const auto value = object.find("bool")) {
    ++kinds;
    rule.kind = AttrKind::kBool;
    if (!read_bool(*value, trouble)) trouble.at(*value, "only true says that the attribute is a bool");
  }
  if (const auto value = object.find("choice")) {
    ++kinds;
    read_choices(*value, trouble, rule);
  }
  if (kinds != 1) trouble.at(at, "exactly one of the keys int, float, bool, choice belongs here");
}

void read_extras(const JsonView& at, JsonObject& object, JsonTrouble& trouble, AttrRule& rule) {
  if (const auto value = object.find("default")) rule.standard = read_attr_value(*value, trouble, rule);
  if (const auto value = object.find("scale")) {
    rule.log_scale = read_spelling(*value, trouble, "a scale", SpellingTable<bool, 1>{{{"log", true}}});
    if (rule.kind != AttrKind::kFloat || !(rule.float_low > 0)) {
      trouble.at(*value, "a log scale belongs to a float range above 0");
    }
  }
  const auto also = object.find("also");
  if (also && expect_array(*also, trouble, "a list of values", 1)) {
    const bool takes = rule.kind == AttrKind::kFloat || (rule.kind == AttrKind::kInt && !rule.derived);
    if (!takes) trouble.at(*also, "single values are for an attribute with a range");
    for (const JsonView item : *also) rule.also.push_back(read_attr_value(item, trouble, rule));
  }
  if (const auto value = object.find("if")) rule.condition = read_expr(*value, trouble);
  if (rule.condition && !rule.standard)
    trouble.at(at, "an attribute with \"if\" needs a default, passed where it is false");
  if (rule.derived && rule.standard && !rule.condition) {
    trouble.at(at, "an attribute given by an expression has no use for a default without \"if\"");
  }
}

}  // namespace

std::vector<DimRule> read_dims(const JsonView& at, JsonTrouble& trouble) {
  std::vector<DimRule> dims;
  if (!expect_object(at, trouble, "the dims of an operator")) return dims;
  for (const JsonView item : at) dims.push_back(read_dim(item, trouble));
  return dims;
}

std::vector<AttrRule> read_attrs(const JsonView& at, JsonTrouble& trouble) {
  std::vector<AttrRule> attrs;
  if (!expect_array(at, trouble, "a list of attributes")) return attrs;
  for (const JsonView item : at) {
    AttrRule& rule = attrs.emplace_back();
    JsonObject object(item, trouble, "an attribute");
    if (const auto name = object.need("name")) rule.name = read_identifier(*name, trouble, "the name of an attribute");
    read_kind(item, object, trouble, rule);
    read_extras(item, object, trouble, rule);
    object.finish();
  }
  return attrs;
}

}  // namespace fusediff
