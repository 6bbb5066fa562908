// Operators of one element after another: Add, Adds, Muls, Div, Cast, copies, fills, Sigmoid, comparison and masked
// fill. Each reads f32, computes in f32 and rounds once.
#include "aclnn/emulation/elements.h"
#include "builtin/exponential_rows.h"

using namespace fusediff::emulated;
using fusediff::kit::require;

namespace {

// out = f(a, b), both broadcast.
template <class F>
Plan binary(const Tensor& a, const Tensor& b, const Tensor& out, F f) {
  return {[a = broadcast(a, out.shape), b = broadcast(b, out.shape), out, f](void*, Context&) {
    for_each_element<3>({&out, &a, &b},
                        [&](const auto& at) { put(out, at[0], f(value_at(a, at[1]), value_at(b, at[2]))); });
  }};
}

template <class F>
Plan unary(const Tensor& a, const Tensor& out, F f) {
  require(a.shape == out.shape, "input and output differ in shape");
  return {[a, out, f](void*, Context&) {
    for_each_element<2>({&out, &a}, [&](const auto& at) { put(out, at[0], f(value_at(a, at[1]))); });
  }};
}

Plan fill(const Tensor& out, float value) {
  return {
      [out, value](void*, Context&) { for_each_element<1>({&out}, [&](const auto& at) { put(out, at[0], value); }); }};
}

float number(const aclScalar* scalar) { return static_cast<float>(scalar->value); }

auto scaled_sum(float alpha) {
  return [alpha](float a, float b) { return alpha == 1 ? a + b : a + alpha * b; };
}

bool narrows(const Tensor& from, const Tensor& to) {
  return from.type == fusediff::aclnn::kInt64 && to.type == fusediff::aclnn::kInt32;
}

// Moves, or converts: floats to floats, and i64 to i32.
Plan convert(const Tensor& from, const Tensor& to) {
  require(from.shape == to.shape, "input and output differ in shape");
  const size_t bytes = fusediff::aclnn::element_bytes(from.type);
  const size_t to_bytes = fusediff::aclnn::element_bytes(to.type);
  const bool same = from.type == to.type;
  const bool narrow = narrows(from, to);
  return {[from, to, bytes, to_bytes, same, narrow](void*, Context&) {
    for_each_element<2>({&to, &from}, [&](const auto& at) {
      const std::byte* source = from.data + static_cast<size_t>(at[1]) * bytes;
      if (same || narrow) {  // the low bytes come first
        std::memcpy(to.data + static_cast<size_t>(at[0]) * to_bytes, source, to_bytes);
      } else {
        put(to, at[0], value_at(from, at[1]));
      }
    });
  }};
}

Plan sigmoid(const Tensor& x, const Tensor& y) {
  require(x.shape == y.shape, "input and output differ in shape");
  return {[x, y](void*, Context&) {
    std::vector<float> row;
    for_each_element<1>({&x}, [&](const auto& at) { row.push_back(value_at(x, at[0])); });
    fusediff::builtin::sigmoid_row(row.data(), static_cast<int64_t>(row.size()));
    size_t next = 0;
    for_each_element<1>({&y}, [&](const auto& at) { put(y, at[0], row[next++]); });
  }};
}

}  // namespace

ACL_ENTRY int aclnnAddGetWorkspaceSize(const aclTensor* self, const aclTensor* other, const aclScalar* alpha,
                                       aclTensor* out, uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnAdd", bytes, executor, {self, other, alpha, out},
              [&] { return binary(*self, *other, *out, scaled_sum(number(alpha))); });
}
ACLNN_SECOND_STAGE(aclnnAdd)

ACL_ENTRY int aclnnInplaceAddGetWorkspaceSize(aclTensor* self, const aclTensor* other, const aclScalar* alpha,
                                              uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnInplaceAdd", bytes, executor, {self, other, alpha},
              [&] { return binary(*self, *other, *self, scaled_sum(number(alpha))); });
}
ACLNN_SECOND_STAGE(aclnnInplaceAdd)

ACL_ENTRY int aclnnAddsGetWorkspaceSize(const aclTensor* self, const aclScalar* other, const aclScalar* alpha,
                                        aclTensor* out, uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnAdds", bytes, executor, {self, other, alpha, out}, [&] {
    const auto sum = scaled_sum(number(alpha));
    return unary(*self, *out, [sum, b = number(other)](float a) { return sum(a, b); });
  });
}
ACLNN_SECOND_STAGE(aclnnAdds)

ACL_ENTRY int aclnnMulsGetWorkspaceSize(const aclTensor* self, const aclScalar* other, aclTensor* out, uint64_t* bytes,
                                        aclOpExecutor** executor) {
  return plan("aclnnMuls", bytes, executor, {self, other, out},
              [&] { return unary(*self, *out, [b = number(other)](float a) { return a * b; }); });
}
ACLNN_SECOND_STAGE(aclnnMuls)

ACL_ENTRY int aclnnDivGetWorkspaceSize(const aclTensor* self, const aclTensor* other, aclTensor* out, uint64_t* bytes,
                                       aclOpExecutor** executor) {
  return plan("aclnnDiv", bytes, executor, {self, other, out},
              [&] { return binary(*self, *other, *out, [](float a, float b) { return a / b; }); });
}
ACLNN_SECOND_STAGE(aclnnDiv)

ACL_ENTRY int aclnnCastGetWorkspaceSize(const aclTensor* self, int type, aclTensor* out, uint64_t* bytes,
                                        aclOpExecutor** executor) {
  return plan("aclnnCast", bytes, executor, {self, out}, [&] {
    require(out->type == type, "out is of another dtype than asked for");
    return convert(*self, *out);
  });
}
ACLNN_SECOND_STAGE(aclnnCast)

ACL_ENTRY int aclnnInplaceCopyGetWorkspaceSize(aclTensor* self, const aclTensor* from, uint64_t* bytes,
                                               aclOpExecutor** executor) {
  return plan("aclnnInplaceCopy", bytes, executor, {self, from}, [&] { return convert(*from, *self); });
}
ACLNN_SECOND_STAGE(aclnnInplaceCopy)

ACL_ENTRY int aclnnInplaceZeroGetWorkspaceSize(aclTensor* self, uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnInplaceZero", bytes, executor, {self}, [&] { return fill(*self, 0); });
}
ACLNN_SECOND_STAGE(aclnnInplaceZero)

ACL_ENTRY int aclnnInplaceOneGetWorkspaceSize(aclTensor* self, uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnInplaceOne", bytes, executor, {self}, [&] { return fill(*self, 1); });
}
ACLNN_SECOND_STAGE(aclnnInplaceOne)

ACL_ENTRY int aclnnSigmoidGetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* bytes,
                                           aclOpExecutor** executor) {
  return plan("aclnnSigmoid", bytes, executor, {self, out}, [&] { return sigmoid(*self, *out); });
}
ACLNN_SECOND_STAGE(aclnnSigmoid)

ACL_ENTRY int aclnnEqScalarGetWorkspaceSize(const aclTensor* self, const aclScalar* other, aclTensor* out,
                                            uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnEqScalar", bytes, executor, {self, other, out}, [&]() -> Plan {
    require(self->shape == out->shape && out->type == fusediff::aclnn::kBool, "out must be bool, of the input's shape");
    return {[a = *self, out = *out, b = number(other)](void*, Context&) {
      for_each_element<2>({&out, &a}, [&](const auto& at) { out.data[at[0]] = std::byte{value_at(a, at[1]) == b}; });
    }};
  });
}
ACLNN_SECOND_STAGE(aclnnEqScalar)

ACL_ENTRY int aclnnInplaceMaskedFillScalarGetWorkspaceSize(aclTensor* self, const aclTensor* mask,
                                                           const aclScalar* value, uint64_t* bytes,
                                                           aclOpExecutor** executor) {
  return plan("aclnnInplaceMaskedFillScalar", bytes, executor, {self, mask, value}, [&]() -> Plan {
    return {[out = *self, mask = broadcast(*mask, self->shape), v = number(value)](void*, Context&) {
      for_each_element<2>({&out, &mask}, [&](const auto& at) {
        if (mask.data[at[1]] != std::byte{0}) {
          put(out, at[0], v);
        }
      });
    }};
  });
}
ACLNN_SECOND_STAGE(aclnnInplaceMaskedFillScalar)
