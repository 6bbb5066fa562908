#include "mutate/repair_shape.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "model/call.h"
#include "mutate/recipes.h"
#include "mutate/roles.h"
#include "mutate/sizes.h"
#include "mutate/where.h"

namespace fusediff {
namespace {

bool is_listed(const AttrRule& rule, const AttrValue& value) {
  return value == rule.standard || std::find(rule.also.begin(), rule.also.end(), value) != rule.also.end();
}

// The nearest value that the rule names; nothing: its default.
std::optional<AttrValue> legal_attr(const AttrRule& rule, const std::optional<AttrValue>& held, Rng& rng) {
  if (held && is_listed(rule, *held)) return held;
  switch (rule.kind) {
    case AttrKind::kInt:
      if (held && held->index() == 0) {
        return AttrValue(
            std::clamp(std::get<std::int64_t>(*held), rule.int_low, std::max(rule.int_low, rule.int_high)));
      }
      break;
    case AttrKind::kBool:
      if (held && held->index() == 0) return AttrValue(std::int64_t{std::get<std::int64_t>(*held) != 0});
      break;
    case AttrKind::kFloat:
      if (held && held->index() == 1 && !std::isnan(std::get<double>(*held))) {
        return AttrValue(std::clamp(std::get<double>(*held), rule.float_low, rule.float_high));
      }
      break;
    case AttrKind::kChoice:
      if (held && held->index() == 2 &&
          std::find(rule.choices.begin(), rule.choices.end(), std::get<std::string>(*held)) != rule.choices.end()) {
        return held;
      }
      break;
  }
  if (rule.standard) return std::nullopt;
  std::optional<AttrValue> drawn = draw_attr(rule, rng);
  return drawn;
}

template <typename Map, typename Known>
void erase_unknown(Map& map, const Known& known) {
  std::erase_if(map, [&](const auto& item) { return !known(item.first); });
}

void repair_dims(Case& c, const Operator& op) {
  erase_unknown(c.dims, [&](const std::string& name) { return op.dim(name) != nullptr; });
  for (const DimRule& rule : op.dims) {
    const auto [at, added] = c.dims.try_emplace(rule.name, rule.low);
    at->second = std::clamp(at->second, rule.low, std::max(rule.low, kMaxElements));
  }
}

void repair_attrs(Case& c, MutateContext& context) {
  const Operator& op = context.op;
  erase_unknown(c.attrs, [&](const std::string& name) {
    const AttrRule* rule = op.attr(name);
    return rule != nullptr && !rule->derived;
  });
  CaseScope scope(c, op);
  for (std::size_t i = 0; i < op.attrs.size(); ++i) {
    const AttrRule& rule = op.attrs[i];
    if (!rule.derived) scope.attrs()[i] = legal_attr(rule, scope.attrs()[i], context.rng);
  }
  scope.store(c);
}

// An attribute whose "if" does not hold is passed with its default: nothing of it stands in the case.
void drop_idle_attrs(CaseScope& scope) {
  const std::vector<AttrRule>& rules = scope.op().attrs;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].condition && rules[i].standard && !scope.holds(*rules[i].condition)) scope.attrs()[i].reset();
  }
}

void repair_dtypes(Case& c, const Operator& op) {
  const auto rule_of = [&](const std::string& name) -> const DTypeRule* {
    if (const InputRule* input = op.source(name)) return &input->dtype;
    const OutputRule* output = op.output(name);
    return output == nullptr ? nullptr : &output->dtype;
  };
  std::erase_if(c.dtypes, [&](const auto& item) {
    const DTypeRule* rule = rule_of(item.first);
    return rule == nullptr || rule->choices.size() < 2 ||
           std::find(rule->choices.begin(), rule->choices.end(), item.second) == rule->choices.end();
  });
  const auto fill_in = [&](const auto& rules) {
    for (const auto& rule : rules) {
      if (rule.dtype.choices.size() > 1) c.dtypes.try_emplace(rule.name, rule.dtype.choices.front());
    }
  };
  fill_in(op.inputs);
  fill_in(op.given);
  fill_in(op.outputs);
}

// What holds for the layout of one tensor.
struct Limits {
  LayoutRule rule = LayoutRule::kDense;
  std::int64_t align = 0;
  bool may_be_zero = false;       // strides, in layout any
  bool last_may_be_zero = false;  // that of the last dim
};

// Strides for this shape in the old order, the old ones where they are wide enough; nothing: dense.
std::optional<std::vector<std::int64_t>> fitting_strides(const std::vector<std::int64_t>& old,
                                                         const std::vector<std::int64_t>& shape, const Limits& limits) {
  const std::size_t rank = shape.size();
  if (limits.rule == LayoutRule::kDense || old.size() != rank || rank == 0) return std::nullopt;
  std::vector<std::size_t> order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return old[a] < old[b]; });
  std::vector<std::int64_t> stride(rank, 0);
  std::int64_t next = 1;
  const auto place = [&](std::size_t dim, std::int64_t wide) {
    stride[dim] = std::max(wide, next);
    const std::int64_t size = std::max<std::int64_t>(shape[dim], 1);
    if (stride[dim] > kMaxElements / size) return false;
    next = stride[dim] * size;
    return true;
  };
  if (limits.rule == LayoutRule::kInnerDense && !place(rank - 1, 1)) return std::nullopt;
  for (const std::size_t dim : order) {
    const bool inner = dim == rank - 1;
    if (inner && limits.rule == LayoutRule::kInnerDense) continue;
    if (old[dim] < 0) return std::nullopt;
    if (old[dim] == 0 && limits.may_be_zero && limits.rule == LayoutRule::kAny && (!inner || limits.last_may_be_zero))
      continue;
    if (!place(dim, old[dim])) return std::nullopt;
  }
  if (stride == dense_strides(shape)) return std::nullopt;
  return stride;
}

void repair_placing(LayoutChoice& layout, std::int64_t align, DType dtype) {
  const std::int64_t unit = std::max<std::int64_t>(1, align / static_cast<std::int64_t>(size_of(dtype)));
  constexpr std::int64_t kMaxOffset = 4096;
  layout.offset =
      layout.place == Place::kEnd ? 0 : std::clamp<std::int64_t>(layout.offset, 0, kMaxOffset) / unit * unit;
}

bool is_there(const Case& c, const CaseScope& scope, const InputRule& rule) {
  if (is_drawn(rule)) return c.inputs.contains(rule.name);
  return !rule.condition || scope.holds(*rule.condition);
}

bool is_there(const Case& c, const CaseScope& scope, const OutputRule& rule) {
  return std::find(c.unwanted.begin(), c.unwanted.end(), rule.name) == c.unwanted.end() &&
         (!rule.condition || scope.holds(*rule.condition));
}

const InplaceRule* inplace_rule(const Operator& op, const std::string& output, const std::string& input) {
  for (const InplaceRule& rule : op.inplace) {
    if (rule.output == output && rule.input == input) return &rule;
  }
  return nullptr;
}

// Keeps `on` where a rule allows it, the input is there and no other output lies on it.
void repair_inplace(Case& c, const CaseScope& scope) {
  const Operator& op = scope.op();
  for (const InplaceRule& rule : op.inplace) {
    if (rule.always) c.layout[rule.output].on = rule.input;
  }
  std::vector<std::string> taken;
  for (auto& [name, layout] : c.layout) {
    if (layout.on.empty()) continue;
    const InputRule* input = op.input(layout.on);
    const OutputRule* output = op.output(name);
    const bool legal = inplace_rule(op, name, layout.on) != nullptr && input != nullptr && output != nullptr &&
                       is_there(c, scope, *input) && is_there(c, scope, *output) &&
                       std::find(taken.begin(), taken.end(), layout.on) == taken.end();
    if (legal) taken.push_back(layout.on);
    const std::string on = legal ? layout.on : "";
    layout = legal ? LayoutChoice{} : layout;
    layout.on = on;
  }
}

// The layout of an input is also that of the output that lies on it: both rules hold, and nothing is repeated.
Limits limits_of_input(const Case& c, const Operator& op, const InputRule& rule) {
  Limits limits{rule.layout, rule.align, may_repeat(rule), may_repeat_last(rule)};
  for (const InplaceRule& inplace : op.inplace) {
    if (inplace.input != rule.name) continue;
    const auto at = c.layout.find(inplace.output);
    const OutputRule* output = op.output(inplace.output);
    if (output == nullptr || at == c.layout.end() || at->second.on != rule.name) continue;
    limits.may_be_zero = false;
    limits.rule = std::min(limits.rule, output->layout);
    limits.align = std::max(limits.align, output->align);
  }
  return limits;
}

}  // namespace

bool repair_sizes(Case& c, MutateContext& context) {
  c.op = context.op.name;
  repair_dims(c, context.op);
  repair_attrs(c, context);
  repair_dtypes(c, context.op);
  CaseScope scope(c, context.op);
  constexpr int kTries = 8;  // what shrinks may break a rule, and what mends it may grow
  constexpr std::uint64_t kAnyCount = UINT64_MAX;
  bool met = false;
  for (int i = 0; i < kTries && !met; ++i) {
    if (!meet_where(scope, context.rng)) return false;
    const std::optional<Volume> volume = volume_of(c, scope);
    met = volume && volume->bytes <= context.max_bytes;
    if (!met && !shrink_dims(c, scope, kAnyCount, context.max_bytes, context.rng)) return false;
    if (!met) met = where_holds(scope);
  }
  drop_idle_attrs(scope);
  scope.store(c);
  return met;
}

void repair_presence(Case& c, MutateContext& context) {
  const Operator& op = context.op;
  erase_unknown(c.inputs, [&](const std::string& name) { return op.source(name) != nullptr; });
  const CaseScope scope(c, op);
  const auto repair_one = [&](const InputRule& rule, bool may_miss) {
    if (!is_drawn(rule)) {
      const auto at = c.inputs.find(rule.name);
      if (at != c.inputs.end() && at->second.fill.kind != FillKind::kBits) c.inputs.erase(at);
      return;
    }
    if (rule.condition ? !scope.holds(*rule.condition) : (may_miss && !c.inputs.contains(rule.name))) {
      c.inputs.erase(rule.name);
      return;
    }
    const auto [at, added] = c.inputs.try_emplace(rule.name);
    if (added) {
      const DType dtype = dtype_in(c, op, rule.dtype, rule.name);
      at->second.fill = plain_fill(rule, dtype, context.rng.below(std::uint64_t{1} << 32));
    }
  };
  for (const InputRule& rule : op.inputs) repair_one(rule, rule.optional);
  for (const InputRule& rule : op.given) repair_one(rule, rule.optional);
  std::sort(c.unwanted.begin(), c.unwanted.end());
  c.unwanted.erase(std::unique(c.unwanted.begin(), c.unwanted.end()), c.unwanted.end());
  std::erase_if(c.unwanted, [&](const std::string& name) {
    const OutputRule* rule = op.output(name);
    return rule == nullptr || !rule->optional;
  });
}

void repair_layouts(Case& c, const CaseScope& scope) {
  const Operator& op = scope.op();
  repair_inplace(c, scope);
  for (auto& [name, layout] : c.layout) {
    if (!layout.on.empty()) continue;
    const InputRule* input = op.input(name);
    const OutputRule* output = input != nullptr ? nullptr : op.output(name);
    const bool there = input != nullptr    ? is_there(c, scope, *input)
                       : output != nullptr ? is_there(c, scope, *output)
                                           : false;
    const auto shape = there ? scope.shape(input != nullptr ? input->shape : output->shape) : std::nullopt;
    if (!shape) {
      layout = LayoutChoice{};
      continue;
    }
    const Limits limits =
        input != nullptr ? limits_of_input(c, op, *input) : Limits{output->layout, output->align, false, false};
    if (layout.stride) layout.stride = fitting_strides(*layout.stride, *shape, limits);
    const DTypeRule& dtype = input != nullptr ? input->dtype : output->dtype;
    repair_placing(layout, limits.align, dtype_in(c, op, dtype, name));
  }
  std::erase_if(c.layout, [](const auto& item) { return item.second == LayoutChoice{}; });
}

}  // namespace fusediff
