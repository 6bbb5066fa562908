// See plan.h.
#include "onednn/plan.h"

#include <algorithm>
#include <unordered_map>

namespace fusediff::onednn {
namespace {

using namespace kit;

constexpr size_t kNone = static_cast<size_t>(-1);

size_t index_of(const fusediff_tensor* tensors, size_t count, std::string_view name) {
  for (size_t i = 0; i < count; ++i) {
    if (name == tensors[i].name) {
      return i;
    }
  }
  return kNone;
}

Operand operand(Operand::Place place, const fusediff_tensor* tensors, size_t count, std::string_view name) {
  const size_t index = index_of(tensors, count, name);
  require(index != kNone, "the call has no tensor ", name);
  const Tensor tensor(tensors[index]);
  Dims dims;
  int64_t dense = 1;
  for (int d = tensor.rank(); d-- > 0;) {
    dims.insert(dims.begin(), tensor.size(d));
    require(tensor.stride(d) == dense || tensor.size(d) <= 1 || tensor.count() == 0, name, " must be dense");
    dense *= tensor.size(d);
  }
  return Operand{place, index, memory::desc({std::max<int64_t>(tensor.count(), 0)}, type_of(tensor), {1})}.as(dims);
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

Type type_of(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case FUSEDIFF_F32:
      return Type::f32;
    case FUSEDIFF_BF16:
      return Type::bf16;
    case FUSEDIFF_F16:
      return Type::f16;
    case FUSEDIFF_I32:
      return Type::s32;
    case FUSEDIFF_I8:
      return Type::s8;
    case FUSEDIFF_U8:
      return Type::u8;
    default:
      unsupported(tensor.name(), " is ", dtype_name(tensor.dtype()), ", which oneDNN does not have");
  }
}

Operand Operand::as(const Dims& dims) const {
  Dims strides(dims.size());
  int64_t dense = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = dense;
    dense *= std::max<int64_t>(dims[d], 1);
  }
  return {place, index, memory::desc(dims, desc.data_type(), strides)};
}

Operand Plan::input(const Call& call, std::string_view name) const {
  return operand(Operand::Place::kInput, call.raw().inputs, call.raw().input_count, name);
}

Operand Plan::output(const Call& call, std::string_view name) const {
  return operand(Operand::Place::kOutput, call.raw().outputs, call.raw().output_count, name);
}

Operand Plan::between(const Dims& dims, Type type) {
  const Operand made = Operand{Operand::Place::kBetween, between_.size(), memory::desc({1}, type, Dims{1})}.as(dims);
  between_.push_back(made.desc);
  return made;
}

dnnl::primitive_attr Plan::attributes(const dnnl::post_ops& post_ops) const {
  dnnl::primitive_attr made;
  made.set_scratchpad_mode(options_.user_scratchpad ? dnnl::scratchpad_mode::user : dnnl::scratchpad_mode::library);
  made.set_post_ops(post_ops);
  return made;
}

void Plan::add(const dnnl::primitive_desc_base& description, std::vector<Argument> arguments) {
  const memory::desc scratchpad = description.scratchpad_desc();
  scratchpad_bytes_ = std::max(scratchpad_bytes_, scratchpad.get_size());
  implementations_ += implementations_.empty() ? "" : "; ";
  implementations_ += description.impl_info_str();
  steps_.push_back({dnnl::primitive(description.get()), scratchpad, std::move(arguments)});
}

size_t Plan::workspace_bytes() const {
  Carver carver;
  for (const memory::desc& desc : between_) {
    carver.take<std::byte>(static_cast<int64_t>(desc.get_size()));
  }
  carver.take<std::byte>(static_cast<int64_t>(scratchpad_bytes_));
  return carver.bytes();
}

void Plan::execute(const Call& call) const {
  Carver carver = call.workspace();
  std::vector<void*> between;
  for (const memory::desc& desc : between_) {
    between.push_back(carver.take<std::byte>(static_cast<int64_t>(desc.get_size())));
  }
  void* const scratchpad = carver.take<std::byte>(static_cast<int64_t>(scratchpad_bytes_));
  const auto address = [&](const Operand& operand) -> void* {
    switch (operand.place) {
      case Operand::Place::kInput:
        return call.raw().inputs[operand.index].data;
      case Operand::Place::kOutput:
        return call.raw().outputs[operand.index].data;
      default:
        return between[operand.index];
    }
  };
  dnnl::stream stream(engine());
  for (const Step& step : steps_) {
    std::unordered_map<int, memory> arguments;
    for (const Argument& argument : step.arguments) {
      arguments.emplace(argument.name, memory(argument.operand.desc, engine(), address(argument.operand)));
    }
    if (step.scratchpad.get_size() != 0) {
      arguments.emplace(DNNL_ARG_SCRATCHPAD, memory(step.scratchpad, engine(), scratchpad));
    }
    step.primitive.execute(stream, arguments);
  }
  stream.wait();
}

}  // namespace fusediff::onednn
