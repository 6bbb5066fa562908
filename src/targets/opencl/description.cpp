#include "opencl/description.h"

#include <algorithm>
#include <exception>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kit/failure.h"
#include "opencl/element_type.h"

namespace fusediff::opencl {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void wrong(const std::string& where, const std::string& what) {
  kit::fail(std::string_view(where.empty() ? "/" : where), ": ", std::string_view(what));
}

const ordered_json& member(const ordered_json& of, const std::string& where, const char* key) {
  if (!of.is_object() || !of.contains(key)) {
    wrong(where, std::string("needs \"") + key + "\"");
  }
  return of.at(key);
}

std::string text_of(const ordered_json& value, const std::string& where) {
  if (!value.is_string()) {
    wrong(where, "must be a string");
  }
  return value.get<std::string>();
}

// An expression may be written as a number.
std::string expression_of(const ordered_json& value, const std::string& where) {
  return value.is_number_integer() ? value.dump() : text_of(value, where);
}

const ordered_json& list_of(const ordered_json& value, const std::string& where) {
  if (!value.is_array()) {
    wrong(where, "must be a list");
  }
  return value;
}

void only_keys(const ordered_json& value, const std::string& where, std::initializer_list<std::string_view> known) {
  if (!value.is_object()) {
    wrong(where, "must be an object");
  }
  for (const auto& [key, ignored] : value.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      wrong(where + "/" + key, "unknown key");
    }
  }
}

ordered_json parsed(std::string_view json) {
  try {
    return ordered_json::parse(json, nullptr, true, true);
  } catch (const nlohmann::json::exception& error) {
    kit::fail(std::string_view(error.what()));
  }
}

// Reads one operator; keeps what the later parts are checked against.
class OperatorReader {
 public:
  OperatorReader(const ordered_json& json, std::string where) : json_(json), where_(std::move(where)) {}

  DescribedOperator read() {
    only_keys(json_, where_, {"schema", "types", "scratch", "paths"});
    read_schema(member(json_, where_, "schema"), where_ + "/schema");
    if (json_.contains("types")) read_types(json_.at("types"), where_ + "/types");
    if (json_.contains("scratch")) read_scratch(json_.at("scratch"), where_ + "/scratch");
    read_paths(member(json_, where_, "paths"), where_ + "/paths");
    return std::move(made_);
  }

 private:
  void read_schema(const ordered_json& schema, const std::string& where) {
    made_.name = text_of(member(schema, where, "name"), where + "/name");
    if (schema.contains("like")) wrong(where + "/like", "the record must stand here in full");
    if (schema.contains("paths")) wrong(where + "/paths", "the paths stand beside the schema");
    for (const char* side : {"inputs", "outputs"}) {
      const std::string at = where + "/" + side;
      for (const ordered_json& tensor : list_of(member(schema, where, side), at)) {
        made_.tensors.push_back(text_of(member(tensor, at, "name"), at));
      }
    }
    for (const auto& [dim, ignored] : member(schema, where, "dims").items()) {
      if (find_dim(schema, dim, where)) names_[dim] = 1;
    }
    if (schema.contains("attrs")) read_attributes(list_of(schema.at("attrs"), where + "/attrs"), where + "/attrs");
  }

  // The first tensor with an axis that is this dim and nothing else, or an int attribute that is. Without one a call
  // does not say what it is, and it is no name in expressions.
  bool find_dim(const ordered_json& schema, const std::string& dim, const std::string& where) {
    for (const char* side : {"inputs", "outputs"}) {
      for (const ordered_json& tensor : schema.at(side)) {
        const ordered_json& shape = list_of(member(tensor, where, "shape"), where);
        const auto axis = std::find(shape.begin(), shape.end(), ordered_json(dim));
        if (axis != shape.end()) {
          made_.dims.push_back({dim, tensor.at("name"), static_cast<size_t>(axis - shape.begin()), ""});
          return true;
        }
      }
    }
    if (schema.contains("attrs")) {
      for (const ordered_json& attribute : schema.at("attrs")) {
        if (attribute.is_object() && attribute.contains("int") && attribute.at("int") == dim) {
          made_.dims.push_back({dim, "", 0, text_of(member(attribute, where, "name"), where)});
          return true;
        }
      }
    }
    return false;
  }

  void read_attributes(const ordered_json& list, const std::string& where) {
    for (const ordered_json& one : list) {
      Attribute made;
      made.name = text_of(member(one, where, "name"), where);
      made.is_real = one.contains("float");
      if (one.contains("choice")) {
        for (const ordered_json& choice : list_of(one.at("choice"), where)) {
          made.choices.push_back(text_of(choice, where));
        }
      }
      if (!made.is_real) names_[made.name] = 1;
      made_.attributes.push_back(std::move(made));
    }
  }

  void read_types(const ordered_json& types, const std::string& where) {
    if (!types.is_object()) wrong(where, "must be an object");
    for (const auto& [macro, tensor] : types.items()) {
      const std::string name = text_of(tensor, where + "/" + macro);
      if (!is_name(macro)) wrong(where + "/" + macro, "is no name of a macro");
      if (!is_tensor(name)) wrong(where + "/" + macro, "there is no tensor " + name);
      made_.types[macro] = name;
    }
  }

  void read_scratch(const ordered_json& scratch, const std::string& where) {
    if (!scratch.is_object()) wrong(where, "must be an object");
    for (const auto& [name, one] : scratch.items()) {
      const std::string at = where + "/" + name;
      only_keys(one, at, {"type", "count"});
      if (!is_name(name) || is_tensor(name) || names_.count(name) != 0) wrong(at, "is no name, or one that is taken");
      Scratch made{name, text_of(member(one, at, "type"), at + "/type"),
                   expression_of(member(one, at, "count"), at + "/count")};
      if (made_.types.count(made.type) == 0 && dtype_named(made.type) == 0) {
        wrong(at + "/type", made.type + " is neither a dtype nor one of the types");
      }
      check(made.count, at + "/count");
      made_.scratch.push_back(std::move(made));
    }
  }

  void read_paths(const ordered_json& paths, const std::string& where) {
    if (!paths.is_object() || paths.empty()) wrong(where, "must be an object with at least one path");
    for (const auto& [name, steps] : paths.items()) {
      DescribedPath made{name, {}};
      const std::string at = where + "/" + name;
      for (const ordered_json& step : list_of(steps, at)) {
        made.steps.push_back(read_step(step, at + "/" + std::to_string(made.steps.size())));
      }
      if (made.steps.empty()) wrong(at, "needs at least one kernel");
      made_.paths.push_back(std::move(made));
    }
  }

  Step read_step(const ordered_json& json, const std::string& where) {
    only_keys(json, where, {"kernel", "args", "global", "local", "if"});
    Step step;
    step.kernel = text_of(member(json, where, "kernel"), where + "/kernel");
    for (const ordered_json& arg : list_of(member(json, where, "args"), where + "/args")) {
      step.args.push_back(read_arg(arg, where + "/args/" + std::to_string(step.args.size())));
    }
    step.global = sizes(member(json, where, "global"), where + "/global");
    if (json.contains("local")) {
      step.local = sizes(json.at("local"), where + "/local");
      if (step.local.size() != step.global.size()) wrong(where + "/local", "must be as long as global");
    }
    if (json.contains("if")) {
      step.condition = text_of(json.at("if"), where + "/if");
      check(step.condition, where + "/if");
    }
    return step;
  }

  std::vector<std::string> sizes(const ordered_json& list, const std::string& where) {
    std::vector<std::string> made;
    for (const ordered_json& one : list_of(list, where)) {
      made.push_back(expression_of(one, where));
      check(made.back(), where);
    }
    if (made.empty() || made.size() > 3) wrong(where, "must have one to three sizes");
    return made;
  }

  Arg read_arg(const ordered_json& json, const std::string& where) {
    if (!json.is_object()) {
      const std::string text = expression_of(json, where);
      if (is_tensor(text)) return {ArgKind::kTensor, text, 0, ""};
      if (is_scratch(text)) return {ArgKind::kScratch, text, 0, ""};
      check(text, where);
      return {ArgKind::kInt, text, 0, ""};
    }
    if (json.contains("stride")) return read_stride(json, where);
    if (json.contains("real")) return read_real(json, where);
    for (const auto& [key, kind] : {std::pair{"long", ArgKind::kLong}, std::pair{"local", ArgKind::kLocal}}) {
      if (json.size() == 1 && json.contains(key)) {
        const std::string text = expression_of(json.at(key), where + "/" + key);
        check(text, where + "/" + key);
        return {kind, text, 0, ""};
      }
    }
    wrong(where, "must be a name, an expression, or an object with long, local, stride or real");
  }

  Arg read_stride(const ordered_json& json, const std::string& where) {
    only_keys(json, where, {"stride"});
    const ordered_json& pair = list_of(json.at("stride"), where + "/stride");
    if (pair.size() != 2 || !pair[1].is_number_unsigned() || pair[1] > 7) {
      wrong(where + "/stride", "must be a tensor and a dimension");
    }
    const std::string tensor = text_of(pair[0], where + "/stride/0");
    if (!is_tensor(tensor)) wrong(where + "/stride/0", "there is no tensor " + tensor);
    return {ArgKind::kStride, tensor, pair[1].get<int>(), ""};
  }

  Arg read_real(const ordered_json& json, const std::string& where) {
    only_keys(json, where, {"real", "as"});
    const std::string name = text_of(json.at("real"), where + "/real");
    const std::string type = json.contains("as") ? text_of(json.at("as"), where + "/as") : "float";
    const bool there = std::any_of(made_.attributes.begin(), made_.attributes.end(),
                                   [&](const Attribute& one) { return one.is_real && one.name == name; });
    if (!there) wrong(where + "/real", "there is no float attribute " + name);
    if (type != "float" && type != "double" && made_.types.count(type) == 0) {
      wrong(where + "/as", type + " is neither float, double nor one of the types");
    }
    return {ArgKind::kReal, name, 0, type};
  }

  void check(const std::string& expression, const std::string& where) const {
    try {
      check_expression(expression, names_);
    } catch (const std::exception& failure) {
      wrong(where, failure.what());
    }
  }

  bool is_tensor(const std::string& name) const {
    return std::find(made_.tensors.begin(), made_.tensors.end(), name) != made_.tensors.end();
  }
  bool is_scratch(const std::string& name) const {
    return std::any_of(made_.scratch.begin(), made_.scratch.end(),
                       [&](const Scratch& one) { return one.name == name; });
  }

  const ordered_json& json_;
  std::string where_;
  DescribedOperator made_;
  Names names_;
};

// The record with the names of the paths in it.
ordered_json with_paths(ordered_json schema, const DescribedOperator& op) {
  ordered_json names = ordered_json::array();
  for (const DescribedPath& path : op.paths) names.push_back(path.name);
  schema["paths"] = std::move(names);
  return schema;
}

}  // namespace

const DescribedOperator* Description::find(std::string_view op) const {
  for (const DescribedOperator& one : operators) {
    if (one.name == op) return &one;
  }
  return nullptr;
}

Description read_description(std::string_view json, const std::string& folder) {
  const ordered_json whole = parsed(json);
  only_keys(whole, "", {"fusediff_opencl", "kernels", "operators"});
  if (member(whole, "", "fusediff_opencl") != 1) wrong("/fusediff_opencl", "must be 1");
  Description made;
  made.kernels = text_of(member(whole, "", "kernels"), "/kernels");
  if (made.kernels.empty()) wrong("/kernels", "must name a file");
  if (made.kernels[0] != '/') made.kernels = folder + "/" + made.kernels;
  ordered_json schema = {{"fusediff_schema", 1}, {"threads", "shared_context"}, {"operators", ordered_json::array()}};
  for (const ordered_json& one : list_of(member(whole, "", "operators"), "/operators")) {
    const std::string where = "/operators/" + std::to_string(made.operators.size());
    made.operators.push_back(OperatorReader(one, where).read());
    schema["operators"].push_back(with_paths(one.at("schema"), made.operators.back()));
  }
  made.schema = schema.dump(1);
  return made;
}

Description load_description(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) kit::fail(std::string_view(file), ": cannot be read");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const size_t slash = file.rfind('/');
  try {
    return read_description(text, slash == std::string::npos ? "." : file.substr(0, slash));
  } catch (const std::exception& failure) {
    kit::fail(std::string_view(file), ": ", failure.what());
  }
}

}  // namespace fusediff::opencl
