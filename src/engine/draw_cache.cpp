#include "engine/draw_cache.h"

#include "model/values.h"

namespace fusediff {
namespace {

// Beyond this an entry would hold much memory for a case that seldom comes again.
constexpr std::size_t kMaxRemembered = std::size_t{4} << 20;

// Limits that hang on attributes as well are not worth telling apart: such inputs, and raw bits, are made anew.
bool is_worth_it(const InputValue& value, const InputRule& rule) {
  const bool limited = rule.range.has_value() || rule.sum.has_value();
  return value.fill.kind != FillKind::kBits && value.patches.empty() && !limited;
}

}  // namespace

Result<std::vector<std::byte>> DrawCache::draw(const InputValue& value, const InputRule& rule, const Tensor& tensor,
                                               const Call& call) {
  if (!is_worth_it(value, rule) || stored_bytes(tensor) > kMaxRemembered) return draw_values(value, rule, tensor, call);
  Entry& entry = entries_[rule.name];
  std::vector<std::int64_t> stored = stored_shape(tensor);
  if (entry.op == call.op && entry.dtype == tensor.dtype && entry.shape == tensor.shape && entry.stored == stored &&
      entry.value == value) {
    return entry.bytes;
  }
  Result<std::vector<std::byte>> drawn = draw_values(value, rule, tensor, call);
  if (!drawn.ok()) return drawn;
  entry = {call.op, value, tensor.dtype, tensor.shape, std::move(stored), *drawn};
  return drawn;
}

}  // namespace fusediff
