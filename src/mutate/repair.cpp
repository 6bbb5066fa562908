#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model/values.h"
#include "mutate/mutate.h"
#include "mutate/recipes.h"
#include "mutate/repair_shape.h"
#include "mutate/roles.h"
#include "mutate/stored.h"

namespace fusediff {
namespace {

constexpr std::int64_t kAlwaysDrawn = 1 << 10;  // elements: drawing so few costs about as much as binding
constexpr std::int64_t kOddlyDrawn = 1 << 16;   // drawn when something other than the fill stands in it

// Drops what lies outside the stored elements.
void clip(InputValue& value, const Tensor& tensor) {
  const std::int64_t rows = stored_count(tensor) == 0 ? 0 : row_count(tensor);
  const std::int64_t columns = stored_count(tensor) == 0 ? 0 : column_count(tensor);
  std::erase_if(value.patches, [&](Patch& patch) {
    patch.row_high = std::min(patch.row_high, rows - 1);
    patch.column_high = std::min(patch.column_high, columns - 1);
    return patch.row_low < 0 || patch.column_low < 0 || patch.row_low > patch.row_high ||
           patch.column_low > patch.column_high;
  });
  std::erase_if(value.set, [&](const auto& item) { return !stored_index(tensor, item.first); });
}

// Drops single values that a range rules out: the range may have shrunk.
void drop_out_of_range(InputValue& value, const InputRule& rule, const Call& call) {
  if (!rule.range || value.set.empty()) return;
  const Result<std::int64_t> low = call.evaluate(rule.range->first);
  const Result<std::int64_t> high = call.evaluate(rule.range->second);
  if (!low.ok() || !high.ok()) return;
  std::erase_if(value.set, [&](const auto& item) {
    const Literal& literal = item.second;
    if (literal.kind != Literal::Kind::kInteger) return false;
    const bool sentinel = std::find(rule.also.begin(), rule.also.end(), literal.integer) != rule.also.end();
    return !sentinel && (literal.integer < *low || literal.integer > *high);
  });
}

bool needs_drawing(const InputValue& value, const InputRule& rule, const Tensor& tensor) {
  if (takes_any_value(rule) && is_float(tensor.dtype) && value.fill.kind != FillKind::kBits) return false;
  const bool odd = !value.patches.empty() || !value.set.empty() || value.fill.kind == FillKind::kBits;
  return stored_count(tensor) <= (odd ? kOddlyDrawn : kAlwaysDrawn);
}

// Makes the recipe legal for this tensor, dropping the least that helps. False when no recipe is.
bool repair_value(InputValue& value, const InputRule& rule, const Tensor& tensor, const Call& call, Rng& rng) {
  clip(value, tensor);
  drop_out_of_range(value, rule, call);
  const auto plain = [&] { return plain_fill(rule, tensor.dtype, rng.below(std::uint64_t{1} << 32)); };
  const bool any = takes_any_value(rule);
  if (value.fill.kind == FillKind::kBits && (!value.fill.bits || value.fill.bits->size() != stored_bytes(tensor))) {
    value.fill = plain();
  }
  const bool large = stored_count(tensor) > kOddlyDrawn;
  if (large && !any) {
    value.set.clear();
    value.patches.clear();
  }
  if (!needs_drawing(value, rule, tensor)) return true;
  const auto draws = [&] { return draw_values(value, rule, tensor, call).ok(); };
  if (draws()) return true;
  if (!value.set.empty()) {
    value.set.clear();
    if (draws()) return true;
  }
  if (!value.patches.empty()) {
    value.patches.clear();
    if (draws()) return true;
  }
  value.fill = plain();
  return draws();
}

// False when an input has no legal value at all.
bool repair_values(Case& c, const Call& call, Rng& rng, std::vector<std::string>& hopeless) {
  for (const Source& source : drawn_sources(call)) {
    if (!repair_value(c.inputs[source.rule->name], *source.rule, *source.tensor, call, rng)) {
      hopeless.push_back(source.rule->name);
    }
  }
  for (const Tensor& tensor : call.inputs) {
    const auto at = c.inputs.find(tensor.name);
    if (at == c.inputs.end() || is_drawn(*call.op->input(tensor.name))) continue;
    const auto& bits = at->second.fill.bits;
    if (!bits || bits->size() != stored_bytes(tensor)) c.inputs.erase(at);
  }
  return hopeless.empty();
}

// The call of a case that has been made legal, giving up what it must, the least first.
Result<Call> bind_or_give_up(Case& c, MutateContext& context) {
  Result<Call> call = bind(c, context.op, context.max_bytes);
  if (call.ok()) return call;
  if (!repair_sizes(c, context)) return call;
  repair_presence(c, context);
  repair_layouts(c, CaseScope(c, context.op));
  call = bind(c, context.op, context.max_bytes);
  if (call.ok()) return call;
  c.layout.clear();
  c.unwanted.clear();
  repair_layouts(c, CaseScope(c, context.op));
  call = bind(c, context.op, context.max_bytes);
  if (call.ok()) return call;
  c.inputs.clear();
  c.attrs.clear();
  if (!repair_sizes(c, context)) return call;
  repair_presence(c, context);
  repair_layouts(c, CaseScope(c, context.op));
  return bind(c, context.op, context.max_bytes);
}

}  // namespace

bool repair(Case& c, MutateContext& context) {
  Result<Call> call = bind_or_give_up(c, context);
  if (!call.ok()) return false;
  std::vector<std::string> hopeless;
  if (repair_values(c, *call, context.rng, hopeless)) return true;
  // A stride of zero may be what leaves no legal value.
  for (const std::string& name : hopeless) c.layout.erase(name);
  hopeless.clear();
  call = bind_or_give_up(c, context);
  return call.ok() && repair_values(c, *call, context.rng, hopeless);
}

}  // namespace fusediff
