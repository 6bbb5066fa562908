// Operators along the last dim: Softmax, ReduceSum, Topk, Gather and ScatterValue. Sums of a softmax in the order of
// lanes.h, every other in index order. Topk: NaN last, equal values by index.
#include <algorithm>
#include <limits>
#include <numeric>

#include "aclnn/emulation/elements.h"
#include "builtin/exponential_rows.h"
#include "builtin/lanes.h"

using namespace fusediff::emulated;
using fusediff::kit::require;

namespace {

// A tensor as rows along its last dim, or REJECTED.
struct Rows {
  Tensor tensor;

  Rows(const Tensor& t, int64_t dim) : tensor(t) {
    const auto rank = static_cast<int64_t>(t.shape.size());
    require(rank == 2 && (dim == 1 || dim == -1), "rank 2 and the last dim alone are emulated");
  }
  int64_t count() const { return tensor.shape[0]; }
  int64_t size() const { return tensor.shape[1]; }
  int64_t at(int64_t row, int64_t column) const { return row * tensor.stride[0] + column * tensor.stride[1]; }
  std::vector<float> read(int64_t row) const {
    std::vector<float> values;
    for (int64_t c = 0; c < size(); ++c) {
      values.push_back(value_at(tensor, at(row, c)));
    }
    return values;
  }
  int64_t index(int64_t row, int64_t column) const {
    const std::byte* from = tensor.data + at(row, column) * (tensor.type == fusediff::aclnn::kInt64 ? 8 : 4);
    int64_t wide = 0;
    int32_t narrow = 0;
    std::memcpy(&narrow, from, sizeof(narrow));
    if (tensor.type != fusediff::aclnn::kInt64) {
      return narrow;
    }
    std::memcpy(&wide, from, sizeof(wide));
    return wide;
  }
};

void softmax(std::vector<float>& row) {
  float most = -std::numeric_limits<float>::infinity();
  for (const float x : row) {
    most = x > most ? x : most;
  }
  for (float& x : row) {
    x -= most;
  }
  const auto n = static_cast<int64_t>(row.size());
  fusediff::builtin::exp_row(row.data(), n);
  const float sum = fusediff::builtin::lane_sum<float>(n, [&](int64_t i) { return row[static_cast<size_t>(i)]; });
  for (float& x : row) {
    x /= sum;
  }
}

// Indices of the k largest.
std::vector<int64_t> largest(const std::vector<float>& row, int64_t k) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t i, int64_t j) {
    const float a = row[static_cast<size_t>(i)];
    const float b = row[static_cast<size_t>(j)];
    if (a > b || a < b) {
      return a > b;
    }
    return (a != a) == (b != b) ? i < j : b != b;
  });
  order.resize(static_cast<size_t>(k));
  return order;
}

}  // namespace

ACL_ENTRY int aclnnSoftmaxGetWorkspaceSize(const aclTensor* self, int64_t dim, aclTensor* out, uint64_t* bytes,
                                           aclOpExecutor** executor) {
  return plan("aclnnSoftmax", bytes, executor, {self, out}, [&]() -> Plan {
    require(self->shape == out->shape, "input and output differ in shape");
    return {[x = Rows(*self, dim), y = Rows(*out, dim)](void*, Context&) {
      for (int64_t r = 0; r < x.count(); ++r) {
        std::vector<float> row = x.read(r);
        softmax(row);
        for (int64_t c = 0; c < x.size(); ++c) {
          put(y.tensor, y.at(r, c), row[static_cast<size_t>(c)]);
        }
      }
    }};
  });
}
ACLNN_SECOND_STAGE(aclnnSoftmax)

ACL_ENTRY int aclnnReduceSumGetWorkspaceSize(const aclTensor* self, const aclIntArray* dims, bool keep, int type,
                                             aclTensor* out, uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnReduceSum", bytes, executor, {self, dims, out}, [&]() -> Plan {
    require(dims->values.size() == 1 && keep && type == out->type, "one dim that is kept is emulated");
    const Rows x(*self, dims->values[0]);
    require(out->shape == std::vector<int64_t>({x.count(), 1}), "out must have one sum a row");
    return {[x, y = *out](void*, Context&) {
      for (int64_t r = 0; r < x.count(); ++r) {
        const std::vector<float> row = x.read(r);
        put(y, r * y.stride[0], std::accumulate(row.begin(), row.end(), 0.0f));
      }
    }};
  });
}
ACLNN_SECOND_STAGE(aclnnReduceSum)

ACL_ENTRY int aclnnTopkGetWorkspaceSize(const aclTensor* self, int64_t k, int64_t dim, bool most, bool sorted,
                                        aclTensor* values, aclTensor* indices, uint64_t* bytes,
                                        aclOpExecutor** executor) {
  return plan("aclnnTopk", bytes, executor, {self, values, indices}, [&]() -> Plan {
    const Rows x(*self, dim);
    require(most && sorted && k >= 1 && k <= x.size(), "k must be 1 to the size of the dim, largest and sorted");
    require(values->shape == std::vector<int64_t>({x.count(), k}) && indices->shape == values->shape &&
                indices->type == fusediff::aclnn::kInt64,
            "values and indices must be [rows, k], indices int64");
    return {[x, k, v = Rows(*values, dim), i = Rows(*indices, dim)](void*, Context&) {
      for (int64_t r = 0; r < x.count(); ++r) {
        const std::vector<float> row = x.read(r);
        const std::vector<int64_t> best = largest(row, k);
        for (int64_t j = 0; j < k; ++j) {
          const int64_t pick = best[static_cast<size_t>(j)];
          put(v.tensor, v.at(r, j), row[static_cast<size_t>(pick)]);
          std::memcpy(i.tensor.data + i.at(r, j) * 8, &pick, sizeof(pick));
        }
      }
    }};
  });
}
ACLNN_SECOND_STAGE(aclnnTopk)

ACL_ENTRY int aclnnGatherGetWorkspaceSize(const aclTensor* self, int64_t dim, const aclTensor* index, aclTensor* out,
                                          uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnGather", bytes, executor, {self, index, out}, [&]() -> Plan {
    const bool is_index = index->type == fusediff::aclnn::kInt64 || index->type == fusediff::aclnn::kInt32;
    require(index->shape == out->shape && is_index, "index must be int64 or int32, shaped as out");
    return {[x = Rows(*self, dim), i = Rows(*index, dim), y = Rows(*out, dim)](void*, Context&) {
      for (int64_t r = 0; r < i.count(); ++r) {
        for (int64_t c = 0; c < i.size(); ++c) {
          const int64_t pick = i.index(r, c);
          require(pick >= 0 && pick < x.size(), "an index is out of range");
          put(y.tensor, y.at(r, c), value_at(x.tensor, x.at(r, pick)));
        }
      }
    }};
  });
}
ACLNN_SECOND_STAGE(aclnnGather)

ACL_ENTRY int aclnnInplaceScatterValueGetWorkspaceSize(aclTensor* self, int64_t dim, const aclTensor* index,
                                                       const aclScalar* value, int64_t reduce, uint64_t* bytes,
                                                       aclOpExecutor** executor) {
  return plan("aclnnInplaceScatterValue", bytes, executor, {self, index, value}, [&]() -> Plan {
    require(reduce == 0 && index->type == fusediff::aclnn::kInt64, "replacing by int64 indices alone is emulated");
    return {[y = Rows(*self, dim), i = Rows(*index, dim), v = static_cast<float>(value->value)](void*, Context&) {
      for (int64_t r = 0; r < i.count(); ++r) {
        for (int64_t c = 0; c < i.size(); ++c) {
          const int64_t pick = i.index(r, c);
          require(pick >= 0 && pick < y.size(), "an index is out of range");
          put(y.tensor, y.at(r, pick), v);
        }
      }
    }};
  });
}
ACLNN_SECOND_STAGE(aclnnInplaceScatterValue)
