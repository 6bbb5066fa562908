// Mutators of single elements: specials, neighbours by 1 ULP, copies of another element, values of an index range.
#include <cstdint>
#include <optional>
#include <vector>

#include "model/values.h"
#include "mutate/mutators.h"
#include "mutate/recipes.h"
#include "mutate/roles.h"
#include "mutate/stored.h"

namespace fusediff {
namespace {

constexpr std::size_t kMaxOverrides = 64;
constexpr std::int64_t kMaxDrawn = 1 << 11;  // elements: above, what stands there is not looked at

// The new value of a stored element; nothing when none can be had.
std::optional<Literal> draw_value(const Source& source, std::int64_t stored, const std::vector<std::byte>& bytes,
                                  const Call& call, Rng& rng) {
  const Tensor& tensor = *source.tensor;
  const InputRule& rule = *source.rule;
  const auto bits_at = [&](std::int64_t at) {
    return load_bits(tensor.dtype, bytes.data() + static_cast<std::size_t>(at) * size_of(tensor.dtype));
  };
  if (rule.role == Role::kIndex || rule.role == Role::kCounts) {
    const std::optional<std::int64_t> value = draw_in_range(rule, call, rng);
    if (!value) return std::nullopt;
    return Literal{Literal::Kind::kInteger, 0, *value, 0};
  }
  const std::uint64_t draw = rng.below(3);
  if (!bytes.empty() && draw == 0) return literal_of(tensor.dtype, bits_at(draw_position(stored_count(tensor), rng)));
  if (!bytes.empty() && draw == 1 && rule.role != Role::kMask) {
    return literal_of(tensor.dtype, step_bits(tensor.dtype, bits_at(stored), rng.one_in(2) ? 1 : -1));
  }
  if (rule.role == Role::kMask) return literal_of(tensor.dtype, rng.one_in(2) ? 0 : mask_bits(tensor.dtype));
  if (rule.role == Role::kScale) return Literal{Literal::Kind::kReal, rng.one_in(2) ? 1.0 : 0.5, 0, 0};
  return draw_special(tensor.dtype, rng);
}

}  // namespace

bool set_elements(Case& c, MutateContext& context) {
  const Result<Call> call = bind(c, context.op, context.max_bytes);
  if (!call.ok()) return false;
  std::vector<Source> sources = drawn_sources(*call);
  std::erase_if(sources, [&](const Source& source) {
    const auto at = c.inputs.find(source.rule->name);
    return !may_set(*source.rule) || stored_count(*source.tensor) == 0 || at == c.inputs.end() ||
           at->second.set.size() >= kMaxOverrides;
  });
  if (sources.empty()) return false;
  const Source& source = context.rng.pick(sources);
  InputValue& value = c.inputs[source.rule->name];
  std::vector<std::byte> bytes;
  const std::int64_t count = stored_count(*source.tensor);
  if (count <= kMaxDrawn) {
    if (auto drawn = draw_values(value, *source.rule, *source.tensor, *call); drawn.ok()) bytes = *std::move(drawn);
  }
  const std::int64_t columns = column_count(*source.tensor);
  const std::int64_t row = draw_position(count / columns, context.rng);
  const std::int64_t changes = context.rng.one_in(4) ? context.rng.between(2, 4) : 1;
  bool changed = false;
  for (std::int64_t i = 0; i < changes; ++i) {
    const std::int64_t stored = row * columns + draw_position(columns, context.rng);
    const std::optional<Literal> literal = draw_value(source, stored, bytes, *call, context.rng);
    if (!literal) continue;
    Literal& held = value.set[logical_index(*source.tensor, stored)];
    changed = changed || held != *literal || *literal == Literal{};
    held = *literal;
  }
  return changed;
}

bool drop_elements(Case& c, MutateContext& context) {
  std::vector<InputValue*> set;
  for (auto& [name, value] : c.inputs) {
    if (!value.set.empty()) set.push_back(&value);
  }
  if (set.empty()) return false;
  InputValue& value = *context.rng.pick(set);
  if (context.rng.one_in(2)) {
    value.set.clear();
  } else {
    auto at = value.set.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(context.rng.below(value.set.size())));
    value.set.erase(at);
  }
  return true;
}

}  // namespace fusediff
