// Tells rounding from damage: measures each side's error against the f64 truth, in ULP of the output's dtype, and holds
// it against the schema's bound.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/call.h"
#include "model/finding.h"

namespace fusediff {

// One output of the f64 run, [elements]; empty: there is no truth. absolute: of the run on absolute inputs, for bounds
// of kAbsInputs; empty: not to be had.
struct OutputTruth {
  std::vector<double> value;
  std::vector<double> absolute;
  // What both sides are measured by where there is no bound, [elements] in the output's dtype; empty: the target side
  // by the against side.
  std::vector<std::byte> reference = {};
};

// [elements] the magnitude at whose ULP an error counts. REQUIRES: truth.absolute for kAbsInputs.
std::vector<double> bound_scales(const Tensor& tensor, BoundScale of, const OutputTruth& truth);

// How many times the unfused side's error a side without a bound may be off: room for another order of summation.
inline constexpr double kRelativeToUnfused = 4;

// Refines d.cls where it is kDamage: non_finite, damage or rounding, and fills d.error, d.bound and d.judged_by.
// accused: the side outside its bound, where there is one. REQUIRES: target and against are what d was made of.
void classify(Difference& d, const Call& call, std::size_t output, std::span<const std::byte> target,
              std::span<const std::byte> against, const OutputTruth& truth, const std::vector<bool>& skip,
              std::optional<Side>& accused);

}  // namespace fusediff
