// Dispatch of an operator over every float dtype, for its run and for its workspace, and over the precision in which it
// keeps what is in between. No arithmetic here.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "kit/target.h"

namespace fusediff::builtin {

// Calls f(Type<T>{}) with the dtype of `tensor`; UNSUPPORTED where it is not a float.
template <class F>
void by_any_float(const kit::Tensor& tensor, F&& f) {
  kit::by_dtype<float, kit::Half, kit::BFloat16, kit::F8E4M3, kit::F8E5M2, double>(tensor, std::forward<F>(f));
}

// Bytes that f(Type<T>{}, carver) takes.
template <class F>
size_t workspace_by_any_float(const kit::Tensor& tensor, F&& f) {
  kit::Carver carver;
  by_any_float(tensor, [&](auto type) { f(type, carver); });
  return carver.bytes();
}

// An intermediate result as it is kept: unchanged, or, with kStorage, rounded to the storage dtype T.
template <class T, bool kStorage>
kit::Compute<T> in_between(kit::Compute<T> value) {
  return kStorage ? kit::convert<kit::Compute<T>>(kit::convert<T>(value)) : value;
}

// Calls f(Type<T>, std::bool_constant<kStorage>) by the dtype of a tensor and the attribute `compute`.
template <class F>
void by_any_float_and_compute(const kit::Call& call, const kit::Tensor& tensor, F&& f) {
  const std::string_view compute = call.text("compute");
  kit::require(compute == "f32" || compute == "storage", "compute must be f32 or storage, not ", compute);
  by_any_float(tensor, [&](auto type) {
    if (compute == "storage") {
      f(type, std::true_type{});
    } else {
      f(type, std::false_type{});
    }
  });
}

}  // namespace fusediff::builtin
