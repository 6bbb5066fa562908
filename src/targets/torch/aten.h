// Tensors of a call as ATen sees them, without copies, and ATen's exceptions as statuses of a target. No arithmetic.
#pragma once

// First of all: a vector of the IValue that other headers only declare does not compile with clang 14 in C++20.
#include <ATen/core/ivalue.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>

#include "kit/target.h"

namespace fusediff::torch {

// The tensor's own memory with its shape and strides. UNSUPPORTED for a dtype that ATen 1.13 lacks. Valid during the
// call; not to be called for an absent tensor, except an empty one.
at::Tensor aten(const kit::Tensor& tensor);

// Null (undefined) where the tensor is absent or empty.
at::Tensor aten_if_present(const kit::Tensor& tensor);

// Copies `result`, of the same shape, into the output's memory, converted to its dtype; nothing where it is not wanted
// or `result` lies there already.
void give(const kit::Tensor& output, const at::Tensor& result);

// f64 for f64, f32 for every other float dtype: what a composition computes in after its first step, .to(f32).
at::ScalarType wide_type(const at::Tensor& tensor);
at::Tensor widened(const at::Tensor& tensor);

// Throws the kit's Failure for the exception in flight: UNSUPPORTED where ATen says that it has no such kernel, else
// FAILED with the first line of its message. To be called in a handler.
[[noreturn]] void rethrow_as_failure();

// A run function of a kit::Path: Run without gradients and with ATen's exceptions turned into statuses.
template <void (*Run)(const kit::Call&)>
void in_aten(const kit::Call& call) {
  const c10::InferenceMode no_gradients;
  try {
    Run(call);
  } catch (const kit::Failure&) {
    throw;
  } catch (...) {
    rethrow_as_failure();
  }
}

// The unfused path of a built-in operator, to be the f64 truth beside ATen's own paths.
kit::Path reference_of(const kit::Operator& builtin);

}  // namespace fusediff::torch
