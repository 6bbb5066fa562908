// EXPECT: class=overread op=silu experiment=pair output=x
// The loop loads element i + 1 while it works on i, for the last i too: one element behind the buffer is read and not
// used. Seen only where the buffer ends at a page that cannot be read. From TensorRT-LLM 17951.
#include "builtin/exponential.h"
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "silu",
  "paths": ["fused", "unfused"],
  "dims": {"N": {"range": [0, 4096], "typical": [1, 16, 128, 1024]}},
  "inputs": [{"name": "x", "shape": ["N"], "dtype": ["f32", "f16", "bf16"]}],
  "outputs": [{"name": "y", "shape": ["N"], "dtype": "=x", "stage": 1}],
  "rows": {"dim": "N", "inputs": ["x"], "outputs": "all"}
})";

template <class T>
T silu(T x) {
  const Compute<T> value = convert<Compute<T>>(x);
  return convert<T>(value * builtin::sigmoid(value));
}

// A load that the compiler keeps although its value may go unused, as a kernel's prefetch into a register is.
template <class T>
T load_now(const T* from) {
  if constexpr (Narrow<T>) {
    return T{*static_cast<const volatile typename T::bits_type*>(&from->bits)};
  } else {
    return *static_cast<const volatile T*>(from);
  }
}

template <class T>
void silu_fused(const Call& call) {
  const auto x = call.input("x").view<const T, 1>();
  const auto y = call.output("y").view<T, 1>();
  const int64_t n = x.shape[0];
  if (n == 0) {
    return;
  }
  T next = load_now(x.data);
  for (int64_t i = 0; i < n; ++i) {
    const T current = next;
    if (kFaulty || i + 1 < n) {
      next = load_now(x.data + i + 1);
    }
    y.data[i] = silu(current);
  }
}

template <class T>
void silu_unfused(const Call& call) {
  const auto x = call.input("x").view<const T, 1>();
  const auto y = call.output("y").view<T, 1>();
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    y(i) = silu(x(i));
  }
}

void fused(const Call& call) {
  by_dtype<float, Half, BFloat16>(call.input("x"), [&](auto type) { silu_fused<typename decltype(type)::type>(call); });
}

void unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double>(call.input("x"),
                                          [&](auto type) { silu_unfused<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kTensorrtLlm17951{"silu", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("tensorrt_llm_17951", fusediff::planted::kTensorrtLlm17951);
