// What planted backwards of mhc_pre_sinkhorn share: the gradients of the parameters token by token, by the built-in
// fused path on calls of one token each. Their sum in the order of tokens has the bits of the built-in paths. No fault
// stands here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "builtin/mhc_pre_sinkhorn.h"
#include "planted/planted.h"

namespace fusediff::planted {

// Gradients of the parameters, over some tokens: [M], [3] and [M, K], M mixes and K = N * C as in the built-in record.
struct ParameterGrads {
  std::vector<float> bias, alpha, phi;

  explicit ParameterGrads(const builtin::MhcSizes& s)
      : bias(static_cast<size_t>(s.mixes())), alpha(3), phi(static_cast<size_t>(s.mixes() * s.width())) {}
};

// Sizes of a whole call, which is checked as the built-in path does.
inline builtin::MhcSizes mhc_sizes(const kit::Call& call) {
  builtin::MhcSizes sizes{};
  kit::by_dtype<kit::Half, kit::BFloat16>(call.input("x"), [&](auto type) {
    sizes = builtin::read_mhc_backward<typename decltype(type)::type>(call).sizes;
  });
  return sizes;
}

// REQUIRES: the call is one that mhc_sizes() accepts; it outlives this.
class TokenCalls {
 public:
  explicit TokenCalls(const kit::Call& call)
      : raw_(call.raw()),
        inputs_(raw_.inputs, raw_.inputs + raw_.input_count),
        outputs_(raw_.outputs, raw_.outputs + raw_.output_count),
        shapes_(inputs_.size() + outputs_.size()) {
    sequence_ = call.input("x").size(1);
  }

  // Writes grad_x of the token where the call wants it, and what the token adds to the parameters into `part`.
  void run(int64_t token, ParameterGrads& part) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i] = of_token(raw_.inputs[i], token, shapes_[i]);
    }
    for (size_t o = 0; o < outputs_.size(); ++o) {
      outputs_[o] = of_token(raw_.outputs[o], token, shapes_[inputs_.size() + o]);
    }
    const int64_t width = static_cast<int64_t>(part.phi.size() / part.bias.size());
    const std::array<int64_t, 1> dense{1};
    const std::array<int64_t, 2> dense_rows{width, 1};
    put("grad_bias", part.bias, dense.data());
    put("grad_alpha", part.alpha, dense.data());
    put("grad_phi", part.phi, dense_rows.data());
    fusediff_call one = raw_;
    one.inputs = inputs_.data();
    one.outputs = outputs_.data();
    builtin::run_mhc_grad_fused(kit::Call(one, nullptr));
  }

 private:
  using Shape = std::array<int64_t, 5>;

  // Where B stands in the shape, S behind it; -1: nowhere.
  static int batch_axis(std::string_view name) {
    for (const char* whole : {"phi", "alpha", "bias", "grad_phi", "grad_alpha", "grad_bias"}) {
      if (name == whole) {
        return -1;
      }
    }
    return name == "sum_out" || name == "norm_out" ? 1 : 0;
  }

  fusediff_tensor of_token(fusediff_tensor tensor, int64_t token, Shape& shape) const {
    const int axis = batch_axis(tensor.name);
    if (axis < 0 || tensor.data == nullptr) {
      return tensor;
    }
    const auto at = static_cast<size_t>(axis);
    std::copy_n(tensor.shape, tensor.rank, shape.begin());
    shape[at] = shape[at + 1] = 1;
    tensor.shape = shape.data();
    const int64_t offset = token / sequence_ * tensor.stride[axis] + token % sequence_ * tensor.stride[axis + 1];
    const int64_t bytes = tensor.dtype == FUSEDIFF_F32 ? 4 : 2;
    tensor.data = static_cast<char*>(tensor.data) + offset * bytes;
    return tensor;
  }

  void put(std::string_view name, std::vector<float>& to, const int64_t* stride) {
    for (fusediff_tensor& tensor : outputs_) {
      if (name == tensor.name) {
        tensor.data = to.data();
        tensor.stride = stride;
      }
    }
  }

  const fusediff_call& raw_;
  std::vector<fusediff_tensor> inputs_, outputs_;
  std::vector<Shape> shapes_;
  int64_t sequence_ = 0;
};

// Writes the gradients of the parameters where the call wants them.
inline void store_parameters(const kit::Call& call, const builtin::MhcSizes& s, const ParameterGrads& grads) {
  kit::store(call.output("grad_bias").view<float, 1>(), grads.bias.data());
  kit::store(call.output("grad_alpha").view<float, 1>(), grads.alpha.data());
  const auto phi = call.output("grad_phi").view<float, 2>();
  for (int64_t m = 0; m < s.mixes(); ++m) {
    kit::store(phi.at(m), grads.phi.data() + m * s.width());
  }
}

}  // namespace fusediff::planted
