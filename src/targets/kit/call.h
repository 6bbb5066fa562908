// One call of one path, as an operator sees it: tensors and attributes by name, workspace, context. A Call owns nothing
// and is valid during that call only. It does not know the schema: what must hold is checked by the operator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fusediff_target.h"
#include "kit/failure.h"
#include "kit/number.h"
#include "kit/view.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

  // Cuts arrays out of a workspace, each aligned to 64 bytes. Without memory it only counts: one function that takes a
  // Carver serves the workspace function and the run.
  class Carver {
   public:
    Carver() = default;
    Carver(void* memory, size_t size) : memory_(static_cast<std::byte*>(memory)), size_(size), counts_(false) {}

    // Room for `count` elements; null while only counting. REJECTED where the workspace is too small.
    template <class T>
    T* take(int64_t count) {
      const size_t from = used_;
      used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
      if (counts_) {
        return nullptr;
      }
      require(used_ <= size_, "the workspace has ", static_cast<int64_t>(size_), " bytes, needed are at least ",
              static_cast<int64_t>(used_));
      return reinterpret_cast<T*>(memory_ + from);
    }

    size_t bytes() const { return used_; }

   private:
    std::byte* memory_ = nullptr;
    size_t size_ = 0;
    size_t used_ = 0;
    bool counts_ = true;
  };

  class Call {
   public:
    Call(const fusediff_call& raw, void* context) : raw_(&raw), context_(context) {}

    std::string_view op() const { return raw_->op; }
    std::string_view path() const { return raw_->path; }

    // REJECTED where the call has no tensor of that name.
    Tensor input(std::string_view name) const { return find(raw_->inputs, raw_->input_count, name, "input"); }
    Tensor output(std::string_view name) const { return find(raw_->outputs, raw_->output_count, name, "output"); }

    // Attributes. REJECTED where there is none of that name and kind.
    int64_t integer(std::string_view name) const { return attribute(name, FUSEDIFF_INT).i; }
    bool flag(std::string_view name) const { return attribute(name, FUSEDIFF_INT).i != 0; }
    double real(std::string_view name) const { return attribute(name, FUSEDIFF_FLOAT).f; }
    std::string_view text(std::string_view name) const { return attribute(name, FUSEDIFF_STRING).s; }

    Carver workspace() const { return Carver(raw_->workspace, raw_->workspace_size); }

    // The context of FUSEDIFF_KIT_TARGET_WITH_CONTEXT, shared by all calls on it.
    template <class Context>
    Context& context() const {
      return *static_cast<Context*>(context_);
    }

    const fusediff_call& raw() const { return *raw_; }

   private:
    static Tensor find(const fusediff_tensor* tensors, size_t count, std::string_view name, std::string_view kind) {
      for (size_t i = 0; i < count; ++i) {
        if (name == tensors[i].name) {
          return Tensor(tensors[i]);
        }
      }
      reject("the call has no ", kind, " ", name);
    }

    const fusediff_attr& attribute(std::string_view name, int32_t kind) const {
      for (size_t i = 0; i < raw_->attr_count; ++i) {
        if (name == raw_->attrs[i].name) {
          require(raw_->attrs[i].kind == kind, "attribute ", name, " is of another kind");
          return raw_->attrs[i];
        }
      }
      reject("the call has no attribute ", name);
    }

    const fusediff_call* raw_;
    void* context_;
  };

  template <class T>
  struct Type {
    using type = T;
  };

  // Calls f(Type<T>{}) with the T of the list whose dtype the tensor has; UNSUPPORTED where there is none:
  //   by_dtype<float, Half, BFloat16>(call.input("x"), [&](auto type) { using T = typename decltype(type)::type; ...
  //   });
  template <class... Ts, class F>
  void by_dtype(const Tensor& tensor, F&& f) {
    const bool found = ((tensor.dtype() == kDtypeOf<Ts> && (f(Type<Ts>{}), true)) || ...);
    if (!found) {
      unsupported(tensor.name(), " is ", dtype_name(tensor.dtype()), ", which this path does not offer");
    }
  }

}  // namespace )
}  // namespace fusediff
