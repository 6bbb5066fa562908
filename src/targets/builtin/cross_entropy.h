// What cross_entropy and its gradient share: labels and label smoothing, read once. No arithmetic on logits.
#pragma once

#include <cstdint>

#include "kit/target.h"

namespace fusediff::builtin {

inline constexpr int64_t kIgnored = -100;

// The label of a row: 0 to classes - 1, or kIgnored. REJECTED where it is anything else.
template <class Label>
int64_t label_of(const kit::Row<const Label>& target, int64_t row, int64_t classes) {
  const int64_t label = target(row);
  kit::require((label >= 0 && label < classes) || label == kIgnored, "target[", row, "] is ", label, ", not one of ",
               classes, " classes or -100");
  return label;
}

// REJECTED unless 0 <= label_smoothing < 1.
inline double read_smoothing(const kit::Call& call) {
  const double smoothing = call.real("label_smoothing");
  kit::require(smoothing >= 0 && smoothing < 1, "label_smoothing must be 0 or more and below 1");
  return smoothing;
}

// Calls f(Type<T>, Type<Label>) with the dtypes of logits and target.
template <class F>
void by_logits_and_labels(const kit::Call& call, F&& f) {
  kit::by_dtype<float, kit::Half, kit::BFloat16, double>(call.input("logits"), [&](auto type) {
    kit::by_dtype<int32_t, int64_t>(call.input("target"), [&](auto label) { f(type, label); });
  });
}

}  // namespace fusediff::builtin
