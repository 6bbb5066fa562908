// The target `cuda` itself: what it says without a device, and with one the same calls as emulated_test.cpp.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "cuda/operator_rigs.h"
#include "cuda/same_as_builtin.h"

namespace fusediff::cuda {
namespace {

#if !defined(FUSEDIFF_CUDA_TARGET)

TEST(DeviceTest, IsNotBuilt) { GTEST_SKIP() << "the target cuda is not built: no nvcc"; }

#else

const fusediff_target_v1& device() {
  static const fusediff_target_v1* const target = load_target(FUSEDIFF_CUDA_TARGET);
  return *target;
}

// Why no context opens; "" where one does.
std::string no_device() {
  void* context = nullptr;
  if (device().open("", &context) != FUSEDIFF_OK) {
    return device().last_error();
  }
  device().close(context);
  return "";
}

TEST(DeviceTest, LoadsWithoutADriverAndDescribesItsOperators) {
  const std::string schema = device().schema();
  for (const char* op : kOperators) {
    EXPECT_NE(schema.find('"' + std::string(op) + '"'), std::string::npos) << op;
  }
  EXPECT_TRUE(device().alloc != nullptr && device().release != nullptr);
  EXPECT_TRUE(device().write != nullptr && device().read != nullptr);
}

TEST(DeviceTest, AMissingDeviceIsOneLine) {
  const std::string why = no_device();
  if (!why.empty()) {
    EXPECT_EQ(why.rfind("no CUDA device: ", 0), 0u) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
}

TEST(DeviceTest, WrongOptionsAreRejectedWithWhatWouldBeRight) {
  for (const char* options : {"stram=shared", "stream=own", "device=one", "device=-1", "shared"}) {
    void* context = nullptr;
    EXPECT_EQ(device().open(options, &context), FUSEDIFF_REJECTED) << options;
    EXPECT_NE(std::string(device().last_error()).find("option"), std::string::npos) << device().last_error();
  }
}

// Elements from the first to the last that a tensor has, gaps included.
size_t extent(const fusediff_tensor& tensor) {
  int64_t last = 0;
  for (int32_t d = 0; d < tensor.rank; ++d) {
    last += (tensor.shape[d] - 1) * tensor.stride[d];
  }
  return static_cast<size_t>(last + 1) * kit::dtype_bytes(tensor.dtype);
}

// Tensors of host memory, moved to the device, and back after the run.
class Moved {
 public:
  explicit Moved(void* context) : context_(context) {}
  ~Moved() {
    for (void* memory : memory_) {
      device().release(context_, memory);
    }
  }

  void* send(const void* host, size_t bytes) {
    memory_.push_back(device().alloc(context_, bytes));
    EXPECT_NE(memory_.back(), nullptr) << device().last_error();
    EXPECT_EQ(device().write(context_, memory_.back(), host, bytes), FUSEDIFF_OK) << device().last_error();
    return memory_.back();
  }

  std::vector<fusediff_tensor> send(const fusediff_tensor* tensors, size_t count) {
    std::vector<fusediff_tensor> sent(tensors, tensors + count);
    for (fusediff_tensor& tensor : sent) {
      tensor.data = tensor.data == nullptr ? nullptr : send(tensor.data, extent(tensor));
    }
    return sent;
  }

 private:
  void* context_;
  std::vector<void*> memory_;
};

fusediff_status run_moved(void* context, const fusediff_call* call) {
  Moved moved(context);
  const std::vector<fusediff_tensor> inputs = moved.send(call->inputs, call->input_count);
  const std::vector<fusediff_tensor> outputs = moved.send(call->outputs, call->output_count);
  fusediff_call sent = *call;
  sent.inputs = inputs.data();
  sent.outputs = outputs.data();
  sent.workspace = call->workspace_size == 0 ? nullptr : moved.send(call->workspace, call->workspace_size);
  const fusediff_status status = device().run(context, &sent);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data != nullptr) {
      device().read(context, call->outputs[i].data, outputs[i].data, extent(outputs[i]));
    }
  }
  return status;
}

class DeviceOperatorTest : public testing::TestWithParam<const char*> {};

TEST_P(DeviceOperatorTest, IsTheBuiltInOperatorOnTheDevice) {
  if (const std::string why = no_device(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  fusediff_target_v1 target = device();
  target.run = run_moved;
  const std::string op = GetParam();
  std::mt19937_64 random(72);
  for (int i = 0; i < 60; ++i) {
    kit::Rig rig = random_call(random, op);
    ASSERT_TRUE(same_as_builtin(rig, target, op == "moe_permute")) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, DeviceOperatorTest, testing::ValuesIn(kOperators),
                         [](const auto& test) { return std::string(test.param); });

#endif

}  // namespace
}  // namespace fusediff::cuda
