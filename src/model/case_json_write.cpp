#include "model/case_json.h"
#include "model/case_read.h"

namespace fusediff {

namespace {

void write_attr(JsonText& json, const AttrValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return json.integer(*integer);
  if (const auto* real = std::get_if<double>(&value)) return json.number(*real, true);
  json.string(std::get<std::string>(value));
}

void write_patch(JsonText& json, const Patch& patch) {
  json.open('{');
  json.key("rows");
  json.integers(std::vector<std::int64_t>{patch.row_low, patch.row_high});
  json.key("columns");
  json.integers(std::vector<std::int64_t>{patch.column_low, patch.column_high});
  json.key("fill");
  write_fill(json, patch.fill);
  json.close('}');
}

void write_input(JsonText& json, const InputValue& value) {
  json.open('{');
  json.key("fill");
  write_fill(json, value.fill);
  if (!value.patches.empty()) {
    json.key("patches");
    json.open('[');
    for (const Patch& patch : value.patches) write_patch(json, patch);
    json.close(']');
  }
  if (!value.set.empty()) {
    json.key("set");
    json.open('{');
    for (const auto& [index, literal] : value.set) {
      json.key(std::to_string(index));
      write_literal(json, literal, true);
    }
    json.close('}');
  }
  json.close('}');
}

void write_layout_choice(JsonText& json, const LayoutChoice& choice) {
  json.open('{');
  if (choice.stride) {
    json.key("stride");
    json.integers(*choice.stride);
  }
  if (choice.offset != 0) {
    json.key("offset");
    json.integer(choice.offset);
  }
  if (choice.place != Place::kEnd) {
    json.key("place");
    json.string(choice.place == Place::kStart ? "start" : "middle");
  }
  if (!choice.on.empty()) {
    json.key("on");
    json.string(choice.on);
  }
  json.close('}');
}

// "name": { key: value, ... } unless the map is empty.
template <typename Map, typename Write>
void write_map(JsonText& json, std::string_view name, const Map& map, const Write& write) {
  if (map.empty()) return;
  json.key(name);
  json.open('{');
  for (const auto& [key, value] : map) {
    json.key(key);
    write(json, value);
  }
  json.close('}');
}

}  // namespace

void write_call(JsonText& json, const Case& c) {
  json.key("op");
  json.string(c.op);
  json.key("dims");
  json.open('{');
  for (const auto& [name, size] : c.dims) {
    json.key(name);
    json.integer(size);
  }
  json.close('}');
  write_map(json, "attrs", c.attrs, write_attr);
  write_map(json, "dtypes", c.dtypes, [](JsonText& text, DType dtype) { text.string(name_of(dtype)); });
  write_map(json, "inputs", c.inputs, write_input);
  write_map(json, "layout", c.layout, write_layout_choice);
  if (!c.unwanted.empty()) {
    json.key("unwanted");
    json.open('[');
    for (const std::string& name : c.unwanted) json.string(name);
    json.close(']');
  }
}

std::string write_case(const Case& c, int indent) {
  std::string out;
  out.reserve(1024);
  JsonText json(out, indent);
  json.open('{');
  json.key("fusediff_case");
  json.integer(kCaseVersion);
  write_call(json, c);
  write_experiment(json, c.experiment);
  json.close('}');
  return out;
}

}  // namespace fusediff
