// See plain.h.
#include "onednn/plain.h"

namespace fusediff::onednn {
namespace {

using namespace kit;

// Calls f(logical index, offset in elements) for each element.
template <class F>
void for_each_element(const Tensor& tensor, F&& f) {
  const int64_t count = tensor.count();
  for (int64_t i = 0; i < count; ++i) {
    int64_t left = i;
    int64_t offset = 0;
    for (int d = tensor.rank(); d-- > 0;) {
      offset += left % tensor.size(d) * tensor.stride(d);
      left /= tensor.size(d);
    }
    f(static_cast<size_t>(i), offset);
  }
}

template <class F>
void by_any_number(const Tensor& tensor, F&& f) {
  by_dtype<double, float, BFloat16, Half, int32_t, int8_t, uint8_t>(tensor, f);
}

}  // namespace

Numbers numbers(const Tensor& tensor) {
  Numbers values(static_cast<size_t>(tensor.count()));
  by_any_number(tensor, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* data = static_cast<const T*>(tensor.data());
    for_each_element(tensor, [&](size_t i, int64_t offset) { values[i] = convert<double>(data[offset]); });
  });
  return values;
}

void store(const Tensor& tensor, const Numbers& values) {
  require(values.size() == static_cast<size_t>(tensor.count()), tensor.name(), " has ", tensor.count(),
          " elements, not ", static_cast<int64_t>(values.size()));
  by_any_number(tensor, [&](auto type) {
    using T = typename decltype(type)::type;
    T* data = static_cast<T*>(tensor.data());
    for_each_element(tensor, [&](size_t i, int64_t offset) { data[offset] = convert<T>(values[i]); });
  });
}

Numbers multiply(const Numbers& x, const Numbers& w, int64_t m, int64_t k, int64_t n, bool transposed) {
  Numbers y(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += x[static_cast<size_t>(i * k + l)] * w[static_cast<size_t>(transposed ? j * k + l : l * n + j)];
      }
      y[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  return y;
}

}  // namespace fusediff::onednn
