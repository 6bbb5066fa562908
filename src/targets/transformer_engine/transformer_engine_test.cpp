// The target against the emulated libraries: argument order, numbers of dtypes, lifetime of handles, errors.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "builtin/moe_permute_rig.h"
#include "kit/rig.h"

namespace fusediff::te {
namespace {

using builtin::PermuteSizes;

const std::string kData = FUSEDIFF_BIN_DIR "/testdata/";

std::string engine_file(int generation) { return kData + "te_emulated_" + std::to_string(generation) + ".so"; }

void* loaded(const std::string& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << ::dlerror();
  return library;
}

const fusediff_target_v1& target() {
  using Entry = const fusediff_target_v1* (*)();
  static const auto entry =
      reinterpret_cast<Entry>(::dlsym(loaded(FUSEDIFF_BIN_DIR "/targets/transformer_engine.so"), "fusediff_target"));
  return *entry();
}

std::string options;  // what the next contexts are opened with

// A run of host tensors in the target's memory, each of exactly its size.
fusediff_status run_moved(void* context, const fusediff_call* call) {
  std::vector<void*> memory;
  const auto bytes_of = [](const fusediff_tensor& t) {
    return static_cast<size_t>(t.shape[0] * t.shape[1]) * kit::dtype_bytes(t.dtype);
  };
  const auto send = [&](const void* host, size_t bytes) {
    memory.push_back(target().alloc(context, bytes));
    EXPECT_EQ(target().write(context, memory.back(), host, bytes), FUSEDIFF_OK);
    return memory.back();
  };
  std::vector<fusediff_tensor> inputs(call->inputs, call->inputs + call->input_count);
  std::vector<fusediff_tensor> outputs(call->outputs, call->outputs + call->output_count);
  for (std::vector<fusediff_tensor>* tensors : {&inputs, &outputs}) {
    for (fusediff_tensor& tensor : *tensors) {
      tensor.data = tensor.data == nullptr ? nullptr : send(tensor.data, bytes_of(tensor));
    }
  }
  fusediff_call sent = *call;
  sent.inputs = inputs.data();
  sent.outputs = outputs.data();
  sent.workspace = call->workspace_size == 0 ? nullptr : send(call->workspace, call->workspace_size);
  const fusediff_status status = target().run(context, &sent);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data != nullptr) {
      target().read(context, call->outputs[i].data, outputs[i].data, bytes_of(outputs[i]));
    }
  }
  for (void* one : memory) {
    target().release(context, one);
  }
  return status;
}

const fusediff_target_v1& moved_target() {
  static const fusediff_target_v1 made = [] {
    fusediff_target_v1 table = target();
    table.open = [](const char*, void** context) { return target().open(options.c_str(), context); };
    table.run = run_moved;
    return table;
  }();
  return made;
}

std::string open_error(const std::string& with) {
  void* context = nullptr;
  if (target().open(with.c_str(), &context) == FUSEDIFF_OK) {
    target().close(context);
    return "";
  }
  return target().last_error();
}

class EngineTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    options = "library=" + engine_file(GetParam()) + ",cudart=" + kData + "te_emulated_cudart.so";
  }
  void TearDown() override {
    const auto live = reinterpret_cast<int (*)()>(::dlsym(loaded(engine_file(GetParam())), "emulated_live_tensors"));
    EXPECT_EQ(live(), 0) << "handles that were not destroyed";
  }

  static void fill(kit::RigTensor& tensor, std::mt19937_64& random) {
    for (int64_t i = 0; i < tensor.count(); ++i) {
      tensor.put_number(i, static_cast<double>(random() % 17) / 8 - 1);  // few digits: sums in any dtype are exact
    }
  }
};

constexpr int32_t kDtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16, FUSEDIFF_F8E4M3FN, FUSEDIFF_F8E5M2};
constexpr PermuteSizes kSizes{7, 32, 3, 5, 17};

TEST_P(EngineTest, PermuteMovesRowsAndTheGradientSumsThem) {
  std::mt19937_64 random(81);
  for (const int32_t dtype : kDtypes) {
    const std::vector<int32_t> indices = builtin::random_indices(random, kSizes);
    const std::vector<int32_t> map = builtin::map_of(indices, kSizes);
    kit::Rig rig = builtin::permute_rig(dtype, kSizes);
    builtin::put_all(rig.input("indices"), indices);
    fill(rig.input("tokens"), random);
    ASSERT_EQ(rig.run(moved_target(), "fused"), FUSEDIFF_OK) << rig.error();
    EXPECT_EQ(rig.damage(), "");
    for (int64_t i = 0; i < kSizes.picks * kSizes.tokens; ++i) {
      const int64_t row = map[static_cast<size_t>(i)], t = i % kSizes.tokens;
      ASSERT_EQ(rig.output("row_id_map").number(i), static_cast<double>(row));
      for (int64_t h = 0; row >= 0 && h < kSizes.columns; ++h) {
        ASSERT_EQ(rig.output("out").number(row * kSizes.columns + h),
                  rig.input("tokens").number(t * kSizes.columns + h));
      }
    }
  }
}

TEST_P(EngineTest, UnpermuteSumsRowsByTheirProbabilities) {
  std::mt19937_64 random(82);
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16}) {
    for (const bool weighted : {true, false}) {
      const std::vector<int32_t> map = builtin::map_of(builtin::random_indices(random, kSizes), kSizes);
      kit::Rig rig = builtin::unpermute_rig(dtype, kSizes, false);
      kit::Rig grad = builtin::permute_grad_rig(dtype, kSizes, false);
      builtin::put_all(rig.input("row_id_map"), map);
      builtin::put_all(grad.input("row_id_map"), map);
      fill(rig.input("in"), random);
      grad.input("grad_out").memory = rig.input("in").memory;
      rig.input("probs").absent = !weighted;
      for (int64_t i = 0; i < rig.input("probs").count(); ++i) {
        rig.input("probs").put_number(i, static_cast<double>(random() % 5) / 4);
      }
      ASSERT_EQ(rig.run(moved_target(), "fused"), FUSEDIFF_OK) << rig.error();
      ASSERT_EQ(grad.run(moved_target(), "fused"), FUSEDIFF_OK) << grad.error();
      EXPECT_EQ(rig.damage() + grad.damage(), "");
      for (int64_t i = 0; i < kSizes.tokens * kSizes.columns; ++i) {
        const int64_t t = i / kSizes.columns, h = i % kSizes.columns;
        double sum = 0, plain = 0;
        for (int64_t k = 0; k < kSizes.picks; ++k) {
          const int64_t row = map[static_cast<size_t>(k * kSizes.tokens + t)];
          const double value = row < 0 ? 0 : rig.input("in").number(row * kSizes.columns + h);
          sum += value * (weighted ? rig.input("probs").number(t * kSizes.picks + k) : 1);
          plain += value;
        }
        ASSERT_EQ(rig.output("out").number(i), sum);
        ASSERT_EQ(grad.output("grad_tokens").number(i), plain);
      }
    }
  }
}

TEST_P(EngineTest, TheGradientOfUnpermuteIsWrittenWhereItIsWanted) {
  std::mt19937_64 random(83);
  for (const bool wanted : {true, false}) {
    const std::vector<int32_t> map = builtin::map_of(builtin::random_indices(random, kSizes), kSizes);
    kit::Rig rig = builtin::unpermute_grad_rig(FUSEDIFF_F32, kSizes);
    builtin::put_all(rig.input("row_id_map"), map);
    for (const char* name : {"grad_out", "in", "probs"}) {
      fill(rig.input(name), random);
    }
    rig.output("grad_probs").absent = !wanted;
    ASSERT_EQ(rig.run(moved_target(), "fused"), FUSEDIFF_OK) << rig.error();
    EXPECT_EQ(rig.damage(), "");
    for (int64_t i = 0; i < kSizes.picks * kSizes.tokens; ++i) {
      const int64_t row = map[static_cast<size_t>(i)], k = i / kSizes.tokens, t = i % kSizes.tokens;
      double dot = 0;
      for (int64_t h = 0; row >= 0 && h < kSizes.columns; ++h) {
        const double gradient = rig.input("grad_out").number(t * kSizes.columns + h);
        dot += gradient * rig.input("in").number(row * kSizes.columns + h);
        ASSERT_EQ(rig.output("grad_in").number(row * kSizes.columns + h),
                  gradient * rig.input("probs").number(t * kSizes.picks + k));
      }
      if (wanted) {
        ASSERT_EQ(rig.output("grad_probs").number(t * kSizes.picks + k), dot);
      }
    }
  }
}

TEST_P(EngineTest, WhatTheKernelsDoNotTakeIsRefusedBeforeTheyRun) {
  kit::Rig odd = builtin::permute_rig(FUSEDIFF_F32, {2, 20, 1, 2, 2});
  EXPECT_EQ(odd.run(moved_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(odd.error(), "rows must have a multiple of 16 columns, not 20");
  kit::Rig out_of_range = builtin::unpermute_rig(FUSEDIFF_F32, {2, 16, 1, 2, 2}, false);
  builtin::put_all(out_of_range.input("row_id_map"), std::vector<int32_t>{0, 2});
  EXPECT_EQ(out_of_range.run(moved_target(), "fused"), FUSEDIFF_REJECTED);
  kit::Rig wide = builtin::permute_rig(FUSEDIFF_F64, {2, 16, 1, 2, 2});
  builtin::put_all(wide.input("indices"), std::vector<int32_t>{0, 1});
  EXPECT_EQ(wide.run(moved_target(), "fused"), FUSEDIFF_UNSUPPORTED);
  kit::Rig plain = builtin::unpermute_grad_rig(FUSEDIFF_F32, {2, 16, 2, 2, 4});
  plain.input("probs").absent = true;
  EXPECT_EQ(plain.run(moved_target(), "fused"), FUSEDIFF_UNSUPPORTED);
}

INSTANTIATE_TEST_SUITE_P(Generations, EngineTest, testing::Values(1, 20, 23));

TEST(OpenTest, WhatIsMissingIsOneLine) {
  const std::string engine = "library=" + engine_file(23), runtime = ",cudart=" + kData + "te_emulated_cudart.so";
  EXPECT_EQ(open_error(engine + runtime), "");
  EXPECT_EQ(open_error("library=" + engine_file(20)), "") << "the runtime that the engine is linked with";
  EXPECT_EQ(open_error("library=/nowhere/libte.so" + runtime).rfind("no Transformer Engine: /nowhere/libte.so", 0), 0u);
  EXPECT_EQ(open_error(engine + ",cudart=/nowhere/libcudart.so").rfind("no CUDA runtime: /nowhere/libcudart.so", 0),
            0u);
  EXPECT_NE(open_error("library=" + kData + "te_emulated_cudart.so" + runtime).find("has no nvte_permute"),
            std::string::npos);
  EXPECT_NE(open_error(engine + ",cudart=" + engine_file(23)).find("has no cudaGetDeviceCount"), std::string::npos);
  EXPECT_NE(open_error(engine + runtime + ",device=1").find("there are 1 devices"), std::string::npos);
  EXPECT_NE(open_error("libary=x").find("unknown option \"libary\""), std::string::npos);
}

TEST(OpenTest, AnErrorOfTheRuntimeIsItsCallTextAndName) {
  void* context = nullptr;
  const std::string with = "library=" + engine_file(23) + ",cudart=" + kData + "te_emulated_cudart.so";
  ASSERT_EQ(target().open(with.c_str(), &context), FUSEDIFF_OK) << target().last_error();
  EXPECT_EQ(target().alloc(context, size_t{1} << 40), nullptr);
  EXPECT_STREQ(target().last_error(), "cudaMalloc: out of memory (cudaErrorMemoryAllocation)");
  target().close(context);
}

}  // namespace
}  // namespace fusediff::te
