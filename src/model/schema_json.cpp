#include "model/schema_json.h"

#include <algorithm>

#include "model/schema_check.h"
#include "model/schema_read.h"
#include "model/schema_search.h"

namespace fusediff {

namespace {

constexpr JsonLimits kLimits = {std::size_t{16} << 20, 64, 1 << 20};

constexpr SpellingTable<bool, 2> kThreads = {{{"shared_context", true}, {"one_context_each", false}}};

// An operator's name may hold what libraries use: "aten::add", "npu.gating-v2".
bool is_operator_name(std::string_view text) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == ':' || c == '-';
  };
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), fine);
}

struct OperatorReader {
  const JsonView& at;
  const SchemaLookup& lookup;
  JsonTrouble& trouble;
  Operator op;
  bool like = false;
  std::size_t inherited_where = 0;

  // The record that "like" names; its threads are those of the other target, not of this one.
  void inherit(const JsonView& from, bool shared_context) {
    const std::string target = read_string(from, trouble, "a target");
    const Schema* schema = lookup ? lookup(target) : nullptr;
    if (schema == nullptr) {
      trouble.at(from, "there is no target " + quote(target) + " whose record could be used here");
      return;
    }
    const Operator* base = schema->find(op.name);
    if (base == nullptr) {
      std::vector<std::string> legal;
      for (const Operator& known : schema->operators) legal.push_back(known.name);
      trouble.at(from, not_one_of(op.name, "an operator of " + quote(target), legal));
      return;
    }
    op = *base;
    op.shared_context = shared_context;
    inherited_where = op.where.size();
  }

  // Required, unless the record is like another.
  std::optional<JsonView> required(JsonObject& object, std::string_view key) {
    return like ? object.find(key) : object.need(key);
  }

  void narrow(const JsonView& map) {
    if (!expect_object(map, trouble, "a map from tensors to dtypes")) return;
    for (const JsonView item : map) {
      DTypeRule* rule = nullptr;
      for (auto* list : {&op.inputs, &op.given}) {
        for (InputRule& input : *list) rule = input.name == item.key() ? &input.dtype : rule;
      }
      for (OutputRule& output : op.outputs) rule = output.name == item.key() ? &output.dtype : rule;
      if (rule == nullptr) {
        trouble.at(item, quote(item.key()) + " is not a tensor of this operator");
        return;
      }
      if (!rule->same_as.empty()) trouble.at(item, "follows " + quote(rule->same_as) + "; narrow that one instead");
      std::vector<std::string> legal;
      for (const DType dtype : rule->choices) legal.emplace_back(name_of(dtype));
      std::vector<DType> narrowed = read_dtypes(item, trouble);
      for (const DType dtype : narrowed) {
        const bool known = std::find(rule->choices.begin(), rule->choices.end(), dtype) != rule->choices.end();
        if (!known) trouble.at(item, not_one_of(name_of(dtype), "a dtype that it could have", legal));
      }
      rule->choices = std::move(narrowed);
    }
  }

  void read_paths(JsonObject& object) {
    const bool all = op.deterministic_paths == op.paths;
    if (const auto value = required(object, "paths")) op.paths = read_names(*value, trouble, "a path");
    if (all) op.deterministic_paths = op.paths;
    std::erase_if(op.deterministic_paths, [this](const std::string& path) { return !op.has_path(path); });
    if (const auto value = object.find("deterministic")) {
      if (value->is(JsonKind::kArray)) {
        op.deterministic_paths = read_names(*value, trouble, "a path");
      } else {
        op.deterministic_paths = read_bool(*value, trouble) ? op.paths : std::vector<std::string>();
      }
    }
  }

  void read_tensors(JsonObject& object) {
    if (const auto value = required(object, "inputs")) op.inputs = read_inputs(*value, trouble, false);
    if (const auto value = object.find("given")) op.given = read_inputs(*value, trouble, true);
    if (const auto value = required(object, "outputs")) op.outputs = read_outputs(*value, trouble);
    if (like) {
      if (const auto value = object.find("dtype")) narrow(*value);
    }
  }

  void read_rules(JsonObject& object) {
    if (const auto value = required(object, "dims")) op.dims = read_dims(*value, trouble);
    if (const auto value = object.find("attrs")) op.attrs = read_attrs(*value, trouble);
    const auto where = object.find("where");
    if (where && expect_array(*where, trouble, "a list of expressions")) {
      for (const JsonView item : *where) op.where.push_back(read_expr(item, trouble));
    }
    if (const auto value = object.find("decide")) op.decide = read_decide(*value, trouble);
    if (const auto value = object.find("rows")) op.rows = fusediff::read_rows(*value, trouble);
    if (const auto value = object.find("inplace")) op.inplace = read_inplace(*value, trouble);
    if (const auto value = object.find("gradient")) op.gradient = fusediff::read_gradient(*value, trouble);
    if (const auto value = object.find("threads")) {
      op.shared_context = read_spelling(*value, trouble, "a threads rule", kThreads);
    }
  }

  void search() {
    const LegalSearch found = find_legal(op);
    if (found.found) return;
    if (found.never_true) {
      trouble.at(where_pointer(at.pointer(), *found.never_true, inherited_where),
                 "no call within the tried ranges satisfies " + quote(op.where[*found.never_true].text()));
    } else {
      trouble.at(at.pointer() + "/where",
                 "no call within the tried ranges was found that satisfies all rules at once and "
                 "gives every tensor a size (" +
                     std::to_string(found.tried) + " tried)");
    }
  }

  void read(bool shared_context) {
    JsonObject object(at, trouble, "an operator");
    if (const auto name = object.need("name")) {
      op.name = read_string(*name, trouble, "the name of an operator");
      if (!is_operator_name(op.name))
        trouble.at(*name, quote(op.name) + " cannot name an operator: letters, digits and _.:- can");
    }
    op.shared_context = shared_context;
    if (const auto from = object.find("like")) {
      like = true;
      inherit(*from, shared_context);
    }
    read_paths(object);
    read_rules(object);
    read_tensors(object);
    object.finish();
    if (op.rows && op.rows->all_outputs) {
      op.rows->outputs.clear();
      for (const OutputRule& output : op.outputs) op.rows->outputs.push_back(output.name);
    }
    if (trouble.any()) return;
    check_operator(op, at.pointer(), inherited_where, trouble);
    if (trouble.any()) return;
    resolve_names(op);
    search();
  }
};

void read_version(const JsonView& root, JsonObject& object, JsonTrouble& trouble) {
  const auto version = object.need("fusediff_schema");
  if (!version) return;
  const std::int64_t number = read_integer(*version, trouble, "a schema version", 1);
  if (number > kSchemaVersion) {
    trouble.at(root, "fusediff_schema " + std::to_string(number) + " is newer than this fusediff, which reads up to " +
                         std::to_string(kSchemaVersion));
  }
}

void read_operators(const JsonView& list, const SchemaLookup& lookup, bool shared_context, Schema& schema,
                    JsonTrouble& trouble) {
  if (!expect_array(list, trouble, "a list of operators", 1)) return;
  for (const JsonView item : list) {
    OperatorReader reader{item, lookup, trouble, {}, false, 0};
    reader.read(shared_context);
    if (trouble.any()) return;
    if (schema.find(reader.op.name) != nullptr) trouble.at(item, "operator " + quote(reader.op.name) + " stands twice");
    schema.operators.push_back(std::move(reader.op));
  }
  for (std::size_t i = 0; i < schema.operators.size(); ++i) {
    check_references(schema, schema.operators[i], "/operators/" + std::to_string(i), trouble);
  }
}

}  // namespace

Result<Schema> parse_schema(std::string_view json, const SchemaLookup& lookup) {
  Result<JsonTree> tree = JsonTree::parse(json, kLimits);
  if (!tree.ok()) return tree.error();
  JsonTrouble trouble;
  const JsonView root = tree->root();
  JsonObject object(root, trouble, "a schema");
  Schema schema;
  read_version(root, object, trouble);
  bool shared_context = true;
  if (const auto threads = object.find("threads")) {
    shared_context = read_spelling(*threads, trouble, "a threads rule", kThreads);
  }
  const auto operators = object.need("operators");
  object.finish();
  if (operators && !trouble.any()) read_operators(*operators, lookup, shared_context, schema, trouble);
  if (trouble.any()) return trouble.error();
  return schema;
}

}  // namespace fusediff
