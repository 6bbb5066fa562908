// Mutators of where tensors lie: place and offset, strides with gaps, permuted, of zero.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "model/call.h"
#include "mutate/mutators.h"
#include "mutate/roles.h"

namespace fusediff {
namespace {

constexpr std::int64_t kOffsetReach = 64;  // bytes: a cache line, and the widest vector register

struct Placed {
  const Tensor* tensor;
  const InputRule* input;  // nullptr: an output
  LayoutRule rule;
};

// Tensors of the call whose layout is theirs to choose: present, wanted, not on another.
std::vector<Placed> placed_tensors(const Call& call) {
  std::vector<Placed> placed;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const InputRule& rule = call.op->inputs[i];
    if (call.inputs[i].present) placed.push_back({&call.inputs[i], &rule, rule.layout});
  }
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& tensor = call.outputs[i];
    if (tensor.present && tensor.on < 0) placed.push_back({&tensor, nullptr, call.op->outputs[i].layout});
  }
  return placed;
}

bool has_output_on(const Call& call, const std::string& input) {
  return std::any_of(call.outputs.begin(), call.outputs.end(), [&](const Tensor& output) {
    return output.on >= 0 && call.inputs[static_cast<std::size_t>(output.on)].name == input;
  });
}

// Most often none; else one element, a few, or what brings the stride to a multiple that rows are padded to.
std::int64_t draw_gap(std::int64_t stride, Rng& rng) {
  switch (rng.below(6)) {
    case 0:
      return 1;
    case 1:
      return rng.between(2, 17);
    case 2: {
      const std::int64_t multiple = std::int64_t{8} << rng.below(5);
      return (multiple - stride % multiple) % multiple;
    }
    default:
      return 0;
  }
}

// Strides of elements that never overlap, except along dims of stride 0. order: the innermost dim first.
std::vector<std::int64_t> draw_strides(const std::vector<std::int64_t>& shape, const std::vector<std::size_t>& order,
                                       const std::vector<bool>& repeated, bool inner_dense, Rng& rng) {
  std::vector<std::int64_t> stride(shape.size(), 0);
  std::int64_t next = 1;
  bool innermost = true;
  for (const std::size_t dim : order) {
    if (repeated[dim]) continue;
    if (!innermost || !inner_dense) next += draw_gap(next, rng);
    innermost = false;
    stride[dim] = next;
    next *= std::max<std::int64_t>(shape[dim], 1);
  }
  return stride;
}

std::vector<std::size_t> draw_order(std::size_t rank, bool any, Rng& rng) {
  std::vector<std::size_t> order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  if (!any || rank < 2 || rng.one_in(2)) return order;
  if (rng.one_in(2)) {
    std::swap(order[0], order[1]);
  } else {
    for (std::size_t i = rank; i > 1; --i) std::swap(order[i - 1], order[static_cast<std::size_t>(rng.below(i))]);
  }
  return order;
}

std::vector<bool> draw_repeated(const Call& call, const Placed& placed, Rng& rng) {
  const std::size_t rank = placed.tensor->shape.size();
  std::vector<bool> repeated(rank, false);
  const bool allowed = placed.rule == LayoutRule::kAny && placed.input != nullptr &&
                       !has_output_on(call, placed.tensor->name) && may_repeat(*placed.input);
  if (!allowed || !rng.one_in(3)) return repeated;
  const bool last_too = may_repeat_last(*placed.input);
  for (std::size_t dim = 0; dim < rank; ++dim) {
    if (dim + 1 < rank || last_too) repeated[dim] = rng.one_in(2);
  }
  return repeated;
}

}  // namespace

bool change_place(Case& c, MutateContext& context) {
  const Result<Call> call = bind(c, context.op, context.max_bytes);
  if (!call.ok()) return false;
  const std::vector<Placed> placed = placed_tensors(*call);
  if (placed.empty()) return false;
  const Tensor& tensor = *context.rng.pick(placed).tensor;
  LayoutChoice layout = c.layout[tensor.name];
  const std::int64_t size = static_cast<std::int64_t>(size_of(tensor.dtype));
  constexpr Place kPlaces[] = {Place::kEnd, Place::kStart, Place::kMiddle};
  layout.place = kPlaces[context.rng.below(3)];
  layout.offset = 0;
  if (layout.place != Place::kEnd && context.rng.below(4) != 0) {
    const std::int64_t unit = std::max<std::int64_t>(1, tensor.align / size);
    layout.offset = context.rng.between(0, kOffsetReach / (size * unit)) * unit;
  }
  LayoutChoice& held = c.layout[tensor.name];
  const bool changed = held != layout;
  held = layout;
  if (layout == LayoutChoice{}) c.layout.erase(tensor.name);
  return changed;
}

bool change_strides(Case& c, MutateContext& context) {
  const Result<Call> call = bind(c, context.op, context.max_bytes);
  if (!call.ok()) return false;
  std::vector<Placed> placed = placed_tensors(*call);
  std::erase_if(placed, [](const Placed& one) {
    const std::size_t least = one.rule == LayoutRule::kInnerDense ? 2 : 1;
    return one.rule == LayoutRule::kDense || one.tensor->shape.size() < least;
  });
  if (placed.empty()) return false;
  const Placed& chosen = context.rng.pick(placed);
  const std::vector<std::int64_t>& shape = chosen.tensor->shape;
  const bool any = chosen.rule == LayoutRule::kAny;
  constexpr int kTries = 4;  // a draw without gap, permutation or repetition is the dense layout
  for (int i = 0; i < kTries; ++i) {
    const std::vector<bool> repeated = draw_repeated(*call, chosen, context.rng);
    std::vector<std::int64_t> stride =
        draw_strides(shape, draw_order(shape.size(), any, context.rng), repeated, !any, context.rng);
    if (stride == dense_strides(shape) || stride == chosen.tensor->stride) continue;
    c.layout[chosen.tensor->name].stride = std::move(stride);
    return true;
  }
  return false;
}

bool drop_layout(Case& c, MutateContext& context) {
  if (c.layout.empty()) return false;
  auto at = c.layout.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(context.rng.below(c.layout.size())));
  c.layout.erase(at);
  return true;
}

bool change_inplace(Case& c, MutateContext& context) {
  const std::vector<InplaceRule>& rules = context.op.inplace;
  if (rules.empty()) return false;
  const InplaceRule& rule = context.rng.pick(rules);
  if (rule.always) return false;
  const auto at = c.layout.find(rule.output);
  if (at != c.layout.end() && !at->second.on.empty()) {
    c.layout.erase(at);
    return true;
  }
  if (!c.inputs.contains(rule.input)) return false;
  c.layout[rule.output] = LayoutChoice{};
  c.layout[rule.output].on = rule.input;
  return true;
}

}  // namespace fusediff
