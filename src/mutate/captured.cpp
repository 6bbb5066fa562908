#include "mutate/captured.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "mutate/recipes.h"
#include "mutate/repair_shape.h"
#include "mutate/scope.h"

namespace fusediff {
namespace {

constexpr std::uint64_t kMostSpelled = std::uint64_t{1} << 14;  // bytes of bits that a mutation may put into a case

using Shape = std::vector<std::int64_t>;

std::uint64_t product(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

bool holds_bits(const Case& c) {
  return std::any_of(c.inputs.begin(), c.inputs.end(), [](const auto& item) {
    const InputValue& value = item.second;
    return value.fill.kind == FillKind::kBits ||
           std::any_of(value.patches.begin(), value.patches.end(),
                       [](const Patch& patch) { return patch.fill.kind == FillKind::kBits; });
  });
}

// What the bits were, where a case says so.
struct Was {
  Shape shape;
  DType dtype;
};

std::optional<Was> was(const Fill& fill, const InputRule& rule, std::span<const Case* const> before,
                       const Operator& op) {
  for (const Case* one : before) {
    const auto at = one->inputs.find(rule.name);
    if (one->op != op.name || at == one->inputs.end() || at->second.fill.bits != fill.bits) continue;
    const std::optional<Shape> shape = CaseScope(*one, op).shape(rule.shape);
    const DType dtype = dtype_in(*one, op, rule.dtype, rule.name);
    if (shape && product(*shape) * size_of(dtype) == fill.bits->size()) return Was{*shape, dtype};
  }
  return std::nullopt;
}

std::uint64_t element(const Was& from, const std::vector<std::byte>& bits, std::uint64_t at, DType to) {
  const std::uint64_t held = load_bits(from.dtype, bits.data() + at * size_of(from.dtype));
  if (from.dtype == to) return held;
  return round_to_bits(
      to, is_float(from.dtype) ? float_value(from.dtype, held) : static_cast<double>(integer_value(from.dtype, held)));
}

std::vector<std::byte> refitted(const Was& from, const std::vector<std::byte>& bits, const Shape& shape, DType dtype) {
  std::vector<std::byte> out(product(shape) * size_of(dtype));
  Shape at(shape.size(), 0);
  for (std::uint64_t to = 0; to < product(shape); ++to) {
    std::uint64_t source = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      source = source * static_cast<std::uint64_t>(from.shape[d]) + static_cast<std::uint64_t>(at[d] % from.shape[d]);
    }
    store_bits(dtype, element(from, bits, source, dtype), out.data() + to * size_of(dtype));
    for (std::size_t d = shape.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
  }
  return out;
}

void refit(Fill& fill, const InputRule& rule, const Shape& shape, DType dtype, std::span<const Case* const> before,
           MutateContext& context) {
  const bool misread = fill.bits_dtype && *fill.bits_dtype != dtype;
  const std::optional<Was> from = fill.bits ? was(fill, rule, before, context.op) : std::nullopt;
  if (from && from->shape == shape && from->dtype == dtype && !misread) return;
  const bool possible = from && from->shape.size() == shape.size() && product(from->shape) > 0 &&
                        product(shape) * size_of(dtype) <= kMostSpelled;
  if (possible) {
    fill.bits = std::make_shared<const std::vector<std::byte>>(refitted(*from, *fill.bits, shape, dtype));
    fill.bits_file.clear();
    fill.bits_dtype.reset();
  } else if (misread) {
    fill = plain_fill(rule, dtype, context.rng.below(std::uint64_t{1} << 32));
  }
}

}  // namespace

void refit_bits(Case& c, std::span<const Case* const> before, MutateContext& context) {
  if (!holds_bits(c) || !repair_sizes(c, context)) return;
  const CaseScope scope(c, context.op);
  for (auto& [name, value] : c.inputs) {
    const InputRule* rule = context.op.source(name);
    if (rule == nullptr) continue;
    const DType dtype = dtype_in(c, context.op, rule->dtype, name);
    std::erase_if(value.patches, [dtype](const Patch& patch) {
      return patch.fill.kind == FillKind::kBits && patch.fill.bits_dtype && *patch.fill.bits_dtype != dtype;
    });
    const std::optional<Shape> shape = scope.shape(rule->shape);
    if (value.fill.kind == FillKind::kBits && shape) refit(value.fill, *rule, *shape, dtype, before, context);
  }
}

}  // namespace fusediff
