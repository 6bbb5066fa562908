// EXPECT: class=damage op=add experiment=relation output=y relation=inplace
// The tail of a row is one more whole vector that ends with the row and overlaps the one before. Where y lies on an
// input the overlap has been written already, and is added to twice.
#include <algorithm>
#include <array>

#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr int64_t kVector = 16;

template <class T>
void add_vector(const Row<T>& y, const Row<T>& a, const Row<T>& b, int64_t from, int64_t n) {
  using A = Compute<T>;
  A left[kVector], right[kVector];
  load(a.part(from, n), left);
  load(b.part(from, n), right);
  for (int64_t i = 0; i < n; ++i) {
    left[i] += right[i];
  }
  store(y.part(from, n), left);
}

template <class T>
void add_vectors(const Call& call) {
  const std::array tensors{call.output("y"), call.input("a"), call.input("b")};
  for_each_row<T>(tensors, [](const auto& row) {
    const auto& [y, a, b] = row;
    const int64_t n = y.shape[0];
    int64_t from = 0;
    for (; from + kVector <= n; from += kVector) {
      add_vector<T>(y, a, b, from, kVector);
    }
    if (kFaulty && from > 0 && from < n) {
      from = n - kVector;
    }
    if (from < n) {
      add_vector<T>(y, a, b, from, n - from);
    }
  });
}

void run(const Call& call) {
  by_dtype<float, Half, BFloat16, double, F8E4M3, F8E5M2>(
      call.input("a"), [&](auto type) { add_vectors<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kInplaceOverlap{"add", PLANTED_LIKE_BUILTIN("add"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("inplace_overlap", fusediff::planted::kInplaceOverlap);
