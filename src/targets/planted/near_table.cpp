// EXPECT: none op=window experiment=history
// A near miss: the context keeps a table from call to call, and makes it anew for another width.
#include <map>
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
  "dims": {"R": {"range": [0, 32]}, "C": {"range": [1, 256], "typical": [8, 16, 64, 128]}},
  "where": ["C >= 1"],
  "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": "f32", "layout": "any"}],
  "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "f32", "stage": 1, "layout": "any"}],
  "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}
})";

template <class A>
A weight(int64_t c, int64_t width) {
  return (static_cast<A>(c) + A(0.5)) / static_cast<A>(width);
}

// Weights by width, kept as long as the context.
class Tables {
 public:
  const std::vector<float>& of(int64_t width) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<std::vector<float>>& kept = kept_[width];
    if (kept == nullptr) {
      kept = std::make_unique<std::vector<float>>();
      for (int64_t c = 0; c < width; ++c) {
        kept->push_back(weight<float>(c, width));
      }
    }
    return *kept;
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::unique_ptr<std::vector<float>>> kept_;
};

void fused(const Call& call) {
  const auto x = call.input("x").view<const float, 2>();
  const auto y = call.output("y").view<float, 2>();
  const std::vector<float>& table = call.context<Tables>().of(x.shape[1]);
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = x(r, c) * table[static_cast<size_t>(c)];
    }
  }
}

template <class A>
void weigh(const Call& call) {
  const auto x = call.input("x").view<const A, 2>();
  const auto y = call.output("y").view<A, 2>();
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = x(r, c) * weight<A>(c, x.shape[1]);
    }
  }
}

void unfused(const Call& call) {
  by_dtype<float, double>(call.input("x"), [&](auto type) { weigh<typename decltype(type)::type>(call); });
}

}  // namespace

constinit const Operator kNearTable{"window", kSchema, {{"fused", fused}, {"unfused", unfused}}};

}  // namespace fusediff::planted

PLANTED_TARGET_WITH_CONTEXT(fusediff::planted::Tables, "near_table", fusediff::planted::kNearTable);
