// The JSON of the CANN operator test kit.

#include "import/suite.h"
#include "model/json_tree.h"
#include "model/quote.h"

namespace fusediff {
namespace {

constexpr JsonLimits kLimits = {std::size_t{1} << 28, 16, 1 << 24};

PyValue value_of(const JsonView& json) {
  PyValue value;
  switch (json.kind()) {
    case JsonKind::kNull:
      break;
    case JsonKind::kBool:
      value.kind = PyValue::Kind::kBool;
      value.integer = json.node().integer;
      value.truth = value.integer != 0;
      break;
    case JsonKind::kInteger:
      value.kind = PyValue::Kind::kInteger;
      value.integer = json.node().integer;
      value.real = static_cast<double>(value.integer);
      break;
    case JsonKind::kUnsigned:
      value.kind = PyValue::Kind::kInteger;
      value.real = static_cast<double>(json.node().unsigned_one);
      value.integer = static_cast<std::int64_t>(json.node().unsigned_one);
      if (value.integer < 0) value.kind = PyValue::Kind::kReal;
      break;
    case JsonKind::kReal:
      value.kind = PyValue::Kind::kReal;
      value.real = json.node().real;
      break;
    case JsonKind::kString:
      value.kind = PyValue::Kind::kString;
      value.text = std::string(json.text());
      break;
    case JsonKind::kArray:
      value.kind = PyValue::Kind::kSequence;
      for (const JsonView item : json) value.items.push_back(value_of(item));
      break;
    case JsonKind::kObject:
      value.kind = PyValue::Kind::kDict;
      for (const JsonView item : json) value.members.push_back({std::string(item.key()), value_of(item)});
      break;
  }
  return value;
}

std::string text_in(const PyValue& object, std::string_view name) {
  const PyValue* value = object.find(name);
  return value != nullptr && value->is(PyValue::Kind::kString) ? value->text : "";
}

bool is_set(const PyValue& object, std::string_view name) {
  const PyValue* value = object.find(name);
  return value != nullptr && !value->is(PyValue::Kind::kNone) && !(value->is(PyValue::Kind::kBool) && !value->truth) &&
         !(value->is(PyValue::Kind::kSequence) && value->items.empty());
}

void read_tensor(const PyValue& input, SuiteRow& row) {
  SuiteTensor tensor;
  tensor.name = text_in(input, "name");
  tensor.dtype = text_in(input, "dtype");
  const PyValue* shape = input.find("shape");
  if (shape == nullptr || shape->is(PyValue::Kind::kNone)) return;  // absent
  if (!shape->is(PyValue::Kind::kSequence)) {
    row.problem = "the shape of " + quote(tensor.name) + " is no list of sizes";
    return;
  }
  for (const PyValue& size : shape->items) {
    if (!size.is(PyValue::Kind::kInteger) || size.integer < 0)
      row.problem = "the shape of " + quote(tensor.name) + " holds what is no size";
    tensor.shape.push_back(size.integer);
  }
  if (const PyValue* range = input.find("range_values")) tensor.range = *range;
  if (is_set(input, "outlier_values")) row.problem = "outlier_values of " + quote(tensor.name) + " are not read";
  row.tensors.push_back(std::move(tensor));
}

SuiteRow read_row(const PyValue& json, std::size_t position) {
  SuiteRow row;
  row.op = text_in(json, "aclnn_name");
  if (row.op.empty()) row.op = text_in(json, "name");
  const PyValue* id = json.find("id");
  const bool has_id = id != nullptr && id->is(PyValue::Kind::kInteger);
  row.name = (row.op.empty() ? "row" : row.op) + "_" + std::to_string(has_id ? id->integer : std::int64_t(position));
  const PyValue* inputs = json.find("inputs");
  if (inputs == nullptr || !inputs->is(PyValue::Kind::kSequence)) {
    row.problem = "no list of \"inputs\"";
    return row;
  }
  for (const PyValue& input : inputs->items) {
    const std::string type = text_in(input, "type");
    if (type == "tensor") {
      read_tensor(input, row);
    } else if (type == "attr") {
      const PyValue* value = input.find("range_values");
      if (value != nullptr) row.attrs.push_back({text_in(input, "name"), *value});
    } else {
      row.problem = "an input of type " + quote(type) + "; tensor and attr are read";
    }
  }
  if (is_set(json, "expected_error_msg")) row.problem = "expects an error, which no case can";
  if (is_set(json, "backward")) row.problem = "asks for a backward, which is an operator of its own here";
  return row;
}

}  // namespace

Result<std::vector<SuiteRow>> read_atk(std::string_view text) {
  const Result<JsonTree> tree = JsonTree::parse(text, kLimits);
  if (!tree.ok()) return tree.error();
  const PyValue all = value_of(tree->root());
  std::vector<PyValue> one = {all};
  if (!all.is(PyValue::Kind::kSequence) && !all.is(PyValue::Kind::kDict))
    return user_error("no suite: a list of cases with \"inputs\" is needed");
  std::vector<SuiteRow> rows;
  for (const PyValue& row : all.is(PyValue::Kind::kSequence) ? all.items : one)
    rows.push_back(read_row(row, rows.size()));
  return rows;
}

}  // namespace fusediff
