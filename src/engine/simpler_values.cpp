#include "engine/simpler_values.h"

#include <array>
#include <memory>
#include <vector>

namespace fusediff {
namespace {

std::uint64_t simpler(DType dtype, std::uint64_t bits, int level) {
  if (!is_float(dtype)) return level < 2 ? static_cast<std::uint64_t>(level) : bits;
  if (level < 2) return round_to_bits(dtype, level);
  constexpr std::array kMantissaBits = {1, 3, 6, 10, 16};
  const int drop = float_format(dtype).mantissa_bits - kMantissaBits[static_cast<std::size_t>(level - 2)];
  return drop <= 0 || !is_finite(dtype, bits) ? bits : bits >> drop << drop;
}

}  // namespace

std::optional<Case> with_simpler_values(const Case& c, const Tensor& tensor, std::size_t first, std::size_t count,
                                        int level) {
  const std::size_t size = size_of(tensor.dtype);
  std::vector<std::byte> bytes = *c.inputs.at(tensor.name).fill.bits;
  bool changed = false;
  for (std::size_t i = first; i < first + count; ++i) {
    const std::uint64_t before = load_bits(tensor.dtype, bytes.data() + i * size);
    if (before == simpler(tensor.dtype, before, 0) || (level >= 1 && before == simpler(tensor.dtype, before, 1)))
      continue;
    const std::uint64_t after = simpler(tensor.dtype, before, level);
    if (after == before) continue;
    store_bits(tensor.dtype, after, bytes.data() + i * size);
    changed = true;
  }
  if (!changed) return std::nullopt;
  Case candidate = c;
  candidate.inputs[tensor.name].fill.bits = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return candidate;
}

}  // namespace fusediff
