#include "model/schema_check.h"

#include <algorithm>
#include <set>

#include "model/quote.h"

namespace fusediff {

namespace {

template <typename List>
std::vector<std::string> names_in(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(item.name);
  return names;
}

const DTypeRule* dtype_rule(const Operator& op, std::string_view tensor) {
  if (const InputRule* input = op.source(tensor)) return &input->dtype;
  const OutputRule* output = op.output(tensor);
  return output == nullptr ? nullptr : &output->dtype;
}

bool all_integers(const std::vector<DType>& dtypes) { return std::none_of(dtypes.begin(), dtypes.end(), is_float); }
bool all_floats(const std::vector<DType>& dtypes) { return std::all_of(dtypes.begin(), dtypes.end(), is_float); }

// The walk over one operator. Each function states what it looks at; the first trouble is kept.
struct Check {
  const Operator& op;
  const std::string& pointer;
  std::size_t inherited_where;
  JsonTrouble& trouble;

  void at(const std::string& below, const std::string& what) { trouble.at(pointer + below, what); }

  void one_of(const std::string& below, const std::string& name, std::string_view kind,
              const std::vector<std::string>& legal) {
    if (std::find(legal.begin(), legal.end(), name) == legal.end()) at(below, not_one_of(name, kind, legal));
  }

  void no_repeats(const std::string& below, const std::vector<std::string>& names, std::string_view what) {
    std::set<std::string> seen;
    for (const std::string& name : names) {
      if (!seen.insert(name).second) at(below, quote(name) + " names " + std::string(what));
    }
  }

  // An expression over dims, and attributes unless only dims make sense there.
  void expression(const std::string& below, const Expr& expr, bool attrs_too) {
    for (const std::string& name : expr.names()) {
      if (op.dim(name) != nullptr) continue;
      const AttrRule* attr = op.attr(name);
      if (attr != nullptr && attrs_too && attr->kind != AttrKind::kFloat) continue;
      if (attr != nullptr && attr->kind == AttrKind::kFloat) {
        at(below, "attribute " + quote(name) + " is a float and cannot stand in an expression");
      } else if (attr != nullptr) {
        at(below, "attribute " + quote(name) + " stands where only dims may: " + list_of(names_in(op.dims)));
      } else {
        std::vector<std::string> legal = names_in(op.dims);
        if (attrs_too) {
          for (const AttrRule& known : op.attrs) legal.push_back(known.name);
        }
        at(below, not_one_of(name, attrs_too ? "a dim or attribute" : "a dim", legal));
      }
      return;
    }
    const Status kinds = expr.check_kinds([this](std::string_view name) {
      const AttrRule* attr = op.attr(name);
      return attr != nullptr && attr->kind == AttrKind::kChoice ? ExprKind::kString : ExprKind::kNumber;
    });
    if (!kinds.ok()) at(below, kinds.error().what);
  }

  void condition(const std::string& below, const std::optional<Expr>& expr) {
    if (expr) expression(below + "/if", *expr, true);
  }

  void names() {
    if (op.paths.empty()) at("/paths", "an operator needs a path, e.g. \"fused\"");
    std::vector<std::string> scalars = names_in(op.dims);
    for (const AttrRule& attr : op.attrs) scalars.push_back(attr.name);
    no_repeats("/attrs", scalars, "two dims or attributes");
    std::vector<std::string> tensors = names_in(op.inputs);
    for (const InputRule& given : op.given) tensors.push_back(given.name);
    for (const OutputRule& output : op.outputs) tensors.push_back(output.name);
    no_repeats("", tensors, "two tensors");
    for (std::size_t i = 0; i < op.deterministic_paths.size(); ++i) {
      one_of("/deterministic/" + std::to_string(i), op.deterministic_paths[i], "a path", op.paths);
    }
  }

  void attributes() {
    for (std::size_t i = 0; i < op.attrs.size(); ++i) {
      const std::string below = "/attrs/" + std::to_string(i);
      if (op.attrs[i].derived) expression(below + "/int", *op.attrs[i].derived, false);
      condition(below, op.attrs[i].condition);
    }
    for (std::size_t i = 0; i < op.where.size(); ++i) {
      expression(where_pointer("", i, inherited_where), op.where[i], true);
    }
  }

  template <typename Rule>
  void tensor(const std::string& below, const Rule& rule) {
    for (std::size_t i = 0; i < rule.shape.size(); ++i) {
      expression(below + "/shape/" + std::to_string(i), rule.shape[i], false);
    }
    condition(below, rule.condition);
    if (rule.dtype.same_as.empty()) return;
    if (dtype_rule(op, rule.dtype.same_as) == nullptr) {
      std::vector<std::string> legal = names_in(op.inputs);
      at(below + "/dtype", not_one_of(rule.dtype.same_as, "a tensor", legal));
    } else if (possible_dtypes(op, rule.dtype).empty()) {
      at(below + "/dtype",
         quote("=" + rule.dtype.same_as) + " leads back to itself; one of the tensors must name a dtype");
    }
  }

  void input(const std::string& below, const InputRule& rule) {
    tensor(below, rule);
    if (rule.range) {
      expression(below + "/range/0", rule.range->first, true);
      expression(below + "/range/1", rule.range->second, true);
    }
    if (rule.sum) expression(below + "/sum", *rule.sum, true);
    const std::vector<DType> dtypes = possible_dtypes(op, rule.dtype);
    const Role role = rule.role;
    if ((role == Role::kIndex || role == Role::kCounts || role == Role::kOffsets) && !all_integers(dtypes)) {
      at(below + "/dtype", "the roles index, counts and offsets need integer dtypes");
    }
    const bool real = role == Role::kScore || role == Role::kProbability || role == Role::kScale ||
                      role == Role::kCotangent || role == Role::kBias;
    if (real && !all_floats(dtypes)) {
      at(below + "/dtype", "the roles score, bias, probability, scale and cotangent need float dtypes");
    }
    if (rule.saved) saved(below + "/saved", *rule.saved);
  }

  void saved(const std::string& below, const SavedRule& rule) {
    std::vector<std::string> legal;
    for (const auto* list : {&op.inputs, &op.given}) {
      for (const InputRule& source : *list) {
        if (!source.saved) legal.push_back(source.name);
      }
    }
    for (const auto& [producer, here] : rule.inputs) {
      one_of(below + "/inputs/" + producer, here, "an input or given tensor with values of its own", legal);
    }
  }

  void output(const std::string& below, const OutputRule& rule) {
    tensor(below, rule);
    const std::vector<DType> dtypes = possible_dtypes(op, rule.dtype);
    const auto possible = [&](DType dtype) { return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end(); };
    if (rule.agree.ulp.size() < kDTypes.size()) {
      for (const auto& [dtype, ulp] : rule.agree.ulp) {
        if (!possible(dtype)) at(below + "/agree/ulp", quote(name_of(dtype)) + " is no dtype of this output");
      }
    }
    if (rule.bound) {
      if (!all_floats(dtypes)) at(below + "/bound", "a bound on rounding needs float dtypes");
      bound(below + "/bound", *rule.bound);
    }
    if (rule.nan_bits && std::none_of(dtypes.begin(), dtypes.end(), is_float))
      at(below + "/nan", "integers have no NaN");
    for (std::size_t i = 0; i < rule.always.size(); ++i)
      promise(below + "/always/" + std::to_string(i), rule.always[i]);
  }

  // Dtypes that the output cannot have are no mistake: a record like another may be narrower.
  void bound(const std::string& below, const BoundRule& rule) {
    expression(below + "/ulp", rule.ulp, true);
    for (const auto& [dtype, ulp] : rule.by_dtype) {
      expression(below + "/ulp/" + std::string(name_of(dtype)), ulp, true);
      if (!is_float(dtype)) at(below + "/ulp", "a bound on rounding needs float dtypes, not " + quote(name_of(dtype)));
    }
    std::vector<std::string> legal;
    for (const InputRule& input : op.inputs) {
      if (all_floats(possible_dtypes(op, input.dtype))) legal.push_back(input.name);
    }
    if (!rule.by.empty()) one_of(below + "/by", rule.by, "a float input", legal);
    for (const OutputRule& output : op.outputs) {
      if (all_floats(possible_dtypes(op, output.dtype))) legal.push_back(output.name);
    }
    for (const AttrRule& attr : op.attrs) {
      if (attr.kind == AttrKind::kFloat) legal.push_back(attr.name);
    }
    for (const std::vector<std::string>& product : rule.products) {
      for (const std::string& factor : product) one_of(below + "/of", factor, "a float tensor or attribute", legal);
    }
  }

  void promise(const std::string& below, const AlwaysRule& rule) {
    if (const auto* low = std::get_if<Expr>(&rule.low)) expression(below + "/range/0", *low, true);
    if (const auto* high = std::get_if<Expr>(&rule.high)) expression(below + "/range/1", *high, true);
    condition(below, rule.condition);
  }

  void tensors() {
    const auto index = [](std::size_t i) { return "/" + std::to_string(i); };
    for (std::size_t i = 0; i < op.inputs.size(); ++i) input("/inputs" + index(i), op.inputs[i]);
    for (std::size_t i = 0; i < op.given.size(); ++i) input("/given" + index(i), op.given[i]);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) output("/outputs" + index(i), op.outputs[i]);
  }

  void decision(const std::string& below, const DecideRule& rule) {
    const std::vector<std::string> inputs = names_in(op.inputs);
    const std::vector<std::string> outputs = names_in(op.outputs);
    std::vector<std::string> both = inputs;
    both.insert(both.end(), outputs.begin(), outputs.end());
    one_of(below + "/by", rule.by, "an input or output", both);
    one_of(below + "/pick", rule.pick, "an output", outputs);
    if (!rule.values.empty()) one_of(below + "/values", rule.values, "an output", outputs);
    if (!rule.among.empty()) one_of(below + "/among", rule.among, "an input", inputs);
    expression(below + "/count", rule.count, true);
    const OutputRule* pick = op.output(rule.pick);
    if (pick != nullptr && !all_integers(possible_dtypes(op, pick->dtype))) {
      at(below + "/pick", quote(rule.pick) + " must have an integer dtype to hold picks");
    }
    const InputRule* among = op.input(rule.among);
    if (among != nullptr && !all_integers(possible_dtypes(op, among->dtype))) {
      at(below + "/among", quote(rule.among) + " must have an integer dtype to hold numbers of candidates");
    }
    if (rule.order != Order::kByAttr) return;
    std::vector<std::string> bools;
    for (const AttrRule& attr : op.attrs) {
      if (attr.kind == AttrKind::kBool) bools.push_back(attr.name);
    }
    one_of(below + "/order", rule.order_attr, "a bool attribute", bools);
  }

  template <typename Rule>
  void row_axis(const std::string& below, const Rule& rule) {
    const auto axes = std::count_if(rule.shape.begin(), rule.shape.end(),
                                    [this](const Expr& size) { return size.text() == op.rows->dim; });
    if (axes == 1) return;
    at(below, quote(rule.name) + " needs exactly one axis whose size is " + quote(op.rows->dim) + ", it has " +
                  std::to_string(axes));
  }

  void rows() {
    if (!op.rows) return;
    one_of("/rows/dim", op.rows->dim, "a dim", names_in(op.dims));
    std::vector<std::string> sources = names_in(op.inputs);
    for (const InputRule& given : op.given) sources.push_back(given.name);
    for (std::size_t i = 0; i < op.rows->inputs.size(); ++i) {
      const std::string below = "/rows/inputs/" + std::to_string(i);
      one_of(below, op.rows->inputs[i], "an input or given tensor", sources);
      if (const InputRule* rule = op.source(op.rows->inputs[i])) row_axis(below, *rule);
    }
    for (std::size_t i = 0; i < op.rows->outputs.size(); ++i) {
      const std::string below = op.rows->all_outputs ? "/rows/outputs" : "/rows/outputs/" + std::to_string(i);
      one_of(below, op.rows->outputs[i], "an output", names_in(op.outputs));
      if (const OutputRule* rule = op.output(op.rows->outputs[i])) row_axis(below, *rule);
    }
  }

  void inplace() {
    std::set<std::string> fixed_outputs;
    std::set<std::string> fixed_inputs;
    for (std::size_t i = 0; i < op.inplace.size(); ++i) {
      const InplaceRule& rule = op.inplace[i];
      const std::string below = "/inplace/" + std::to_string(i);
      one_of(below + "/0", rule.output, "an output", names_in(op.outputs));
      one_of(below + "/1", rule.input, "an input", names_in(op.inputs));
      if (!rule.always) continue;
      if (!fixed_outputs.insert(rule.output).second) at(below, quote(rule.output) + " cannot always lie on two inputs");
      if (!fixed_inputs.insert(rule.input).second) at(below, "two outputs cannot always lie on " + quote(rule.input));
    }
  }

  void gradient() {
    if (!op.gradient) return;
    for (const auto& [output, input] : op.gradient->wrt) {
      one_of("/gradient/wrt", output, "an output", names_in(op.outputs));
    }
    for (const auto& [input, output] : op.gradient->cotangents) {
      one_of("/gradient/cotangents", input, "an input", names_in(op.inputs));
    }
  }

  void determinism() {
    if (op.deterministic_paths.size() == op.paths.size()) return;
    const auto loose = [](const OutputRule& output) { return !output.agree.ulp.empty(); };
    if (std::any_of(op.outputs.begin(), op.outputs.end(), loose)) return;
    at("/deterministic",
       "where it is not true, repeated runs are judged by `agree`: at least one output's must not be bits");
  }

  void all() {
    names();
    attributes();
    tensors();
    for (std::size_t i = 0; i < op.decide.size(); ++i) decision("/decide/" + std::to_string(i), op.decide[i]);
    rows();
    inplace();
    gradient();
    determinism();
  }
};

}  // namespace

std::string where_pointer(const std::string& pointer, std::size_t index, std::size_t inherited_where) {
  if (index < inherited_where) return pointer + "/like";
  return pointer + "/where/" + std::to_string(index - inherited_where);
}

std::vector<DType> possible_dtypes(const Operator& op, const DTypeRule& rule) {
  const DTypeRule* at = &rule;
  // A chain without a circle visits each tensor once.
  const std::size_t tensors = op.inputs.size() + op.given.size() + op.outputs.size();
  for (std::size_t steps = 0; at != nullptr && steps <= tensors; ++steps) {
    if (at->same_as.empty()) return at->choices;
    at = dtype_rule(op, at->same_as);
  }
  return {};
}

void check_operator(const Operator& op, const std::string& pointer, std::size_t inherited_where, JsonTrouble& trouble) {
  Check{op, pointer, inherited_where, trouble}.all();
}

void check_references(const Schema& schema, const Operator& op, const std::string& pointer, JsonTrouble& trouble) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!op.inputs[i].saved) continue;
    const SavedRule& rule = *op.inputs[i].saved;
    const Operator* producer = schema.find(rule.op);
    if (producer == nullptr) continue;  // of the other side's schema, then
    const std::string below = pointer + "/inputs/" + std::to_string(i) + "/saved";
    if (producer->output(rule.output) == nullptr) {
      trouble.at(below + "/output", not_one_of(rule.output, "an output of " + rule.op, names_in(producer->outputs)));
    }
    for (const auto& [input, here] : rule.inputs) {
      if (producer->source(input) != nullptr) continue;
      trouble.at(below + "/inputs", not_one_of(input, "an input of " + rule.op, names_in(producer->inputs)));
    }
  }
  const Operator* forward = op.gradient ? schema.find(op.gradient->of) : nullptr;
  if (forward == nullptr) return;
  for (const auto& [gradient, input] : op.gradient->wrt) {
    if (forward->input(input) != nullptr) continue;
    trouble.at(pointer + "/gradient/wrt/" + gradient,
               not_one_of(input, "an input of " + forward->name, names_in(forward->inputs)));
  }
  for (const auto& [cotangent, output] : op.gradient->cotangents) {
    if (forward->output(output) != nullptr) continue;
    trouble.at(pointer + "/gradient/cotangents/" + cotangent,
               not_one_of(output, "an output of " + forward->name, names_in(forward->outputs)));
  }
}

}  // namespace fusediff
