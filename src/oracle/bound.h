// Tells rounding from damage: measures each side's error against the f64 truth, in ULP of the output's dtype, and holds
// it against the schema's bound.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/call.h"
#include "model/finding.h"

namespace fusediff {

// One output of the f64 run, [elements]; empty: there is no truth. absolute: what the scales made of inputs say: for
// kAbsInputs the run on absolute inputs, for kRowMaxProduct products_of(); empty: not to be had.
struct OutputTruth {
  std::vector<double> value;
  std::vector<double> absolute;
  // What both sides are measured by where there is no bound, [elements] in the output's dtype; empty: the target side
  // by the against side.
  std::vector<std::byte> reference = {};
};

// [elements] the magnitude at whose ULP an error counts. REQUIRES: truth.absolute where made_of_inputs(of).
std::vector<double> bound_scales(const Tensor& tensor, BoundScale of, const OutputTruth& truth);

// ULP of the stated bound; nothing where none is stated for the output's dtype, where its expression fails (why: the
// reason), or where its scale is made of inputs and has_absolute is false.
std::optional<double> stated_bound(const Call& call, std::size_t output, bool has_absolute, std::string* why = nullptr);

// [elements of the output] the scale kRowMaxProduct: the sum of the products. A factor is the largest finite magnitude
// of a tensor in the row of the element: where its index agrees in all leading dims that both shapes begin with,
// spelled alike (the last dim of an output of two or more counts as none of them), so all of the tensor where they
// begin differently. An absent tensor, and one without elements there, is 0; an attribute is its magnitude. inputs,
// outputs: [op.inputs], [op.outputs] of the f64 run, logical elements; empty where absent or no float.
std::vector<double> products_of(const Call& call, std::size_t output, std::span<const std::vector<double>> inputs,
                                std::span<const OutputTruth> outputs);

// How many times the unfused side's error a side without a bound may be off: room for another order of summation.
inline constexpr double kRelativeToUnfused = 4;

// Refines d.cls where it is kDamage: non_finite, damage or rounding, and fills d.error, d.bound and d.judged_by.
// accused: the side outside its bound, where there is one. REQUIRES: target and against are what d was made of.
void classify(Difference& d, const Call& call, std::size_t output, std::span<const std::byte> target,
              std::span<const std::byte> against, const OutputTruth& truth, const std::vector<bool>& skip,
              std::optional<Side>& accused);

}  // namespace fusediff
