// EXPECT: class=contamination op=window experiment=history output=y
// The context keeps a table of weights, which depend on the width, and makes it anew only where it is too short: after
// a wider call the weights of that call are used.
#include <memory>
#include <mutex>
#include <vector>

#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr char kSchema[] = R"({
  "name": "window",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 2, 8]}, "C": {"range": [0, 512], "typical": [8, 16, 64, 128]}},
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": ["f32", "f16", "bf16"], "layout": "any"}],
  "outputs": [
    {"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 1, "layout": "any",
     "bound": {"ulp": "4", "of": "element",
               "why": "c + 0.5 is exact, the quotient and the product half a unit each, the rounding into the dtype half a unit; each at most doubled by a change of binade"}}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"},
  "inplace": [["y", "x"]]
})";

// A ramp from 0 to 1 over the width.
template <class A>
A weight(int64_t c, int64_t width) {
  return (static_cast<A>(c) + A(0.5)) / static_cast<A>(width);
}

class Tables {
 public:
  // At least `width` weights. Calls in flight keep the table that they got.
  std::shared_ptr<const std::vector<float>> of(int64_t width) {
    const std::lock_guard lock(mutex_);
    const auto wanted = static_cast<size_t>(width);
    if (table_ == nullptr || (kFaulty ? table_->size() < wanted : table_->size() != wanted)) {
      const auto made = std::make_shared<std::vector<float>>(wanted);
      for (int64_t c = 0; c < width; ++c) {
        (*made)[static_cast<size_t>(c)] = weight<float>(c, width);
      }
      table_ = made;
    }
    return table_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const std::vector<float>> table_;
};

template <class T>
void weigh_by_table(const Call& call) {
  const auto x = call.input("x").view<const T, 2>();
  const auto y = call.output("y").view<T, 2>();
  const auto table = call.context<Tables>().of(x.shape[1]);
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = convert<T>(convert<float>(x(r, c)) * (*table)[static_cast<size_t>(c)]);
    }
  }
}

template <class T>
void weigh(const Call& call) {
  using A = Compute<T>;
  const auto x = call.input("x").view<const T, 2>();
  const auto y = call.output("y").view<T, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = convert<T>(convert<A>(x(r, c)) * weight<A>(c, x.shape[1]));
    }
  }
}

void fused(const Call& call) {
  by_dtype<float, Half, BFloat16>(call.input("x"),
                                  [&](auto type) { weigh_by_table<typename decltype(type)::type>(call); });
}

void unfused(const Call& call) {
  by_dtype<float, Half, BFloat16, double>(call.input("x"),
                                          [&](auto type) { weigh<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kHistoryStaleTable{"window", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET_WITH_CONTEXT(fusediff::planted::Tables, "history_stale_table", fusediff::planted::kHistoryStaleTable);
