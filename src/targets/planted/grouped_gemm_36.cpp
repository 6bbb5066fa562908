// EXPECT: class=unwritten op=grouped_gemm_weight_grad experiment=pair stage=grad_weight output=grad_weight
// The weight gradient of each expert is the product over its own tokens; experts without tokens are skipped, and their
// slab stays unwritten instead of zero. From grouped_gemm 36.
#include <algorithm>
#include <vector>

#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "grouped_gemm_weight_grad",
  "paths": ["fused", "unfused"],
  "dims": {"M": {"range": [0, 128], "typical": [1, 8, 16, 64]}, "E": {"range": [1, 16], "typical": [2, 4, 8]},
           "I": {"range": [1, 64], "typical": [8, 16, 32]}, "O": {"range": [1, 64], "typical": [8, 16, 32]}},
  "where": ["E >= 1"],
  "inputs": [
    {"name": "x",        "shape": ["M", "I"], "dtype": ["f32", "f16", "bf16"], "layout": "any"},
    {"name": "grad_out", "shape": ["M", "O"], "dtype": "=x", "role": "cotangent", "layout": "any"},
    {"name": "tokens_per_expert", "shape": ["E"], "dtype": "i64", "role": "counts", "sum": "M"}],
  "outputs": [
    {"name": "grad_weight", "shape": ["E", "I", "O"], "dtype": "=x", "stage": 1, "layout": "any",
     "bound": {"ulp": "2 * M + 2", "of": "abs_inputs",
               "why": "S is the sum of absolute terms. At most M products and M additions in f32 and one rounding into the dtype, each by half a unit of a term or of a sum below S (1 + u)^M < 2 S, so by at most one ULP of S. After Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}]
})";

template <class T>
struct Gemm {
  View<const T, 2> x, grad_out;
  std::vector<int64_t> first;  // [E + 1]: first token of each expert, then the number of tokens
  View<T, 3> grad_weight;
};

// REJECTED where the counts do not add up or shapes do not fit.
template <class T>
Gemm<T> read(const Call& call) {
  Gemm<T> g{call.input("x").view<const T, 2>(),
            call.input("grad_out").view<const T, 2>(),
            {0},
            call.output("grad_weight").view<T, 3>()};
  const auto counts = call.input("tokens_per_expert").view<const int64_t, 1>();
  for (int64_t e = 0; e < counts.shape[0]; ++e) {
    require(counts(e) >= 0 && counts(e) <= g.x.shape[0], "tokens_per_expert[", e, "] is ", counts(e));
    g.first.push_back(g.first.back() + counts(e));
  }
  require(g.first.back() == g.x.shape[0], "tokens_per_expert adds up to ", g.first.back(), ", not ", g.x.shape[0]);
  call.input("grad_out").require_shape({g.x.shape[0], g.grad_out.shape[1]});
  call.output("grad_weight").require_shape({counts.shape[0], g.x.shape[1], g.grad_out.shape[1]});
  return g;
}

// One row of a slab at a time, kept in f32 over the expert's tokens.
template <class T>
void products_fused(const Call& call) {
  using A = Compute<T>;
  const Gemm<T> g = read<T>(call);
  const int64_t columns = g.grad_out.shape[1];
  std::vector<A> sum(static_cast<size_t>(columns));
  std::vector<A> term(static_cast<size_t>(columns));
  for (int64_t e = 0; e < g.grad_weight.shape[0]; ++e) {
    const int64_t from = g.first[static_cast<size_t>(e)];
    const int64_t to = g.first[static_cast<size_t>(e) + 1];
    if (kFaulty && from == to) {
      continue;
    }
    for (int64_t i = 0; i < g.x.shape[1]; ++i) {
      std::fill(sum.begin(), sum.end(), A{0});
      for (int64_t m = from; m < to; ++m) {
        const A factor = convert<A>(g.x(m, i));
        load(g.grad_out.at(m), term.data());
        for (size_t o = 0; o < sum.size(); ++o) {
          sum[o] += factor * term[o];
        }
      }
      store(g.grad_weight.at(e, i), sum.data());
    }
  }
}

// One product of matrices an expert, element by element.
template <class T>
void products_unfused(const Call& call) {
  using A = Compute<T>;
  const Gemm<T> g = read<T>(call);
  for (int64_t e = 0; e < g.grad_weight.shape[0]; ++e) {
    for (int64_t i = 0; i < g.x.shape[1]; ++i) {
      for (int64_t o = 0; o < g.grad_out.shape[1]; ++o) {
        A sum = 0;
        for (int64_t m = g.first[static_cast<size_t>(e)]; m < g.first[static_cast<size_t>(e) + 1]; ++m) {
          sum += convert<A>(g.x(m, i)) * convert<A>(g.grad_out(m, o));
        }
        g.grad_weight(e, i, o) = convert<T>(sum);
      }
    }
  }
}

void fused(const Call& call) {
  by_dtype<float, Half, BFloat16>(call.input("x"),
                                  [&](auto type) { products_fused<typename decltype(type)::type>(call); });
}

void unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double>(call.input("x"),
                                          [&](auto type) { products_unfused<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kGroupedGemm36{"grouped_gemm_weight_grad", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET("grouped_gemm_36", fusediff::planted::kGroupedGemm36);
