// Faults of memory: grouped_gemm 36, aiter 5044, onnxruntime 20623, TensorRT-LLM 17951; each beside its clean twin.
#include <sys/mman.h>
#include <unistd.h>

#include "planted/loaded.h"

namespace fusediff::planted {
namespace {

using namespace kit;

Rig grouped_rig(int32_t dtype, const std::vector<int64_t>& counts, int64_t in, int64_t out) {
  int64_t tokens = 0;
  for (const int64_t count : counts) {
    tokens += count;
  }
  Rig rig("grouped_gemm_weight_grad");
  rig.input("x", dtype, {tokens, in});
  rig.input("grad_out", dtype, {tokens, out});
  RigTensor& each = rig.input("tokens_per_expert", FUSEDIFF_I64, {static_cast<int64_t>(counts.size())});
  for (size_t e = 0; e < counts.size(); ++e) {
    each.put(static_cast<int64_t>(e), counts[e]);
  }
  rig.output("grad_weight", dtype, {static_cast<int64_t>(counts.size()), in, out});
  return rig;
}

TEST(GroupedGemm36Test, TheSlabOfAnIdleExpertStaysUnwritten) {
  std::mt19937_64 random(41);
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16}) {
    Rig rig = grouped_rig(dtype, {3, 0, 2}, 5, 7);
    random_values(rig.input("x"), random, 1.0, true);
    random_values(rig.input("grad_out"), random, 1.0, true);
    EXPECT_EQ(difference(rig, "planted_grouped_gemm_36", "fused", "planted_grouped_gemm_36", "unfused"),
              "grad_weight differs in 35; ");
    EXPECT_EQ(difference(rig, "planted_grouped_gemm_36_clean", "fused", "planted_grouped_gemm_36", "unfused"), "");
    ASSERT_EQ(rig.run(*loaded("planted_grouped_gemm_36"), "fused"), FUSEDIFF_OK);
    EXPECT_EQ(*rig.output("grad_weight").at(35), RigTensor::kFill);
    Rig busy = grouped_rig(dtype, {1, 2}, 3, 4);
    EXPECT_EQ(difference(busy, "planted_grouped_gemm_36", "fused", "planted_grouped_gemm_36", "unfused"), "");
  }
}

Rig rms_rig(int32_t dtype, int64_t rows, int64_t columns) {
  Rig rig("rms_norm");
  rig.input("x", dtype, {rows, columns});
  rig.input("weight", dtype, {columns});
  rig.output("y", dtype, {rows, columns});
  rig.real("eps", 1e-6);
  return rig;
}

TEST(Aiter5044Test, TheLastRowWritesBehindTheTensor) {
  std::mt19937_64 random(42);
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16}) {
    for (int64_t columns = 1; columns <= 9; ++columns) {
      Rig rig = rms_rig(dtype, 3, columns);
      random_values(rig.input("x"), random, 1.0, true);
      random_values(rig.input("weight"), random, 1.0, true);
      const std::string broken = columns % 4 == 0 ? "" : "wrote outside the elements of y; ";
      EXPECT_EQ(difference(rig, "planted_aiter_5044", "fused", "planted_aiter_5044", "unfused"), broken) << columns;
      EXPECT_EQ(difference(rig, "planted_aiter_5044_clean", "fused", "planted_aiter_5044", "unfused"), "") << columns;
    }
  }
}

TEST(Onnxruntime20623Test, ChangesItsInputAndWritesACorrectOutput) {
  std::mt19937_64 random(43);
  for (int64_t columns = 2; columns <= 9; ++columns) {
    Rig rig("layer_norm");
    random_values(rig.input("x", FUSEDIFF_F32, {3, columns}), random, 1.0, true);
    random_values(rig.input("scale", FUSEDIFF_F32, {columns}), random, 1.0, true);
    random_values(rig.input("bias", FUSEDIFF_F32, {columns}), random, 1.0, true);
    rig.input("x").put(0, 3.0f);
    rig.output("y", FUSEDIFF_F32, {3, columns});
    rig.real("eps", 1e-5);
    EXPECT_EQ(difference(rig, "planted_onnxruntime_20623_clean", "fused", "planted_onnxruntime_20623", "unfused"), "");
    ASSERT_EQ(rig.run(*loaded("planted_onnxruntime_20623"), "unfused"), FUSEDIFF_OK);
    RigTensor expected = rig.output("y");
    ASSERT_EQ(rig.run(*loaded("planted_onnxruntime_20623"), "fused"), FUSEDIFF_OK);
    EXPECT_EQ(rig.damage(), "input x changed; ");
    for (int64_t i = 0; i < expected.count(); ++i) {
      EXPECT_EQ(rig.output("y").bits(i), expected.bits(i));
    }
  }
}

// One call of silu whose x ends at a page that cannot be read.
fusediff_status silu_before_a_closed_page(const fusediff_target_v1& target) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(static_cast<char*>(pages) + page, page, PROT_NONE);
  const int64_t shape[] = {5};
  const int64_t stride[] = {1};
  float y[5];
  const fusediff_tensor in{"x", shape, stride, static_cast<char*>(pages) + page - sizeof(y), 1, FUSEDIFF_F32};
  const fusediff_tensor out{"y", shape, stride, y, 1, FUSEDIFF_F32};
  fusediff_call call{};
  call.struct_size = sizeof(call);
  call.op = "silu";
  call.path = "fused";
  call.inputs = &in;
  call.input_count = 1;
  call.outputs = &out;
  call.output_count = 1;
  const fusediff_status status = target.run(nullptr, &call);
  munmap(pages, 2 * page);
  return status;
}

TEST(TensorrtLlm17951Test, ReadsOneElementBehindTheBuffer) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EQ(silu_before_a_closed_page(*loaded("planted_tensorrt_llm_17951_clean")), FUSEDIFF_OK);
  EXPECT_DEATH(silu_before_a_closed_page(*loaded("planted_tensorrt_llm_17951")), "");
}

TEST(TensorrtLlm17951Test, GivesTheBitsOfTheUnfusedPath) {
  std::mt19937_64 random(44);
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16}) {
    for (const int64_t n : {0, 1, 2, 100}) {
      Rig rig("silu");
      random_values(rig.input("x", dtype, {n}), random, 3.0, false);
      rig.output("y", dtype, {n});
      for (const char* name : {"planted_tensorrt_llm_17951", "planted_tensorrt_llm_17951_clean"}) {
        EXPECT_EQ(difference(rig, name, "fused", name, "unfused"), "");
      }
    }
  }
}

}  // namespace
}  // namespace fusediff::planted
