// Typed, strided views of the tensors of a call: any rank, any stride, 0 included. A view owns nothing, checks rank
// and dtype when it is made, and does not check indices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "fusediff_target.h"
#include "kit/failure.h"
#include "kit/number.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

  // Elements of type T (const for inputs) along kRank dimensions.
  template <class T, int kRank>
  struct View {
    T* data = nullptr;
    std::array<int64_t, kRank> shape{};
    std::array<int64_t, kRank> stride{};  // in elements

    template <class... Index>
    T& operator()(Index... index) const {
      static_assert(sizeof...(Index) == kRank);
      int64_t offset = 0;
      size_t dim = 0;
      ((offset += static_cast<int64_t>(index) * stride[dim++]), ...);
      return data[offset];
    }

    // The view that is left when the first indices are fixed: one row of a matrix, one matrix of a stack.
    template <class... Index>
    auto at(Index... index) const {
      constexpr int kLeft = kRank - static_cast<int>(sizeof...(Index));
      static_assert(kLeft >= 0);
      View<T, kLeft> left;
      int64_t offset = 0;
      size_t dim = 0;
      ((offset += static_cast<int64_t>(index) * stride[dim++]), ...);
      left.data = data == nullptr ? nullptr : data + offset;
      for (size_t d = 0; d < static_cast<size_t>(kLeft); ++d) {
        left.shape[d] = shape[dim + d];
        left.stride[d] = stride[dim + d];
      }
      return left;
    }

    // `count` elements from index `from` on along the first dimension.
    View part(int64_t from, int64_t count) const {
      View view = *this;
      view.data += from * stride[0];
      view.shape[0] = count;
      return view;
    }

    explicit operator bool() const { return data != nullptr; }
  };

  template <class T>
  using Row = View<T, 1>;

  // Reads a row into dense memory, converted.
  template <class To, class T>
  void load(const Row<T>& row, To* to) {
    using From = std::remove_const_t<T>;
    const int64_t n = row.shape[0];
    const int64_t step = row.stride[0];
    const T* from = row.data;
    if (step == 1) {
      for (int64_t i = 0; i < n; ++i) {
        to[i] = convert<To, From>(from[i]);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        to[i] = convert<To, From>(from[i * step]);
      }
    }
  }

  // Writes dense values into a row, converted; does nothing for a view without data.
  template <class T, class From>
  void store(const Row<T>& row, const From* from) {
    const int64_t n = row.data == nullptr ? 0 : row.shape[0];
    const int64_t step = row.stride[0];
    T* to = row.data;
    if (step == 1) {
      for (int64_t i = 0; i < n; ++i) {
        to[i] = convert<T, From>(from[i]);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        to[i * step] = convert<T, From>(from[i]);
      }
    }
  }

  // The row as dense values of type To: where it already is that, its own memory, else a copy in `scratch`
  // ([shape[0]]).
  template <class To, class T>
  const To* dense(const Row<T>& row, To* scratch) {
    if constexpr (std::is_same_v<std::remove_const_t<T>, To>) {
      if (row.stride[0] == 1) {
        return row.data;
      }
    }
    load(row, scratch);
    return scratch;
  }

  // A tensor of a call, of any dtype and rank.
  class Tensor {
   public:
    explicit Tensor(const fusediff_tensor& raw) : raw_(&raw) {}

    std::string_view name() const { return raw_->name; }
    int32_t dtype() const { return raw_->dtype; }
    int rank() const { return raw_->rank; }
    int64_t size(int dim) const { return raw_->shape[dim]; }
    int64_t stride(int dim) const { return raw_->stride[dim]; }
    int64_t count() const {
      int64_t n = 1;
      for (int d = 0; d < rank(); ++d) {
        n *= size(d);
      }
      return n;
    }
    // False for an absent input and for an output that is not wanted; also for an empty tensor.
    bool present() const { return raw_->data != nullptr; }

    // The tensor as elements of type T. UNSUPPORTED for another dtype, REJECTED for another rank or no memory.
    template <class T, int kRank>
    View<T, kRank> view() const {
      View<T, kRank> view = optional_view<T, kRank>();
      require(view.data != nullptr || count() == 0, name(), " is needed and absent");
      return view;
    }

    // As view(), for an optional tensor: false as a bool where it is absent, not wanted or empty.
    template <class T, int kRank>
    View<T, kRank> optional_view() const {
      require_dtype<T>();
      require(rank() == kRank, name(), " has rank ", rank(), ", not ", kRank);
      View<T, kRank> view;
      view.data = static_cast<T*>(raw_->data);
      for (size_t d = 0; d < static_cast<size_t>(kRank); ++d) {
        view.shape[d] = raw_->shape[d];
        view.stride[d] = raw_->stride[d];
      }
      return view;
    }

    // The elements in one piece, in row-major order, for a kernel that takes a pointer and a count. UNSUPPORTED for
    // another dtype and for strides that leave gaps or change the order, REJECTED where the tensor is absent.
    template <class T>
    std::span<T> dense() const {
      require_dtype<T>();
      require(present() || count() == 0, name(), " is needed and absent");
      int64_t step = 1;
      for (int d = rank() - 1; d >= 0 && count() != 0; --d) {
        if (size(d) != 1 && stride(d) != step) {
          unsupported(name(), " is not dense: stride ", stride(d), " in dimension ", d, ", not ", step);
        }
        step *= size(d);
      }
      return {static_cast<T*>(raw_->data), static_cast<size_t>(count())};
    }

    // REJECTED unless the shape is this one.
    void require_shape(std::initializer_list<int64_t> shape) const {
      require(rank() == static_cast<int>(shape.size()), name(), " has rank ", rank(), ", not ",
              static_cast<int64_t>(shape.size()));
      int dim = 0;
      for (const int64_t size_wanted : shape) {
        require(size(dim) == size_wanted, name(), " has size ", size(dim), " in dimension ", dim, ", not ",
                size_wanted);
        ++dim;
      }
    }

    void* data() const { return raw_->data; }

   private:
    template <class T>
    void require_dtype() const {
      if (dtype() != kDtypeOf<T>) {
        unsupported(name(), " is ", dtype_name(dtype()), ", here only ", dtype_name(kDtypeOf<T>), " is offered");
      }
    }

    const fusediff_tensor* raw_;
  };

  // Calls f(rows) for each row of the tensors, which must be of one shape (else REJECTED) of any rank and of dtype T;
  // rows is an array with one Row<T> for each tensor. A tensor of rank 0 is one row of one element.
  template <class T, size_t kCount, class F>
  void for_each_row(const std::array<Tensor, kCount>& tensors, F&& f) {
    const Tensor& first = tensors[0];
    const int outer = first.rank() == 0 ? 0 : first.rank() - 1;
    std::array<Row<T>, kCount> rows;
    for (size_t t = 0; t < kCount; ++t) {
      const Tensor& tensor = tensors[t];
      if (tensor.dtype() != kDtypeOf<T>) {
        unsupported(tensor.name(), " is ", dtype_name(tensor.dtype()), ", not ", dtype_name(kDtypeOf<T>));
      }
      require(tensor.rank() == first.rank(), tensor.name(), " and ", first.name(), " differ in rank");
      for (int d = 0; d < first.rank(); ++d) {
        require(tensor.size(d) == first.size(d), tensor.name(), " and ", first.name(), " differ in dimension ", d);
      }
      require(tensor.present() || tensor.count() == 0, tensor.name(), " is needed and absent");
      rows[t].shape[0] = first.rank() == 0 ? 1 : first.size(outer);
      rows[t].stride[0] = first.rank() == 0 ? 1 : tensor.stride(outer);
      rows[t].data = static_cast<T*>(tensor.data());
    }
    const int64_t total = first.count();
    if (total == 0) {
      return;
    }
    for (int64_t row = 0; row < total / rows[0].shape[0]; ++row) {
      std::array<Row<T>, kCount> here = rows;
      int64_t left = row;
      for (int d = outer - 1; d >= 0; --d) {
        const int64_t index = left % first.size(d);
        left /= first.size(d);
        for (size_t t = 0; t < kCount; ++t) {
          here[t].data += index * tensors[t].stride(d);
        }
      }
      f(here);
    }
  }

}  // namespace )
}  // namespace fusediff
