#include "model/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "model/draw_block.h"
#include "model/role_check.h"

namespace fusediff {

namespace {

std::string input_pointer(const InputRule& rule) { return "/inputs/" + rule.name; }

std::string patch_pointer(const InputRule& rule, std::size_t patch) {
  return input_pointer(rule) + "/patches/" + std::to_string(patch);
}

Error located(const std::string& pointer, const Error& error) { return {error.blame, pointer + ": " + error.what}; }

Status check_span(const std::string& pointer, std::int64_t low, std::int64_t high, std::int64_t size) {
  if (low >= 0 && low <= high && high < size) return {};
  const std::string legal = size == 0 ? "there are none" : "legal is 0 to " + std::to_string(size - 1) + ", low first";
  return user_error(pointer + ": [" + std::to_string(low) + ", " + std::to_string(high) + "]: " + legal);
}

Status check_patch(const InputRule& rule, std::size_t index, const Patch& patch, const Block& whole) {
  const std::string pointer = patch_pointer(rule, index);
  Status status = check_span(pointer + "/rows", patch.row_low, patch.row_high, whole.rows);
  if (!status.ok()) return status;
  return check_span(pointer + "/columns", patch.column_low, patch.column_high, whole.columns);
}

Block block_of(const Patch& patch) {
  return {patch.row_high - patch.row_low + 1, patch.column_high - patch.column_low + 1};
}

// Copies a drawn block to its place in the tensor; elements of `size` bytes.
void lay(const Patch& patch, const Block& whole, std::size_t size, const std::byte* block, std::byte* tensor) {
  const std::size_t width = static_cast<std::size_t>(block_of(patch).columns) * size;
  for (std::int64_t row = patch.row_low; row <= patch.row_high; ++row, block += width) {
    std::memcpy(tensor + static_cast<std::size_t>(row * whole.columns + patch.column_low) * size, block, width);
  }
}

Status draw_patches(const InputValue& value, const InputRule& rule, const RoleLimits& limits, DType dtype,
                    const Block& whole, std::span<std::byte> out) {
  for (std::size_t i = 0; i < value.patches.size(); ++i) {
    const Patch& patch = value.patches[i];
    if (Status status = check_patch(rule, i, patch, whole); !status.ok()) return status;
    const Block block = block_of(patch);
    std::vector<std::byte> drawn(static_cast<std::size_t>(block.count()) * size_of(dtype));
    const Status status = draw_block(patch.fill, {rule.role, dtype, block, true}, limits, drawn);
    if (!status.ok()) return located(patch_pointer(rule, i) + "/fill", status.error());
    lay(patch, whole, size_of(dtype), drawn.data(), out.data());
  }
  return {};
}

// The weights of a role of probabilities, before they are made to sum to 1.
Status draw_weights(const InputValue& value, const InputRule& rule, DType dtype, const Block& whole,
                    std::span<double> weights) {
  Status status = draw_doubles(value.fill, {rule.role, dtype, whole, false}, weights);
  if (!status.ok()) return located(input_pointer(rule) + "/fill", status.error());
  for (std::size_t i = 0; i < value.patches.size(); ++i) {
    const Patch& patch = value.patches[i];
    if (status = check_patch(rule, i, patch, whole); !status.ok()) return status;
    const Block block = block_of(patch);
    std::vector<double> drawn(static_cast<std::size_t>(block.count()));
    status = draw_doubles(patch.fill, {rule.role, dtype, block, true}, drawn);
    if (!status.ok()) return located(patch_pointer(rule, i) + "/fill", status.error());
    lay(patch, whole, sizeof(double), std::as_bytes(std::span(drawn)).data(), std::as_writable_bytes(weights).data());
  }
  return {};
}

Status draw_probabilities(const InputValue& value, const InputRule& rule, DType dtype, const Block& whole,
                          std::span<std::byte> out) {
  if (!is_float(dtype)) {
    return user_error(input_pointer(rule) + ": probabilities need a float dtype, not " + std::string(name_of(dtype)));
  }
  std::vector<double> weights(static_cast<std::size_t>(whole.count()));
  if (Status status = draw_weights(value, rule, dtype, whole, weights); !status.ok()) return status;
  const auto columns = static_cast<std::size_t>(whole.columns);
  for (std::size_t row = 0; row < static_cast<std::size_t>(whole.rows); ++row) {
    const std::span<double> values = std::span(weights).subspan(row * columns, columns);
    double sum = 0;
    for (double& weight : values) {
      weight = std::bit_cast<double>(std::bit_cast<std::uint64_t>(weight) & ~(std::uint64_t{1} << 63));
      sum += weight;
    }
    if (!(sum <= float_format(DType::kF64).max_finite)) {
      return user_error(input_pointer(rule) + ": row " + std::to_string(row) +
                        " has weights that are not finite: a row of probabilities must sum to 1");
    }
    for (double& weight : values) weight = sum > 0 ? weight / sum : 1 / static_cast<double>(columns);
  }
  round_all(dtype, weights, out);
  return {};
}

// The place of a logical index among the stored elements.
Result<std::int64_t> stored_index(const Tensor& tensor, std::int64_t logical) {
  const std::int64_t count = element_count(tensor);
  if (logical < 0 || logical >= count) {
    const std::string legal = count == 0 ? "the tensor has no elements" : "legal is 0 to " + std::to_string(count - 1);
    return user_error("there is no such element: " + legal);
  }
  std::int64_t stored = 0, step = 1;
  for (std::size_t dim = tensor.shape.size(); dim-- > 0;) {
    const std::int64_t place = logical % tensor.shape[dim];
    logical /= tensor.shape[dim];
    if (tensor.stride[dim] != 0) {
      stored += place * step;
      step *= tensor.shape[dim];
    } else if (place != 0) {
      return user_error("dimension " + std::to_string(dim) + " has stride 0 and one element for all its " +
                        std::to_string(tensor.shape[dim]) + " places: legal there is index 0, not " +
                        std::to_string(place));
    }
  }
  return stored;
}

std::string set_pointer(const InputRule& rule, std::int64_t logical) {
  return input_pointer(rule) + "/set/" + std::to_string(logical);
}

Status apply_overrides(const InputValue& value, const InputRule& rule, const Tensor& tensor,
                       std::span<std::byte> bytes) {
  const std::size_t size = size_of(tensor.dtype);
  for (const auto& [logical, literal] : value.set) {
    const Result<std::int64_t> stored = stored_index(tensor, logical);
    if (!stored.ok()) return located(set_pointer(rule, logical), stored.error());
    const Result<std::uint64_t> bits = literal_bits(literal, tensor.dtype);
    if (!bits.ok()) return located(set_pointer(rule, logical), bits.error());
    store_bits(tensor.dtype, *bits, bytes.data() + static_cast<std::size_t>(*stored) * size);
  }
  return {};
}

// Who put the element there that breaks the role: an override, the last patch over it, or the fill.
std::string pointer_to(const Violation& violation, const InputValue& value, const InputRule& rule,
                       const Tensor& tensor) {
  const std::int64_t columns = column_count(tensor);
  const std::int64_t row = violation.element / columns;
  const auto concerns = [&](std::int64_t stored) {
    return stored == violation.element || stored == violation.other || (violation.whole_row && stored / columns == row);
  };
  for (const auto& [logical, literal] : value.set) {
    if (concerns(*stored_index(tensor, logical))) return set_pointer(rule, logical);
  }
  for (std::size_t i = value.patches.size(); i-- > 0;) {
    const Patch& patch = value.patches[i];
    for (const std::int64_t element : {violation.element, violation.other}) {
      const bool in_columns =
          violation.whole_row || (element % columns >= patch.column_low && element % columns <= patch.column_high);
      const bool in_rows = element >= 0 && element / columns >= patch.row_low && element / columns <= patch.row_high;
      if (in_rows && in_columns) return patch_pointer(rule, i);
    }
  }
  return input_pointer(rule) + "/fill";
}

// Recipes that obey their role by construction need no second look.
bool obeys_by_construction(const InputValue& value) {
  const FillKind kind = value.fill.kind;
  return value.patches.empty() && value.set.empty() && kind != FillKind::kBits && kind != FillKind::kConstant &&
         kind != FillKind::kRamp;
}

}  // namespace

Result<std::vector<std::byte>> draw_values(const InputValue& value, const InputRule& rule, const Tensor& tensor,
                                           const Call& call) {
  const Result<RoleLimits> limits = role_limits(rule, tensor, call);
  if (!limits.ok()) return located(input_pointer(rule), limits.error());
  const Block whole{row_count(tensor), column_count(tensor)};
  std::vector<std::byte> bytes(stored_bytes(tensor));
  Status status;
  if (rule.role == Role::kProbability && value.fill.kind != FillKind::kBits) {
    status = draw_probabilities(value, rule, tensor.dtype, whole, bytes);
  } else {
    status = draw_block(value.fill, {rule.role, tensor.dtype, whole, false}, *limits, bytes);
    if (!status.ok()) return located(input_pointer(rule) + "/fill", status.error());
    status = draw_patches(value, rule, *limits, tensor.dtype, whole, bytes);
  }
  if (!status.ok()) return status.error();
  status = apply_overrides(value, rule, tensor, bytes);
  if (!status.ok()) return status.error();
  if (obeys_by_construction(value)) return bytes;
  if (const auto violation = find_violation(bytes, rule.role, *limits, tensor)) {
    return user_error(pointer_to(*violation, value, rule, tensor) + ": " + violation->what);
  }
  return bytes;
}

Status check_values(std::span<const std::byte> bytes, const InputRule& rule, const Tensor& tensor, const Call& call) {
  if (bytes.size() != stored_bytes(tensor)) {
    return user_error(input_pointer(rule) + ": " + std::to_string(bytes.size()) + " bytes: legal is " +
                      std::to_string(stored_bytes(tensor)));
  }
  const Result<RoleLimits> limits = role_limits(rule, tensor, call);
  if (!limits.ok()) return located(input_pointer(rule), limits.error());
  const auto violation = find_violation(bytes, rule.role, *limits, tensor);
  if (!violation) return {};
  return user_error(input_pointer(rule) + ": stored element " + std::to_string(violation->element) + ": " +
                    violation->what);
}

}  // namespace fusediff
