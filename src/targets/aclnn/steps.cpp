// Tensors, temporaries and the two stages of each operator.
#include "aclnn/steps.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace fusediff::aclnn {
namespace {

// aclrtMalloc aligns to less or as much; operators of the library may count on it.
constexpr size_t kAlignment = 512;

// Where temporaries lie while only sizes are asked for: never read or written.
constexpr uintptr_t kNowhere = kAlignment;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t count_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> stride(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    stride[d - 1] = stride[d] * shape[d];
  }
  return stride;
}

std::vector<int64_t> shape_of(const kit::Tensor& tensor) {
  std::vector<int64_t> shape;
  for (int d = 0; d < tensor.rank(); ++d) {
    shape.push_back(tensor.size(d));
  }
  return shape;
}

std::vector<int64_t> strides_of(const kit::Tensor& tensor) {
  std::vector<int64_t> stride;
  for (int d = 0; d < tensor.rank(); ++d) {
    stride.push_back(tensor.stride(d));
  }
  return stride;
}

bool is_dense(const kit::Tensor& tensor) {
  int64_t step = 1;
  for (int d = tensor.rank(); d-- > 0;) {
    if (tensor.size(d) > 1 && tensor.stride(d) != step) {
      return false;
    }
    step *= tensor.size(d);
  }
  return true;
}

}  // namespace

int type_of(const kit::Tensor& tensor) {
  switch (tensor.dtype()) {
    case FUSEDIFF_F32:
      return kFloat;
    case FUSEDIFF_F16:
      return kFloat16;
    case FUSEDIFF_BF16:
      return kBfloat16;
    case FUSEDIFF_I32:
      return kInt32;
    default:
      kit::unsupported(tensor.name(), " is ", kit::dtype_name(tensor.dtype()), ", which these operators do not offer");
  }
}

Steps::Steps(const kit::Call& call, Mode mode)
    : call_(call), device_(call.context<Device>()), library_(device_.library()), mode_(mode) {
  device_.bind();
  stream_ = device_.stream();
}

Steps::~Steps() {
  if (queued_) {
    library_.synchronize_stream(stream_);
  }
  for (const aclTensor* tensor : tensors_) {
    library_.destroy_tensor(tensor);
  }
  for (const aclScalar* scalar : scalars_) {
    library_.destroy_scalar(scalar);
  }
  for (const aclIntArray* array : arrays_) {
    library_.destroy_int_array(array);
  }
}

aclTensor* Steps::create(const std::vector<int64_t>& shape, const std::vector<int64_t>& stride, int type, void* data) {
  // The storage of a dense tensor has its shape; that of any other is what its elements span.
  std::vector<int64_t> storage = shape;
  if (count_of(shape) > 0 && stride != dense_strides(shape)) {
    int64_t last = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      last += (shape[d] - 1) * stride[d];
    }
    storage = {last + 1};
  }
  aclTensor* made = library_.create_tensor(shape.data(), shape.size(), type, stride.data(), 0, kFormatNd,
                                           storage.data(), storage.size(), data);
  if (made == nullptr) {
    kit::fail("aclCreateTensor returned nothing: ", library_.recent_message());
  }
  tensors_.push_back(made);
  return made;
}

Value Steps::whole(const kit::Tensor& tensor) {
  if (!tensor.present() && tensor.count() > 0) {
    return {nullptr, nullptr, type_of(tensor), shape_of(tensor)};
  }
  const std::vector<int64_t> shape = shape_of(tensor);
  aclTensor* handle =
      create(shape, is_dense(tensor) ? dense_strides(shape) : strides_of(tensor), type_of(tensor), tensor.data());
  return {handle, tensor.data(), type_of(tensor), shape};
}

Value Steps::input(std::string_view name) { return whole(call_.input(name)); }

Value Steps::output(std::string_view name, const std::vector<int64_t>& shape) {
  const kit::Tensor tensor = call_.output(name);
  const Value there = whole(tensor);
  if (there.handle == nullptr) {
    return there;
  }
  if (is_dense(tensor)) {
    return shape.empty() ? there : view(there, shape);
  }
  const Value made = temporary(there.type, there.shape);
  copies_.push_back({there, made});
  return shape.empty() ? made : view(made, shape);
}

Value Steps::output_or_temporary(std::string_view name, const std::vector<int64_t>& shape) {
  const Value there = output(name, shape);
  return there.handle != nullptr ? there : temporary(there.type, shape.empty() ? there.shape : shape);
}

Value Steps::temporary(int type, const std::vector<int64_t>& shape) {
  const uintptr_t front = mode_ == Mode::kRun ? aligned(reinterpret_cast<uintptr_t>(call_.raw().workspace)) : kNowhere;
  void* data = reinterpret_cast<void*>(front + used_);
  used_ += aligned(static_cast<size_t>(count_of(shape)) * element_bytes(type));
  if (mode_ == Mode::kRun) {
    kit::require(front + used_ <= reinterpret_cast<uintptr_t>(call_.raw().workspace) + call_.raw().workspace_size,
                 "the workspace is too small for a temporary");
  }
  return {create(shape, dense_strides(shape), type, data), data, type, shape};
}

Value Steps::view(const Value& value, const std::vector<int64_t>& shape, const std::vector<int64_t>& stride) {
  return {create(shape, stride.empty() ? dense_strides(shape) : stride, value.type, value.data), value.data, value.type,
          shape};
}

Value Steps::transposed(const kit::Tensor& tensor) {
  const std::vector<int64_t> shape{tensor.size(1), tensor.size(0)};
  const std::vector<int64_t> stride{tensor.stride(1), tensor.stride(0)};
  return {create(shape, stride, type_of(tensor), tensor.data()), tensor.data(), type_of(tensor), shape};
}

const aclScalar* Steps::scalar(float value) {
  aclScalar* made = library_.create_scalar(&value, kFloat);
  if (made == nullptr) {
    kit::fail("aclCreateScalar returned nothing: ", library_.recent_message());
  }
  scalars_.push_back(made);
  return made;
}

const aclIntArray* Steps::ints(std::initializer_list<int64_t> values) {
  aclIntArray* made = library_.create_int_array(values.begin(), values.size());
  if (made == nullptr) {
    kit::fail("aclCreateIntArray returned nothing: ", library_.recent_message());
  }
  arrays_.push_back(made);
  return made;
}

void Steps::second_stage(const std::string& name, uint64_t bytes, aclOpExecutor* executor) {
  largest_ = std::max(largest_, aligned(bytes));
  if (mode_ == Mode::kMeasure) {
    // An executor that was never run is given back as one that may be run again.
    if (library_.make_repeatable != nullptr && library_.destroy_executor != nullptr &&
        library_.make_repeatable(executor) == kSuccess) {
      library_.destroy_executor(executor);
    }
    return;
  }
  void* workspace = nullptr;
  if (bytes > 0) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(call_.raw().workspace);
    const uintptr_t end = (begin + call_.raw().workspace_size) / kAlignment * kAlignment;
    kit::require(end >= aligned(begin) + used_ + aligned(bytes), "the workspace is too small for ", name);
    workspace = reinterpret_cast<void*>(end - aligned(bytes));
  }
  const auto run = library_.function<int(void*, uint64_t, aclOpExecutor*, AclStream)>(name);
  queued_ = true;
  check(library_, run(workspace, bytes, executor, stream_), name);
}

void Steps::done() {
  for (const Copy& copy : copies_) {
    step<aclTensor*, const aclTensor*>("aclnnInplaceCopy", copy.to.handle, copy.from.handle);
  }
  if (mode_ == Mode::kRun && queued_) {
    queued_ = false;
    check(library_, library_.synchronize_stream(stream_), "aclrtSynchronizeStream");
  }
}

// Two alignments more than what is used: the front and the end of the workspace are each moved to the next one.
size_t Steps::bytes() const { return used_ + largest_ == 0 ? 0 : used_ + largest_ + 2 * kAlignment; }

}  // namespace fusediff::aclnn
