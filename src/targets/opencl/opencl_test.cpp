// The target itself, on whatever OpenCL device there is; without one these tests are skipped.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fusediff_target.h"

namespace {

constexpr uint8_t kGuard = 0x3e;

// The examples, read from the source tree; before anything asks for a schema.
const int kDescriptionIsSet =
    ::setenv("FUSEDIFF_OPENCL_OPS", FUSEDIFF_SOURCE_DIR "/src/targets/opencl/examples.json", 1);

const fusediff_target_v1& target() { return *fusediff_target(); }

struct Given {
  std::string name;
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;  // dense elements
};

template <class T>
Given given(std::string name, int32_t dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  Given made{std::move(name), dtype, std::move(shape), std::vector<uint8_t>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

template <class T>
std::vector<T> values(const Given& of) {
  std::vector<T> made(of.bytes.size() / sizeof(T));
  if (!made.empty()) std::memcpy(made.data(), of.bytes.data(), of.bytes.size());
  return made;
}

// A context that closes itself. A test that needs a device asks for it first.
class ContextOf {
 public:
  explicit ContextOf(const char* options) { status_ = target().open(options, &context_); }
  ContextOf(const ContextOf&) = delete;
  ContextOf& operator=(const ContextOf&) = delete;
  ~ContextOf() {
    if (status_ == FUSEDIFF_OK) target().close(context_);
  }
  void* get() const { return context_; }
  fusediff_status status() const { return status_; }

 private:
  void* context_ = nullptr;
  fusediff_status status_ = FUSEDIFF_FAILED;
};

// A block of the target's memory with guard bytes around a tensor that begins at `offset`.
class Placed {
 public:
  Placed(void* context, const Given& of, size_t offset) : context_(context), size_(of.bytes.size()), offset_(offset) {
    image_.assign(offset + size_ + 4096, kGuard);
    if (size_ != 0) std::memcpy(image_.data() + offset, of.bytes.data(), size_);
    block_ = target().alloc(context, image_.size());
    EXPECT_NE(block_, nullptr) << target().last_error();
    EXPECT_EQ(target().write(context, block_, image_.data(), image_.size()), FUSEDIFF_OK) << target().last_error();
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;
  ~Placed() { target().release(context_, block_); }

  void* data() const { return size_ == 0 ? nullptr : static_cast<char*>(block_) + offset_; }

  // The elements now; everything around them must be as it was.
  std::vector<uint8_t> bytes() {
    std::vector<uint8_t> now(image_.size());
    EXPECT_EQ(target().read(context_, now.data(), block_, now.size()), FUSEDIFF_OK) << target().last_error();
    for (size_t i = 0; i < now.size(); ++i) {
      if (i < offset_ || i >= offset_ + size_) {
        EXPECT_EQ(now[i], kGuard) << i;
      }
    }
    return {now.begin() + static_cast<int64_t>(offset_), now.begin() + static_cast<int64_t>(offset_ + size_)};
  }

 private:
  void* context_;
  size_t size_;
  size_t offset_;
  std::vector<uint8_t> image_;
  void* block_;
};

struct Call {
  std::string op;
  std::string path;
  std::vector<Given> inputs;
  std::vector<Given> outputs;
  int64_t k = -1;  // the attribute k, or none
};

std::vector<int64_t> dense_stride(const std::vector<int64_t>& shape) {
  std::vector<int64_t> stride(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * shape[i];
  return stride;
}

// Runs the call with every tensor at `offset` bytes in its block; fills the outputs.
fusediff_status run(void* context, Call& call, size_t offset = 4) {
  std::vector<std::unique_ptr<Placed>> placed;
  std::vector<std::vector<int64_t>> strides;
  std::vector<fusediff_tensor> tensors;
  for (auto* side : {&call.inputs, &call.outputs}) {
    for (const Given& one : *side) {
      placed.push_back(std::make_unique<Placed>(context, one, offset));
      strides.push_back(dense_stride(one.shape));
      tensors.push_back({one.name.c_str(), one.shape.data(), strides.back().data(), placed.back()->data(),
                         static_cast<int32_t>(one.shape.size()), one.dtype});
    }
  }
  const fusediff_attr k{"k", FUSEDIFF_INT, call.k, 0, nullptr};
  fusediff_call raw{};
  raw.struct_size = sizeof(raw);
  raw.op = call.op.c_str();
  raw.path = call.path.c_str();
  raw.attrs = &k;
  raw.attr_count = call.k >= 0 ? 1 : 0;
  raw.inputs = tensors.data();
  raw.input_count = call.inputs.size();
  raw.outputs = tensors.data() + call.inputs.size();
  raw.output_count = call.outputs.size();
  size_t workspace = 0;
  fusediff_status status = target().workspace_bytes(context, &raw, &workspace);
  if (status != FUSEDIFF_OK) return status;
  Placed room(context, {"", FUSEDIFF_U8, {}, std::vector<uint8_t>(workspace)}, 64);
  raw.workspace = room.data();
  raw.workspace_size = workspace;
  status = target().run(context, &raw);
  for (size_t i = 0; i < placed.size(); ++i) {
    const bool is_output = i >= call.inputs.size();
    Given& of = is_output ? call.outputs[i - call.inputs.size()] : call.inputs[i];
    const std::vector<uint8_t> now = placed[i]->bytes();
    if (!is_output) {
      EXPECT_EQ(now, of.bytes) << of.name;
    }
    of.bytes = now;
  }
  room.bytes();
  return status;
}

Call mul_add(const std::string& path, size_t count, float seed) {
  std::vector<float> a(count), b(count), c(count);
  for (size_t i = 0; i < count; ++i) {
    a[i] = std::sin(seed + static_cast<float>(i));
    b[i] = std::cos(seed * 3 + static_cast<float>(i));
    c[i] = -a[i] * b[i] * (i % 3 == 0 ? 1.0f : 0.5f);
  }
  const std::vector<int64_t> shape{static_cast<int64_t>(count)};
  return {"mul_add",
          path,
          {given("a", FUSEDIFF_F32, shape, a), given("b", FUSEDIFF_F32, shape, b), given("c", FUSEDIFF_F32, shape, c)},
          {given("y", FUSEDIFF_F32, shape, std::vector<float>(count))}};
}

class OpenClTest : public testing::Test {
 protected:
  void SetUp() override {
    const ContextOf context("");
    if (context.status() == FUSEDIFF_OK) return;
    ASSERT_NE(std::string(target().last_error()).find("no OpenCL device"), std::string::npos) << target().last_error();
    GTEST_SKIP() << target().last_error();
  }
};

TEST_F(OpenClTest, WithoutContractionOneKernelAndTwoGiveTheSameBits) {
  for (const char* options : {"contract=off", "contract=off,memory=buffer"}) {
    for (const size_t offset : {0u, 4u, 12u, 128u, 132u}) {
      const ContextOf context(options);
      ASSERT_EQ(context.status(), FUSEDIFF_OK) << target().last_error();
      Call fused = mul_add("fused", 1000, 1);
      Call unfused = mul_add("unfused", 1000, 1);
      ASSERT_EQ(run(context.get(), fused, offset), FUSEDIFF_OK) << target().last_error();
      ASSERT_EQ(run(context.get(), unfused, offset), FUSEDIFF_OK) << target().last_error();
      const auto a = values<float>(unfused.inputs[0]), b = values<float>(unfused.inputs[1]),
                 c = values<float>(unfused.inputs[2]), y = values<float>(unfused.outputs[0]);
      for (size_t i = 0; i < y.size(); ++i) {
        const float product = a[i] * b[i];
        EXPECT_EQ(y[i], product + c[i]) << options << " " << offset << " " << i;
      }
      EXPECT_EQ(fused.outputs[0].bytes, unfused.outputs[0].bytes) << options << " " << offset;
    }
  }
}

TEST_F(OpenClTest, AContractedSumIsTheExactOneRounded) {
  const ContextOf context("");
  Call fused = mul_add("fused", 1000, 1);
  ASSERT_EQ(run(context.get(), fused), FUSEDIFF_OK) << target().last_error();
  const auto a = values<float>(fused.inputs[0]), b = values<float>(fused.inputs[1]), c = values<float>(fused.inputs[2]),
             y = values<float>(fused.outputs[0]);
  for (size_t i = 0; i < y.size(); ++i) {
    const float product = a[i] * b[i];
    EXPECT_TRUE(y[i] == std::fma(a[i], b[i], c[i]) || y[i] == product + c[i]) << i;
  }
}

TEST_F(OpenClTest, TopkOrdersNanLastAndTiesByIndex) {
  const float nan = std::nanf("");
  for (const char* path : {"fused", "unfused"}) {
    for (const char* options : {"", "memory=buffer,queue=per_thread"}) {
      const ContextOf context(options);
      Call call{"topk",
                path,
                {given<float>("x", FUSEDIFF_F32, {2, 5}, {1, nan, 3, 3, -INFINITY, nan, nan, -0.0f, 0, nan})},
                {given<float>("values", FUSEDIFF_F32, {2, 4}, std::vector<float>(8)),
                 given<int32_t>("indices", FUSEDIFF_I32, {2, 4}, std::vector<int32_t>(8))},
                4};
      ASSERT_EQ(run(context.get(), call), FUSEDIFF_OK) << target().last_error();
      EXPECT_EQ(values<int32_t>(call.outputs[1]), (std::vector<int32_t>{2, 3, 0, 4, 2, 3, 0, 1})) << path;
      EXPECT_TRUE(std::signbit(values<float>(call.outputs[0])[4]));
    }
  }
}

TEST_F(OpenClTest, EmptyTensorsLaunchNothing) {
  const ContextOf context("");
  for (const char* path : {"fused", "unfused"}) {
    Call call = mul_add(path, 0, 1);
    EXPECT_EQ(run(context.get(), call), FUSEDIFF_OK) << target().last_error();
  }
}

TEST_F(OpenClTest, ThreadsOnOneContextGiveWhatOneGives) {
  for (const char* options : {"", "queue=per_thread", "memory=buffer"}) {
    const ContextOf context(options);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const auto seed = static_cast<float>(t + 1);
        Call alone = mul_add("unfused", 700, seed);
        ASSERT_EQ(run(context.get(), alone), FUSEDIFF_OK) << target().last_error();
        for (int round = 0; round < 20; ++round) {
          Call again = mul_add("unfused", 700, seed);
          ASSERT_EQ(run(context.get(), again), FUSEDIFF_OK) << target().last_error();
          ASSERT_EQ(again.outputs[0].bytes, alone.outputs[0].bytes) << options;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(OpenClTest, WhatIsNotOfferedIsSaid) {
  const ContextOf context("");
  Call call = mul_add("best", 3, 1);
  EXPECT_EQ(run(context.get(), call), FUSEDIFF_UNSUPPORTED);
  EXPECT_STREQ(target().last_error(), "operator mul_add has no path best");
  call.op = "mul_mul";
  EXPECT_EQ(run(context.get(), call), FUSEDIFF_UNSUPPORTED);
  EXPECT_STREQ(target().last_error(), "no operator mul_mul");
  EXPECT_EQ(ContextOf("device=99").status(), FUSEDIFF_FAILED);
  EXPECT_NE(std::string(target().last_error()).find("no OpenCL device: platform 0 has no device 99"),
            std::string::npos);
  EXPECT_EQ(ContextOf("turbo=1").status(), FUSEDIFF_REJECTED);
}

TEST_F(OpenClTest, KernelsThatDoNotCompileAreNamed) {
  const std::string file = testing::TempDir() + "fusediff_opencl_broken.cl";
  std::ofstream(file) << "__kernel void mul_add(__global float* y) { y[0] = nothing; }\n";
  const ContextOf context(("kernels=" + file).c_str());
  Call call = mul_add("fused", 3, 1);
  EXPECT_EQ(run(context.get(), call), FUSEDIFF_FAILED);
  const std::string error = target().last_error();
  EXPECT_NE(error.find(file + " does not compile: "), std::string::npos) << error;
  EXPECT_NE(error.find("nothing"), std::string::npos) << error;
  std::ofstream(file) << "__kernel void other(__global float* y) { y[0] = 1; }\n";
  EXPECT_EQ(run(context.get(), call), FUSEDIFF_FAILED);
  EXPECT_STREQ(target().last_error(), "the kernels have none named mul_add");
}

}  // namespace
