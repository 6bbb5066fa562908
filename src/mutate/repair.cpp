#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/fill_numbers.h"
#include "model/values.h"
#include "mutate/experiments.h"
#include "mutate/mutate.h"
#include "mutate/recipes.h"
#include "mutate/repair_shape.h"
#include "mutate/roles.h"
#include "mutate/sizes.h"
#include "mutate/stored.h"
#include "mutate/where.h"

namespace fusediff {
namespace {

constexpr std::int64_t kMostDrawn = 1 << 16;  // elements; in larger tensors only what needs no drawing stays

bool fits(const Literal& literal, DType dtype) { return literal_bits(literal, dtype).ok(); }

bool fits(const Fill& fill, DType dtype) { return fill.kind != FillKind::kConstant || fits(fill.constant, dtype); }

// Drops what lies outside the stored elements, and literals of another dtype.
void clip(InputValue& value, const Tensor& tensor) {
  const bool empty = stored_count(tensor) == 0;
  const std::int64_t rows = empty ? 0 : row_count(tensor);
  const std::int64_t columns = empty ? 0 : column_count(tensor);
  for (Patch& patch : value.patches) {
    const bool cut = patch.row_high >= rows || patch.column_high >= columns;
    patch.row_high = std::min(patch.row_high, rows - 1);
    patch.column_high = std::min(patch.column_high, columns - 1);
    if (cut && patch.fill.kind == FillKind::kBits) patch.row_low = rows;  // its bits are of another block
  }
  std::erase_if(value.patches, [&](const Patch& patch) {
    return patch.row_low < 0 || patch.column_low < 0 || patch.row_low > patch.row_high ||
           patch.column_low > patch.column_high || !fits(patch.fill, tensor.dtype);
  });
  std::erase_if(value.set, [&](const auto& item) {
    return !stored_index(tensor, item.first) || !fits(item.second, tensor.dtype);
  });
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

// Is there any legal value? One row answers for all: roles ask nothing across rows.
bool row_draws(const InputValue& value, const InputRule& rule, const Tensor& tensor, const Call& call) {
  if (takes_any_value(rule) || stored_count(tensor) == 0) return true;
  Tensor row;
  row.name = tensor.name;
  row.dtype = tensor.dtype;
  row.shape = {column_count(tensor)};
  row.stride = {1};
  InputValue plain;
  plain.fill = value.fill;
  return draw_values(plain, rule, row, call).ok();
}

// Makes the recipe legal for this tensor, dropping the least that helps. False when no recipe is.
bool repair_value(InputValue& value, const InputRule& rule, const Tensor& tensor, const Call& call, Rng& rng) {
  clip(value, tensor);
  drop_out_of_range(value, rule, call);
  const auto plain = [&] { return plain_fill(rule, tensor.dtype, rng.below(std::uint64_t{1} << 32)); };
  const bool bits = value.fill.kind == FillKind::kBits;
  const bool misfit = bits && (!value.fill.bits || value.fill.bits->size() != stored_bytes(tensor));
  if (misfit || !fits(value.fill, tensor.dtype)) value.fill = plain();
  if (stored_count(tensor) > kMostDrawn && !obeys_by_construction(value, rule)) {
    value.patches.clear();
    value.set.clear();
    if (!obeys_by_construction(value, rule)) value.fill = plain();
  }
  const auto draws = [&] {
    return obeys_by_construction(value, rule) || stored_count(tensor) > kMostDrawn
               ? row_draws(value, rule, tensor, call)
               : draw_values(value, rule, tensor, call).ok();
  };
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

// Other sizes, until every input has a legal value: a range may be empty, or too small for distinct values, without a
// rule of `where` that says so.
bool search_sizes(Case& c, MutateContext& context) {
  constexpr int kTries = 64;
  std::vector<std::string> hopeless;
  for (int i = 0; i < kTries && !context.op.dims.empty(); ++i) {
    CaseScope scope(c, context.op);
    const auto at = static_cast<std::size_t>(context.rng.below(context.op.dims.size()));
    const DimRule& rule = context.op.dims[at];
    scope.dims()[at] = context.rng.one_in(2) ? rule.low : draw_dim(rule, context.rng);
    if (!meet_where(scope, context.rng)) continue;
    scope.store(c);
    const Result<Call> call = bind_or_give_up(c, context);
    hopeless.clear();
    if (call.ok() && repair_values(c, *call, context.rng, hopeless)) return true;
  }
  return false;
}

bool repair_call(Case& c, MutateContext& context) {
  Result<Call> call = bind_or_give_up(c, context);
  if (!call.ok()) return false;
  std::vector<std::string> hopeless;
  if (repair_values(c, *call, context.rng, hopeless)) return true;
  // A stride of zero may be what leaves no legal value.
  for (const std::string& name : hopeless) c.layout.erase(name);
  hopeless.clear();
  call = bind_or_give_up(c, context);
  if (!call.ok()) return false;
  return repair_values(c, *call, context.rng, hopeless) || search_sizes(c, context);
}

}  // namespace

bool repair(Case& c, MutateContext& context) {
  if (!repair_call(c, context)) return false;
  repair_experiment(c, context);
  return true;
}

}  // namespace fusediff
