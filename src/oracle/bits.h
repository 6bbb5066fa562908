// Compares one output of the two sides: bytes first, then element by element. Decides nothing about rounding or damage:
// oracle/bound.h does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/call.h"
#include "model/finding.h"
#include "model/schema.h"

namespace fusediff {

// Two elements, as far as bits tell. In rising order of harm.
enum class ElementDifference { kNone, kAgreed, kNanBits, kZeroSign, kNumber, kNotFinite };

// agreed: ULP that `agree` allows. kNotFinite: exactly one is finite.
ElementDifference compare_elements(DType dtype, std::uint64_t a, std::uint64_t b, std::uint64_t agreed);

// What is left after `agree`; nothing when the two agree. cls is the mildest that the bits allow: kNanBits, kZeroSign,
// or kDamage, which bound.h refines; a NaN payload or sign counts only where nothing worse differs, or where the rule
// says nan: bits. skip: [elements] true where a difference is explained elsewhere (ties that may fall either way); may
// be empty.
std::optional<Difference> compare_output(const OutputRule& rule, const Tensor& tensor,
                                         std::span<const std::byte> target, std::span<const std::byte> against,
                                         const std::vector<bool>& skip);

// The largest ULP distance between the two, `agree` or not: for feedback. 0 when the bytes are equal.
std::uint64_t largest_distance(DType dtype, std::span<const std::byte> target, std::span<const std::byte> against);

}  // namespace fusediff
