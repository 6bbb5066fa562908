#include "import/case_plan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <system_error>

#include "import/typing.h"
#include "model/call.h"
#include "model/quote.h"
#include "model/values.h"
#include "mutate/recipes.h"
#include "mutate/roles.h"
#include "mutate/scope.h"

namespace fusediff {
namespace {

// Where along the tensor its operator's rows lie; nothing: it has none.
std::optional<std::size_t> row_axis(const Operator& op, const InputRule& rule) {
  if (!op.rows) return std::nullopt;
  for (std::size_t d = 0; d < rule.shape.size(); ++d) {
    if (rule.shape[d].text() == op.rows->dim) return d;
  }
  return std::nullopt;
}

void name_bits(CasePlan& plan) {
  for (const Taken& taken : plan.taken) {
    InputValue& value = plan.c.inputs[taken.rule->name];
    value = {};
    value.fill.kind = FillKind::kBits;
    value.fill.bits_file = plan.name + ".safetensors#" + taken.rule->name;
    value.fill.bits_dtype = taken.plan.to;
  }
}

}  // namespace

Status Planner::plan(const TensorGroup& group, CasePlan& plan) const {
  plan.c.op = op_.name;
  std::vector<SizeClaim> claims;
  const auto in_turn = [&](const std::vector<InputRule>& rules) -> Status {
    for (const InputRule& rule : rules) {
      const auto at = group.sources.find(rule.name);
      if (at == group.sources.end()) continue;
      if (Status took = take(rule, at->second, claims, plan); !took.ok()) {
        return user_error(quote(pool_[at->second].tensor->name) + " as " + quote(rule.name) + ": " + took.error().what);
      }
    }
    return {};
  };
  if (Status took = in_turn(op_.inputs); !took.ok()) return took;
  if (Status took = in_turn(op_.given); !took.ok()) return took;
  claim_outputs(group, claims);
  if (Status stated = take_attrs(group, claims, plan.c); !stated.ok()) return stated;
  for (const auto& [name, size] : options_.dims) claims.push_back({*Expr::parse(name), size, "--dim " + name});
  const Result<SolvedDims> solved = solve_dims(op_, claims);
  if (!solved.ok()) return solved.error();
  plan.c.dims = solved->dims;
  for (const std::string& note : solved->notes) say_("note: " + note);
  for (const Taken& taken : plan.taken) {
    const auto place = [&] {
      return quote(pool_[taken.pooled].tensor->name) + " as " + quote(taken.rule->name) + ": ";
    };
    if (Status entered = Typing(op_, options_, say_).enter(*taken.rule, taken.plan, plan.c); !entered.ok())
      return user_error(place() + entered.error().what);
  }
  name_bits(plan);
  fill_in(plan.c);
  return check_size(plan);
}

Status Planner::take(const InputRule& rule, std::size_t pooled, std::vector<SizeClaim>& claims, CasePlan& plan) const {
  const CapturedTensor& tensor = *pool_[pooled].tensor;
  if (!tensor.problem.empty()) return user_error(tensor.problem);
  Taken taken;
  taken.rule = &rule;
  taken.pooled = pooled;
  if (Status typed = Typing(op_, options_, say_).decide(tensor, rule, taken.plan); !typed.ok()) return typed;
  taken.plan.swapped = tensor.type.swapped;
  taken.plan.fortran = tensor.fortran;
  taken.plan.file_shape = tensor.shape;
  const auto fitted = with_rank(tensor.shape, rule.shape.size());
  if (!fitted) return user_error(shape_text(tensor.shape) + " cannot be one element, which it has to be");
  taken.plan.shape = *fitted;
  if (*fitted != tensor.shape) {
    say_("note: " + quote(tensor.name) + " " + shape_text(tensor.shape) + " is taken as " + shape_text(*fitted));
  }
  if (const auto axis = row_axis(op_, rule); axis && options_.rows) {
    const auto [low, high] = *options_.rows;
    if (high > (*fitted)[*axis]) {
      return user_error("--rows " + std::to_string(low) + ":" + std::to_string(high) + ": there are " +
                        std::to_string((*fitted)[*axis]) + " rows");
    }
    taken.plan.axis = *axis;
    taken.plan.low = low;
    taken.plan.high = high;
  }
  const std::vector<std::int64_t> kept = kept_shape(taken.plan);
  for (std::size_t d = 0; d < kept.size(); ++d) {
    claims.push_back({rule.shape[d], kept[d], "axis " + std::to_string(d) + " of " + quote(rule.name)});
  }
  plan.taken.push_back(std::move(taken));
  return {};
}

// What was captured of the outputs says sizes that no input has; the values are not needed.
void Planner::claim_outputs(const TensorGroup& group, std::vector<SizeClaim>& claims) const {
  for (const auto& [name, at] : group.outputs) {
    const CapturedTensor& tensor = *pool_[at].tensor;
    const OutputRule& rule = *op_.output(name);
    const auto fitted = with_rank(tensor.shape, rule.shape.size());
    const bool rows = options_.rows.has_value();
    say_("not used: " + quote(tensor.name) + ": an output of " + op_.name +
         (fitted && !rows ? ", of which only the shape counts" : ""));
    for (std::size_t d = 0; fitted && !rows && d < fitted->size(); ++d) {
      claims.push_back({rule.shape[d], (*fitted)[d], "axis " + std::to_string(d) + " of " + quote(name)});
    }
  }
}

Status Planner::take_attrs(const TensorGroup& group, std::vector<SizeClaim>& claims, Case& c) const {
  std::map<std::string, std::string> texts;
  for (const auto& [name, at] : group.attrs) {
    const CapturedTensor& tensor = *pool_[at].tensor;
    if (tensor.value.empty() || !tensor.type.dtype || tensor.type.swapped) {
      say_("not used: " + quote(tensor.name) + ": an attribute is one number; --attr " + name + "=VALUE says it");
      continue;
    }
    const std::uint64_t bits = load_bits(*tensor.type.dtype, tensor.value.data());
    if (is_float(*tensor.type.dtype)) {
      char text[64];
      const auto end = std::to_chars(text, text + sizeof text, float_value(*tensor.type.dtype, bits)).ptr;
      texts[name] = std::string(text, end);
    } else {
      texts[name] = std::to_string(integer_value(*tensor.type.dtype, bits));
    }
  }
  for (const auto& [name, text] : options_.attrs) texts[name] = text;
  std::vector<std::string> legal;
  for (const AttrRule& rule : op_.attrs) legal.push_back(rule.name);
  for (const auto& [name, text] : texts) {
    const AttrRule* rule = op_.attr(name);
    if (rule == nullptr) return user_error("--attr: " + not_one_of(name, "an attribute of " + op_.name, legal));
    const Result<AttrValue> value = attr_value(*rule, text);
    if (!value.ok()) return value.error();
    if (rule->derived) {
      claims.push_back({*rule->derived, std::get<std::int64_t>(*value), "the attribute " + name});
    } else {
      c.attrs[name] = *value;
    }
  }
  return {};
}

// Inputs that the operator needs and the file has not.
void Planner::fill_in(Case& c) const {
  const auto choose = [&c](const auto& rules) {
    for (const auto& rule : rules) {
      if (rule.dtype.choices.size() > 1) c.dtypes.try_emplace(rule.name, rule.dtype.choices.front());
    }
  };
  choose(op_.inputs);
  choose(op_.given);
  choose(op_.outputs);
  const CaseScope scope(c, op_);
  const auto add = [&](const InputRule& rule, const std::string& name) {
    if (!is_drawn(rule) || c.inputs.contains(name)) return;
    if (rule.condition ? !scope.holds(*rule.condition) : rule.optional) return;
    InputValue& value = c.inputs[name];
    value.fill = plain_fill(rule, dtype_in(c, op_, rule.dtype, name), 1);
    say_("note: " + quote(name) + " is not in the file: it is drawn, " + std::string(name_of(value.fill.kind)));
  };
  for (const auto* rules : {&op_.inputs, &op_.given}) {
    for (const InputRule& rule : *rules) add(rule, rule.name);
  }
}

// The memory cap; where rows would help, how many fit.
Status Planner::check_size(const CasePlan& plan) const {
  const Result<Call> call = bind(plan.c, op_, options_.max_bytes);
  if (call.ok()) return {};
  if (!op_.rows || !bind(plan.c, op_, UINT64_MAX).ok()) return call.error();
  std::int64_t low = 0, high = plan.c.dims.at(op_.rows->dim);
  Case smaller = plan.c;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    smaller.dims[op_.rows->dim] = middle;
    (bind(smaller, op_, options_.max_bytes).ok() ? low : high) = middle;
  }
  if (low == 0) return call.error();
  return user_error(call.error().what + "; --rows 0:" + std::to_string(low) + " takes as many rows as fit");
}

Result<AttrValue> attr_value(const AttrRule& rule, const std::string& text) {
  const char* const end = text.data() + text.size();
  const auto wrong = [&](const std::string& what) {
    return user_error("--attr " + rule.name + ": " + quote(text) + " is no " + what);
  };
  if (rule.kind == AttrKind::kChoice) {
    if (std::find(rule.choices.begin(), rule.choices.end(), text) != rule.choices.end()) return AttrValue(text);
    return user_error("--attr " + rule.name + ": " + not_one_of(text, "a choice", rule.choices));
  }
  if (rule.kind == AttrKind::kFloat) {
    double value = 0;
    const auto [stop, code] = std::from_chars(text.data(), end, value);
    return code == std::errc() && stop == end ? Result<AttrValue>(AttrValue(value)) : wrong("number");
  }
  if (rule.kind == AttrKind::kBool && (text == "true" || text == "false"))
    return AttrValue(std::int64_t{text == "true"});
  std::int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end) return wrong("whole number");
  if (rule.kind == AttrKind::kBool && value != 0 && value != 1) return wrong("bool; true and false are");
  return AttrValue(value);
}

}  // namespace fusediff
