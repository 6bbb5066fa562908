// my_ops: an operator in two paths, for fusediff to compare. Put yours in the place of softsign:
//   fused()    calls the kernel that you want to test,
//   unfused()  says what it must give, bit for bit, in the plainest way,
//   kSoftsign  says what a legal call is: sizes, dtypes, attributes (fusediff/SCHEMA.md has every key).
//
//   g++ -std=c++20 -O2 -shared -fPIC -Ifusediff my_ops.cpp -o my_ops.so
//   fusediff fuzz --target ./my_ops.so --time 60 --out reports/my_ops
#include <cmath>
#include <vector>

#include "kit/schema.h"

using namespace fusediff::kit;

// Stands for a kernel of your library, which takes pointers.
static void softsign_f32(const float* x, float* y, size_t count) {
  for (size_t i = 0; i < count; ++i) y[i] = x[i] / (1 + std::fabs(x[i]));
}

static void fused(const Call& call) {
  const auto x = call.input("x").dense<const float>();
  const auto y = call.output("y").dense<float>();
  softsign_f32(x.data(), y.data(), x.size());
}

// Step by step. In f64 too, which fusediff tries: the truth that tells rounding from damage.
static void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) {
    using T = typename decltype(type)::type;
    const auto x = call.input("x").dense<const T>();
    const auto y = call.output("y").dense<T>();
    std::vector<T> divisor(x.size());
    for (size_t i = 0; i < x.size(); ++i) divisor[i] = 1 + std::fabs(x[i]);
    for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] / divisor[i];
  });
}

const Operator kSoftsign = op("softsign")
                               .dim("R", 0, 64)  // sizes that are tried; 0 says that an empty tensor is legal
                               .dim("C", 0, 512, {64, 128})
                               .input("x", {"R", "C"}, f32)
                               .output("y", {"R", "C"}, same_as("x"))
                               .stage(1)
                               .rows("R")  // a row alone gives the bits that it gives in a batch
                               .path("fused", fused)
                               .path("unfused", unfused);

FUSEDIFF_KIT_TARGET("my_ops", "1.0", kSoftsign)
