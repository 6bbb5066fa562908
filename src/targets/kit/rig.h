// For tests of a target: tensors with any layout between guard bytes, and one call of one path. Checks after each run
// that inputs, gaps and guards are as before. Not a fuzzer and not used by one: it has no oracle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "fusediff_target.h"
#include "kit/number.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

  inline size_t dtype_bytes(int32_t dtype) {
    switch (dtype) {
      case FUSEDIFF_F64:
      case FUSEDIFF_I64:
        return 8;
      case FUSEDIFF_F32:
      case FUSEDIFF_I32:
        return 4;
      case FUSEDIFF_F16:
      case FUSEDIFF_BF16:
      case FUSEDIFF_I16:
        return 2;
      default:
        return 1;
    }
  }

  // One tensor with its own memory: guard bytes, then the elements at any stride, then guard bytes.
  struct RigTensor {
    static constexpr size_t kGuard = 64;
    static constexpr uint8_t kFill = 0x3e;

    std::string name;
    int32_t dtype = FUSEDIFF_F32;
    std::vector<int64_t> shape;
    std::vector<int64_t> stride;
    std::vector<uint8_t> memory;
    bool absent = false;

    int64_t count() const {
      int64_t n = 1;
      for (const int64_t size : shape) {
        n *= size;
      }
      return n;
    }

    // Row-major strides with `gap` unused elements after each row, or transposed order.
    void lay_out(int64_t gap = 0, bool reversed = false) {
      stride.assign(shape.size(), 1);
      int64_t step = 1;
      for (size_t i = 0; i < shape.size(); ++i) {
        const size_t dim = reversed ? i : shape.size() - 1 - i;
        stride[dim] = step;
        step = step * std::max<int64_t>(shape[dim], 1) + gap;
      }
      reserve();
    }

    void reserve() {
      int64_t last = 0;
      for (size_t d = 0; d < shape.size(); ++d) {
        last += std::max<int64_t>(shape[d] - 1, 0) * stride[d];
      }
      memory.assign(static_cast<size_t>(last + 1) * dtype_bytes(dtype) + 2 * kGuard, kFill);
    }

    // Address of a logical row-major index.
    uint8_t* at(int64_t index) {
      int64_t offset = 0;
      for (size_t d = shape.size(); d-- > 0;) {
        offset += index % shape[d] * stride[d];
        index /= shape[d];
      }
      return memory.data() + kGuard + static_cast<size_t>(offset) * dtype_bytes(dtype);
    }

    template <class T>
    void put(int64_t index, T value) {
      std::memcpy(at(index), &value, sizeof(T));
    }
    template <class T>
    T get(int64_t index) {
      T value;
      std::memcpy(&value, at(index), sizeof(T));
      return value;
    }

    // Element as a number, whatever the dtype.
    double number(int64_t index) {
      switch (dtype) {
        case FUSEDIFF_F64:
          return get<double>(index);
        case FUSEDIFF_F32:
          return static_cast<double>(get<float>(index));
        case FUSEDIFF_F16:
          return static_cast<double>(decode(get<Half>(index)));
        case FUSEDIFF_BF16:
          return static_cast<double>(decode(get<BFloat16>(index)));
        case FUSEDIFF_F8E4M3FN:
          return static_cast<double>(decode(get<F8E4M3>(index)));
        case FUSEDIFF_F8E5M2:
          return static_cast<double>(decode(get<F8E5M2>(index)));
        case FUSEDIFF_I64:
          return static_cast<double>(get<int64_t>(index));
        case FUSEDIFF_I32:
          return get<int32_t>(index);
        case FUSEDIFF_I16:
          return get<int16_t>(index);
        case FUSEDIFF_I8:
          return get<int8_t>(index);
        default:
          return get<uint8_t>(index);
      }
    }

    void put_number(int64_t index, double value) {
      switch (dtype) {
        case FUSEDIFF_F64:
          return put(index, value);
        case FUSEDIFF_F32:
          return put(index, static_cast<float>(value));
        case FUSEDIFF_F16:
          return put(index, encode<Half>(value));
        case FUSEDIFF_BF16:
          return put(index, encode<BFloat16>(value));
        case FUSEDIFF_F8E4M3FN:
          return put(index, encode<F8E4M3>(value));
        case FUSEDIFF_F8E5M2:
          return put(index, encode<F8E5M2>(value));
        case FUSEDIFF_I64:
          return put(index, static_cast<int64_t>(value));
        case FUSEDIFF_I32:
          return put(index, static_cast<int32_t>(value));
        case FUSEDIFF_I16:
          return put(index, static_cast<int16_t>(value));
        case FUSEDIFF_I8:
          return put(index, static_cast<int8_t>(value));
        default:
          return put(index, static_cast<uint8_t>(value));
      }
    }

    // Bits of an element, NaN of every payload and sign made one.
    uint64_t bits(int64_t index) {
      const double value = dtype <= FUSEDIFF_F8E5M2 ? number(index) : 0;
      uint64_t all = value != value ? ~uint64_t{0} : 0;
      if (all == 0) {
        std::memcpy(&all, at(index), dtype_bytes(dtype));
      }
      return all;
    }
  };

  // The tensors and attributes of a call; references to tensors stay valid.
  class Rig {
   public:
    explicit Rig(std::string op) : op_(std::move(op)) {}

    RigTensor& input(std::string name, int32_t dtype, std::vector<int64_t> shape) {
      return add(inputs_, std::move(name), dtype, std::move(shape));
    }
    RigTensor& output(std::string name, int32_t dtype, std::vector<int64_t> shape) {
      return add(outputs_, std::move(name), dtype, std::move(shape));
    }
    RigTensor& input(const std::string& name) { return find(inputs_, name); }
    RigTensor& output(const std::string& name) { return find(outputs_, name); }
    std::deque<RigTensor>& inputs() { return inputs_; }
    std::deque<RigTensor>& outputs() { return outputs_; }

    void integer(std::string name, int64_t value) { attrs_.push_back({std::move(name), FUSEDIFF_INT, value, 0, ""}); }
    void real(std::string name, double value) { attrs_.push_back({std::move(name), FUSEDIFF_FLOAT, 0, value, ""}); }
    void text(std::string name, std::string value) {
      attrs_.push_back({std::move(name), FUSEDIFF_STRING, 0, 0, std::move(value)});
    }

    // Runs a path of `target` on a fresh context. Afterwards error() and damage() say what went wrong; "" is nothing.
    fusediff_status run(const fusediff_target_v1& target, const std::string& path) {
      error_.clear();
      damage_.clear();
      for (RigTensor& out : outputs_) {
        std::fill(out.memory.begin(), out.memory.end(), RigTensor::kFill);
      }
      std::vector<std::vector<uint8_t>> before;
      for (const RigTensor& in : inputs_) {
        before.push_back(in.memory);
      }
      const fusediff_status status = call(target, path);
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (inputs_[i].memory != before[i]) {
          damage_ += "input " + inputs_[i].name + " changed; ";
        }
      }
      for (RigTensor& out : outputs_) {
        check_gaps(out);
      }
      return status;
    }

    const std::string& error() const { return error_; }
    const std::string& damage() const { return damage_; }

   private:
    struct Attr {
      std::string name;
      int32_t kind;
      int64_t i;
      double f;
      std::string s;
    };

    static RigTensor& add(std::deque<RigTensor>& to, std::string name, int32_t dtype, std::vector<int64_t> shape) {
      RigTensor& made = to.emplace_back();
      made.name = std::move(name);
      made.dtype = dtype;
      made.shape = std::move(shape);
      made.lay_out();
      return made;
    }

    static RigTensor& find(std::deque<RigTensor>& in, const std::string& name) {
      return *std::find_if(in.begin(), in.end(), [&](const RigTensor& one) { return one.name == name; });
    }

    static std::vector<fusediff_tensor> raw(std::deque<RigTensor>& tensors) {
      std::vector<fusediff_tensor> out;
      for (RigTensor& t : tensors) {
        void* data = t.absent || t.count() == 0 ? nullptr : t.memory.data() + RigTensor::kGuard;
        out.push_back(
            {t.name.c_str(), t.shape.data(), t.stride.data(), data, static_cast<int32_t>(t.shape.size()), t.dtype});
      }
      return out;
    }

    fusediff_status call(const fusediff_target_v1& target, const std::string& path) {
      std::vector<fusediff_attr> attrs;
      for (const Attr& a : attrs_) {
        attrs.push_back({a.name.c_str(), a.kind, a.i, a.f, a.s.c_str()});
      }
      const std::vector<fusediff_tensor> in = raw(inputs_);
      const std::vector<fusediff_tensor> out = raw(outputs_);
      fusediff_call c{};
      c.struct_size = sizeof(c);
      c.op = op_.c_str();
      c.path = path.c_str();
      c.attrs = attrs.data();
      c.attr_count = attrs.size();
      c.inputs = in.data();
      c.input_count = in.size();
      c.outputs = out.data();
      c.output_count = out.size();
      void* context = nullptr;
      fusediff_status status = target.open("", &context);
      size_t bytes = 0;
      if (status == FUSEDIFF_OK) {
        status = target.workspace_bytes(context, &c, &bytes);
      }
      if (status == FUSEDIFF_OK) {
        // Exactly as much as was asked for, aligned to 64 bytes, behind it a guard.
        std::vector<uint8_t> memory(bytes + 128, 0x40);
        const size_t from = 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
        std::fill(memory.begin() + static_cast<int64_t>(from + bytes), memory.end(), RigTensor::kFill);
        c.workspace = memory.data() + from;
        c.workspace_size = bytes;
        status = target.run(context, &c);
        if (!std::all_of(memory.begin() + static_cast<int64_t>(from + bytes), memory.end(),
                         [](uint8_t b) { return b == RigTensor::kFill; })) {
          damage_ += "wrote behind the workspace; ";
        }
      }
      if (status != FUSEDIFF_OK) {
        error_ = target.last_error();
      }
      target.close(context);
      return status;
    }

    void check_gaps(RigTensor& out) {
      std::vector<uint8_t> rest = out.memory;
      const size_t size = dtype_bytes(out.dtype);
      for (int64_t i = 0; i < out.count() && !out.absent; ++i) {
        std::fill_n(rest.begin() + (out.at(i) - out.memory.data()), size, RigTensor::kFill);
      }
      if (!std::all_of(rest.begin(), rest.end(), [](uint8_t b) { return b == RigTensor::kFill; })) {
        damage_ += "wrote outside the elements of " + out.name + "; ";
      }
    }

    std::string op_;
    std::deque<RigTensor> inputs_;
    std::deque<RigTensor> outputs_;
    std::deque<Attr> attrs_;
    std::string error_;
    std::string damage_;
  };

  // A random layout: dense, gaps between rows, transposed, and for inputs one dimension repeated by stride 0.
  inline void random_layout(RigTensor & tensor, std::mt19937_64 & random, bool is_input) {
    const uint64_t kind = random() % 5;
    tensor.lay_out(kind >= 2 ? static_cast<int64_t>(random() % 9) : 0, kind == 3);
    if (kind == 4 && is_input && !tensor.shape.empty()) {
      tensor.stride[random() % tensor.shape.size()] = 0;
      tensor.reserve();
    }
  }

  // Values that matter: mostly ordinary, some from a coarse grid (ties), some special. `tame` leaves out NaN and
  // infinity.
  inline void random_values(RigTensor & tensor, std::mt19937_64 & random, double scale, bool tame) {
    std::normal_distribution<double> normal(0, scale);
    const bool grid = random() % 4 == 0;
    const double special[] = {
        0.0, -0.0, 1e-40, -3e-39, 88.8, -104.0, 1.0, 6e-8, __builtin_inf(), -__builtin_inf(), __builtin_nan("")};
    const uint64_t odds = random() % 3 == 0 ? 6 : 100000;
    for (int64_t i = 0; i < tensor.count(); ++i) {
      double value = grid ? static_cast<double>(static_cast<int64_t>(random() % 7) - 3) / 2 : normal(random);
      if (random() % odds == 0) {
        value = special[random() % (tame ? 8 : 11)];
      }
      tensor.put_number(i, value);
    }
  }

}  // namespace )
}  // namespace fusediff
