#include "engine/features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"
#include "oracle/bits.h"
#include "oracle/decide.h"

namespace fusediff {
namespace {

// 0, 1, 2..7, 8..63, 64..511, more: enough to tell empty, single, tail and bulk.
unsigned size_class(std::int64_t size) {
  return size <= 1
             ? static_cast<unsigned>(size)
             : std::min(5u, 2u + (static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(size))) - 1) / 3);
}

std::uint8_t shape_class(const Call& call) {
  unsigned hash = 0;
  for (const std::int64_t dim : call.dims) hash = hash * 31 + size_class(dim) * 2 + static_cast<unsigned>(dim % 8 != 0);
  return static_cast<std::uint8_t>(hash ^ (hash >> 8));
}

// Looks at the first elements of each output only: feedback must cost little.
constexpr std::size_t kElementsLookedAt = 256;

std::uint8_t value_class(const Call& call, const Execution& execution) {
  unsigned seen = 0;
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const DType dtype = call.outputs[o].dtype;
    const std::size_t size = size_of(dtype), n = std::min(execution.outputs[o].size() / size, kElementsLookedAt);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t bits = load_bits(dtype, execution.outputs[o].data() + i * size);
      if (is_zero(dtype, bits)) {
        seen |= 1;
      } else if (is_float(dtype)) {
        seen |= is_nan(dtype, bits)                                                   ? 2
                : !is_finite(dtype, bits)                                             ? 4
                : std::abs(float_value(dtype, bits)) < float_format(dtype).min_normal ? 8
                                                                                      : 16;
      }
    }
  }
  return static_cast<std::uint8_t>(seen);
}

std::int64_t differing_elements(DType dtype, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const std::size_t size = size_of(dtype);
  std::int64_t differing = 0;
  for (std::size_t at = 0; at < a.size(); at += size)
    differing += static_cast<std::int64_t>(std::memcmp(a.data() + at, b.data() + at, size) != 0);
  return differing;
}

std::uint8_t hash_of_note(const std::string& note) {
  return note.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(1 + hash128(note).low % 255);
}

}  // namespace

Features features_of(const Call& call, const std::vector<std::span<const std::byte>>& inputs, const Execution& target,
                     const Execution& against, const std::vector<bool>& compared) {
  Features features;
  features.ending = {static_cast<std::uint8_t>(target.ending), static_cast<std::uint8_t>(against.ending)};
  features.note = {hash_of_note(target.note), hash_of_note(against.note)};
  features.shape_class = shape_class(call);
  if (target.ending != Ending::kOk || against.ending != Ending::kOk) return features;
  // An experiment that had nothing to compare may have run neither.
  const std::size_t outputs = call.outputs.size();
  if (target.outputs.size() != outputs || against.outputs.size() != outputs || compared.size() != outputs)
    return features;
  features.value_class = value_class(call, against);
  std::int64_t elements = 0, differing = 0;
  std::uint64_t largest = 0;
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    if (!compared[o] || target.outputs[o].size() != against.outputs[o].size()) continue;
    elements += static_cast<std::int64_t>(target.outputs[o].size() / size_of(call.outputs[o].dtype));
    if (same_bytes(target.outputs[o], against.outputs[o])) continue;
    differing += differing_elements(call.outputs[o].dtype, target.outputs[o], against.outputs[o]);
    largest = std::max(largest, largest_distance(call.outputs[o].dtype, target.outputs[o], against.outputs[o]));
  }
  features.max_ulp = static_cast<std::uint8_t>(std::bit_width(largest));
  if (differing > 0)
    features.differing_share =
        static_cast<std::uint8_t>(1 + std::bit_width(static_cast<std::uint64_t>(elements / differing)));
  for (std::size_t rule = 0; rule < call.op->decide.size(); ++rule) {
    features.smallest_gap = std::min(features.smallest_gap, smallest_gap(decision_of(call, rule, inputs, against)));
  }
  return features;
}

}  // namespace fusediff
