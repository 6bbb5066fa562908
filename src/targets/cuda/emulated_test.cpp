// The kernels on the CPU: bit for bit the built-in operators, whatever the order of blocks and threads.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "cuda/operator_rigs.h"
#include "cuda/same_as_builtin.h"

namespace fusediff::cuda {
namespace {

// The emulation, opened with an option.
template <const char* kOption>
const fusediff_target_v1& emulated() {
  static const fusediff_target_v1 target = [] {
    fusediff_target_v1 made = *fusediff_target();
    made.open = [](const char*, void** context) { return fusediff_target()->open(kOption, context); };
    return made;
  }();
  return target;
}

constexpr char kForward[] = "order=forward";
constexpr char kBackward[] = "order=backward";
constexpr char kShuffled[] = "order=shuffled";

class EmulatedTest : public testing::TestWithParam<const char*> {};

TEST_P(EmulatedTest, IsTheBuiltInOperatorInEveryOrderOfThreads) {
  const std::string op = GetParam();
  const bool moved = op == "moe_permute";
  std::mt19937_64 random(71);
  for (int i = 0; i < 120; ++i) {
    kit::Rig rig = random_call(random, op);
    ASSERT_TRUE(same_as_builtin(rig, emulated<kForward>(), moved)) << "forward " << i;
    ASSERT_TRUE(same_as_builtin(rig, emulated<kBackward>(), moved)) << "backward " << i;
    ASSERT_TRUE(same_as_builtin(rig, emulated<kShuffled>(), moved)) << "shuffled " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, EmulatedTest, testing::ValuesIn(kOperators),
                         [](const auto& test) { return std::string(test.param); });

TEST(EmulatedTest, MapsThatBreakARuleAreRejectedBeforeAnythingIsRead) {
  const builtin::PermuteSizes s{3, 5, 2, 4, 6};
  for (const auto& [entry, text] : {std::pair{6, "neither -1 nor one of 6 rows"}, {-2, "neither -1"}, {0, "twice"}}) {
    kit::Rig rig = builtin::unpermute_grad_rig(FUSEDIFF_F32, s);
    builtin::put_all(rig.input("row_id_map"), std::vector<int32_t>{0, 1, 2, 3, entry, 5});
    for (const char* path : {"fused", "unfused"}) {
      EXPECT_EQ(rig.run(*fusediff_target(), path), FUSEDIFF_REJECTED);
      EXPECT_NE(rig.error().find(text), std::string::npos) << rig.error();
    }
  }
}

TEST(EmulatedTest, ATokenBeyondSharedMemoryIsNotOffered) {
  kit::Rig rig("mhc_pre_sinkhorn");
  const int64_t n = 60, m = n * n + 2 * n;
  rig.input("x", FUSEDIFF_BF16, {1, 1, n, 1});
  rig.input("phi", FUSEDIFF_F32, {m, n});
  rig.input("alpha", FUSEDIFF_F32, {3});
  rig.input("bias", FUSEDIFF_F32, {m});
  rig.output("hin", FUSEDIFF_BF16, {1, 1, 1});
  rig.output("h_post", FUSEDIFF_F32, {1, 1, n});
  rig.output("h_res", FUSEDIFF_F32, {1, 1, n, n});
  rig.output("h_pre", FUSEDIFF_F32, {1, 1, n});
  rig.output("hc_before_norm", FUSEDIFF_F32, {1, 1, m});
  rig.output("inv_rms", FUSEDIFF_F32, {1, 1, 1});
  rig.output("sum_out", FUSEDIFF_F32, {2, 1, 1, n});
  rig.output("norm_out", FUSEDIFF_F32, {2, 1, 1, n, n});
  rig.integer("num_iters", 1);
  rig.real("hc_eps", 1e-6);
  rig.real("norm_eps", 1e-6);
  EXPECT_EQ(rig.run(*fusediff_target(), "fused"), FUSEDIFF_UNSUPPORTED);
  EXPECT_NE(rig.error().find("bytes of shared memory"), std::string::npos) << rig.error();
  EXPECT_EQ(rig.run(*fusediff_target(), "unfused"), FUSEDIFF_OK) << rig.error();
}

}  // namespace
}  // namespace fusediff::cuda
