#include "model/case_json.h"

#include <charconv>

#include "model/case_read.h"
#include "model/quote.h"

namespace fusediff {

namespace {

constexpr JsonLimits kLimits = {kMaxCaseBytes, kMaxCaseNesting, 1 << 20};

void read_version(const JsonView& root, JsonObject& object, JsonTrouble& trouble) {
  const auto version = object.need("fusediff_case");
  if (!version) return;
  const std::int64_t number = read_integer(*version, trouble, "a case version", 1);
  if (number > kCaseVersion) {
    trouble.at(root, "fusediff_case " + std::to_string(number) + " is newer than this fusediff, which reads up to " +
                         std::to_string(kCaseVersion));
  }
}

void read_dims(const JsonView& at, Case& c, JsonTrouble& trouble) {
  if (!expect_object(at, trouble, "a map from dims to sizes")) return;
  for (const JsonView item : at) c.dims.emplace(item.key(), read_integer(item, trouble, "a size"));
}

AttrValue read_attr(const JsonView& at, JsonTrouble& trouble) {
  switch (at.kind()) {
    case JsonKind::kBool:
      return std::int64_t{read_bool(at, trouble) ? 1 : 0};
    case JsonKind::kInteger:
    case JsonKind::kUnsigned:
      return read_integer(at, trouble, "a value of an attribute");
    case JsonKind::kReal:
      return read_number(at, trouble, "a value of an attribute");
    case JsonKind::kString:
      return std::string(at.text());
    default:
      trouble.at(at, at.found() + " is not a value of an attribute; a number, true, false or a string belongs here");
      return std::int64_t{0};
  }
}

void read_attrs(const JsonView& at, Case& c, JsonTrouble& trouble) {
  if (!expect_object(at, trouble, "a map from attributes to values")) return;
  for (const JsonView item : at) c.attrs.emplace(item.key(), read_attr(item, trouble));
}

void read_dtypes(const JsonView& at, Case& c, JsonTrouble& trouble) {
  if (!expect_object(at, trouble, "a map from tensors to dtypes")) return;
  for (const JsonView item : at) {
    const std::string text = read_string(item, trouble, "a dtype");
    const std::optional<DType> dtype = dtype_named(text);
    if (!dtype) {
      std::vector<std::string> legal;
      for (const DType known : kDTypes) legal.emplace_back(name_of(known));
      trouble.at(item, not_one_of(text, "a dtype", legal));
      return;
    }
    c.dtypes.emplace(item.key(), *dtype);
  }
}

void read_span(const JsonView& at, JsonTrouble& trouble, std::int64_t& low, std::int64_t& high) {
  if (!expect_array(at, trouble, "a span of indexes", 2, 2)) return;
  auto end = at.begin();
  low = read_integer(*end, trouble, "an index", 0);
  high = read_integer(*++end, trouble, "an index", 0);
  if (low > high) trouble.at(at, "the low end stands above the high end; both are inclusive");
}

Patch read_patch(const JsonView& at, JsonTrouble& trouble, const std::filesystem::path& folder) {
  Patch patch;
  JsonObject object(at, trouble, "a patch");
  if (const auto rows = object.need("rows")) read_span(*rows, trouble, patch.row_low, patch.row_high);
  if (const auto columns = object.need("columns")) read_span(*columns, trouble, patch.column_low, patch.column_high);
  if (const auto fill = object.need("fill")) patch.fill = read_fill(*fill, trouble, folder);
  object.finish();
  return patch;
}

// A decimal index without sign or leading zeros: one spelling, so that none stands twice.
std::int64_t read_index_key(const JsonView& at, JsonTrouble& trouble) {
  const std::string_view text = at.key();
  std::int64_t index = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool canonical = text.size() == 1 || !text.starts_with('0');
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || index < 0 || !canonical || text[0] == '-') {
    trouble.at(at, quote(text) + " is not the index of an element; a whole number from 0 belongs here");
  }
  return index;
}

void read_set(const JsonView& at, InputValue& value, JsonTrouble& trouble) {
  if (!expect_object(at, trouble, "a map from indexes to values")) return;
  for (const JsonView item : at) {
    const std::int64_t index = read_index_key(item, trouble);
    value.set.emplace_hint(value.set.end(), index, read_literal(item, trouble));
    if (trouble.any()) return;
  }
}

InputValue read_input(const JsonView& at, JsonTrouble& trouble, const std::filesystem::path& folder) {
  InputValue value;
  JsonObject object(at, trouble, "the values of an input");
  if (const auto fill = object.need("fill")) value.fill = read_fill(*fill, trouble, folder);
  const auto patches = object.find("patches");
  if (patches && expect_array(*patches, trouble, "a list of patches")) {
    for (const JsonView item : *patches) {
      value.patches.push_back(read_patch(item, trouble, folder));
      if (trouble.any()) break;
    }
  }
  if (const auto set = object.find("set")) read_set(*set, value, trouble);
  object.finish();
  return value;
}

void read_inputs(const JsonView& at, Case& c, JsonTrouble& trouble, const std::filesystem::path& folder) {
  if (!expect_object(at, trouble, "a map from inputs to values")) return;
  for (const JsonView item : at) {
    c.inputs.emplace(item.key(), read_input(item, trouble, folder));
    if (trouble.any()) return;
  }
}

Place read_place(const JsonView& at, JsonTrouble& trouble) {
  const std::string text = read_string(at, trouble, "a place");
  if (text == "end") return Place::kEnd;
  if (text == "start") return Place::kStart;
  if (text == "middle") return Place::kMiddle;
  trouble.at(at, not_one_of(text, "a place", std::vector<std::string>{"end", "start", "middle"}));
  return Place::kEnd;
}

LayoutChoice read_layout_choice(const JsonView& at, JsonTrouble& trouble) {
  LayoutChoice choice;
  JsonObject object(at, trouble, "a layout");
  const auto stride = object.find("stride");
  if (stride && expect_array(*stride, trouble, "a list of strides")) {
    choice.stride.emplace();
    for (const JsonView item : *stride) choice.stride->push_back(read_integer(item, trouble, "a stride"));
  }
  if (const auto offset = object.find("offset")) choice.offset = read_integer(*offset, trouble, "an offset");
  if (const auto place = object.find("place")) choice.place = read_place(*place, trouble);
  if (const auto on = object.find("on")) choice.on = read_identifier(*on, trouble, "an input");
  object.finish();
  return choice;
}

void read_layout(const JsonView& at, Case& c, JsonTrouble& trouble) {
  if (!expect_object(at, trouble, "a map from tensors to layouts")) return;
  for (const JsonView item : at) c.layout.emplace(item.key(), read_layout_choice(item, trouble));
}

void read_unwanted(const JsonView& at, Case& c, JsonTrouble& trouble) {
  if (!expect_array(at, trouble, "a list of outputs")) return;
  for (const JsonView item : at) c.unwanted.push_back(read_string(item, trouble, "the name of an output"));
}

// What a case has in common with a call within one.
void read_call(JsonObject& object, const std::filesystem::path& folder, Case& c, JsonTrouble& trouble) {
  if (const auto op = object.need("op")) c.op = read_string(*op, trouble, "an operator");
  if (const auto dims = object.need("dims")) read_dims(*dims, c, trouble);
  if (const auto attrs = object.find("attrs")) read_attrs(*attrs, c, trouble);
  if (const auto dtypes = object.find("dtypes")) read_dtypes(*dtypes, c, trouble);
  const auto inputs = object.find("inputs");
  if (inputs && !trouble.any()) read_inputs(*inputs, c, trouble, folder);
  if (const auto layout = object.find("layout")) read_layout(*layout, c, trouble);
  if (const auto unwanted = object.find("unwanted")) read_unwanted(*unwanted, c, trouble);
}

void read_case(const JsonView& root, const std::filesystem::path& folder, Case& c, JsonTrouble& trouble) {
  JsonObject object(root, trouble, "a case");
  read_version(root, object, trouble);
  read_call(object, folder, c, trouble);
  if (const auto experiment = object.find("experiment")) c.experiment = read_experiment(*experiment, trouble, folder);
  object.finish();
}

}  // namespace

Case read_inner_case(const JsonView& at, JsonTrouble& trouble, const std::filesystem::path& folder) {
  Case c;
  JsonObject object(at, trouble, "a case within a case");
  if (object.find("fusediff_case")) read_version(at, object, trouble);
  read_call(object, folder, c, trouble);
  if (const auto experiment = object.find("experiment"))
    trouble.at(*experiment, "a case within a case has no experiment of its own");
  object.finish();
  return c;
}

Result<Case> parse_case(std::string_view json, const std::filesystem::path& folder) {
  Result<JsonTree> tree = JsonTree::parse(json, kLimits);
  if (!tree.ok()) return tree.error();
  JsonTrouble trouble;
  Case c;
  read_case(tree->root(), folder, c, trouble);
  if (trouble.any()) return trouble.error();
  return c;
}

}  // namespace fusediff
