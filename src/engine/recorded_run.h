// For tests: makes a recorded call again through the C header alone, from the recorded bytes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/recording.h"
#include "run/placement.h"
#include "run/strided.h"
#include "target/fusediff_target.h"

namespace fusediff {

using RecordedOutputs = std::map<std::string, std::vector<std::byte>>;  // dense, by name; of wanted outputs

inline const StoredTensor* find_stored(const std::vector<StoredTensor>& tensors, const std::string& name) {
  const auto at =
      std::find_if(tensors.begin(), tensors.end(), [&](const StoredTensor& tensor) { return tensor.name == name; });
  return at == tensors.end() ? nullptr : &*at;
}

// Memory of one tensor, placed as the recording says, in a window of its own.
class RecordedMemory {
 public:
  RecordedMemory(const Tensor& tensor, std::byte fill) : tensor_(tensor) {
    Placed placed;
    placed.bytes = static_cast<std::size_t>(extent(tensor)) * size_of(tensor.dtype);
    placed.align = static_cast<std::size_t>(tensor.align);
    placed.place = tensor.place;
    placed.offset = static_cast<std::size_t>(tensor.offset) * size_of(tensor.dtype);
    const std::size_t bytes = (room_for(placed) / kPage + 2) * kPage;
    window_.resize(bytes + kPage, fill);
    const auto begin = (reinterpret_cast<std::uintptr_t>(window_.data()) + kPage - 1) / kPage * kPage;
    first_ = reinterpret_cast<std::byte*>(address_in(placed, begin, begin + bytes));
    strided_.assign(tensor, /*repeats=*/true);
  }
  void put(const std::vector<std::byte>& dense) { strided_.scatter(dense.data(), first_); }
  std::vector<std::byte> get() const {
    std::vector<std::byte> dense(static_cast<std::size_t>(element_count(tensor_)) * size_of(tensor_.dtype));
    strided_.gather(first_, dense.data());
    return dense;
  }
  std::byte* first() { return first_; }

 private:
  static constexpr std::size_t kPage = 4096;
  const Tensor& tensor_;
  std::vector<std::byte> window_;
  std::byte* first_;
  Strided strided_;
};

// One call with memory of its own, ready to be run on any context.
class RecordedRun {
 public:
  RecordedRun(const RecordedCall& call, const Recording& recording, std::byte fill = std::byte{0x3F}) : call_(call) {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      if (!call.inputs[i].present) continue;
      const StoredTensor* stored = find_stored(recording.inputs, call.stored[i]);
      EXPECT_NE(stored, nullptr) << call.stored[i];
      if (stored == nullptr) continue;
      EXPECT_EQ(stored->shape, call.inputs[i].shape);
      EXPECT_EQ(stored->dtype, call.inputs[i].dtype);
      inputs_[i] = std::make_unique<RecordedMemory>(call.inputs[i], std::byte{0x3E});
      inputs_[i]->put(stored->bytes);
    }
    for (std::size_t o = 0; o < call.outputs.size(); ++o) {
      const Tensor& output = call.outputs[o];
      if (output.present && output.on < 0) outputs_[o] = std::make_unique<RecordedMemory>(output, fill);
    }
  }

  fusediff_status run(const fusediff_target_v1& abi, void* context) {
    std::vector<fusediff_attr> attrs;
    for (const CallAttr& attr : call_.attrs) attrs.push_back(view(attr));
    std::vector<fusediff_tensor> inputs, outputs;
    for (std::size_t i = 0; i < call_.inputs.size(); ++i)
      inputs.push_back(view(call_.inputs[i], inputs_.contains(i) ? inputs_[i]->first() : nullptr));
    for (std::size_t o = 0; o < call_.outputs.size(); ++o) outputs.push_back(view(call_.outputs[o], memory(o)));
    fusediff_call c{};
    c.struct_size = sizeof c;
    c.op = call_.op.c_str();
    c.path = call_.path.c_str();
    c.attrs = attrs.data();
    c.attr_count = attrs.size();
    c.inputs = inputs.data();
    c.input_count = inputs.size();
    c.outputs = outputs.data();
    c.output_count = outputs.size();
    std::size_t bytes = 0;
    if (abi.workspace_bytes != nullptr) {
      const fusediff_status status = abi.workspace_bytes(context, &c, &bytes);
      if (status != FUSEDIFF_OK) return status;
    }
    workspace_.assign(bytes + kAlign, std::byte{0x40});
    const auto at = (reinterpret_cast<std::uintptr_t>(workspace_.data()) + kAlign - 1) / kAlign * kAlign;
    c.workspace = reinterpret_cast<void*>(at);
    c.workspace_size = bytes;
    return abi.run(context, &c);
  }

  RecordedOutputs outputs() {
    RecordedOutputs all;
    for (std::size_t o = 0; o < call_.outputs.size(); ++o) {
      const Tensor& output = call_.outputs[o];
      if (!output.present) continue;
      const RecordedMemory& memory = output.on < 0 ? *outputs_[o] : *inputs_[static_cast<std::size_t>(output.on)];
      all[output.name] = memory.get();
    }
    return all;
  }

 private:
  static constexpr std::size_t kAlign = 64;

  void* memory(std::size_t o) {
    const Tensor& output = call_.outputs[o];
    if (!output.present) return nullptr;
    if (output.on >= 0) return inputs_[static_cast<std::size_t>(output.on)]->first();
    return element_count(output) == 0 ? nullptr : outputs_[o]->first();
  }
  static fusediff_tensor view(const Tensor& tensor, void* data) {
    return {tensor.name.c_str(),
            tensor.shape.data(),
            tensor.stride.data(),
            element_count(tensor) == 0 ? nullptr : data,
            static_cast<std::int32_t>(tensor.shape.size()),
            static_cast<std::int32_t>(tensor.dtype)};
  }
  static fusediff_attr view(const CallAttr& attr) {
    fusediff_attr made{};
    made.name = attr.name.c_str();
    if (const auto* integer = std::get_if<std::int64_t>(&attr.value)) {
      made.kind = FUSEDIFF_INT;
      made.i = *integer;
    } else if (const auto* real = std::get_if<double>(&attr.value)) {
      made.kind = FUSEDIFF_FLOAT;
      made.f = *real;
    } else {
      made.kind = FUSEDIFF_STRING;
      made.s = std::get<std::string>(attr.value).c_str();
    }
    return made;
  }

  const RecordedCall& call_;
  std::map<std::size_t, std::unique_ptr<RecordedMemory>> inputs_, outputs_;
  std::vector<std::byte> workspace_;
};

// The call on a fresh context. An empty map, and a failed test, where it does not succeed.
inline RecordedOutputs run_recorded(const RecordedCall& call, const Recording& recording,
                                    const fusediff_target_v1& abi) {
  void* context = nullptr;
  EXPECT_EQ(abi.open("", &context), FUSEDIFF_OK);
  RecordedRun run(call, recording);
  const fusediff_status status = run.run(abi, context);
  abi.close(context);
  EXPECT_EQ(status, FUSEDIFF_OK) << call.op << ":" << call.path;
  return status == FUSEDIFF_OK ? run.outputs() : RecordedOutputs();
}

}  // namespace fusediff
