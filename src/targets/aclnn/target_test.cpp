// The target on the emulation, call by call: options, both stages, layouts, device memory and threads.
#include <thread>

#include "aclnn/host_side.h"

namespace fusediff::aclnn {
namespace {

using namespace kit;

// A random call of moe_gating_topk.
Rig gating_rig(int32_t dtype, const std::string& norm, bool renorm, int64_t groups, int64_t kept) {
  constexpr int64_t kTokens = 3, kExperts = 64, kPicks = 6;
  Rig rig("moe_gating_topk");
  rig.input("x", dtype, {kTokens, kExperts});
  rig.input("bias", dtype, {kExperts});
  rig.output("norm_out", FUSEDIFF_F32, {kTokens, kExperts});
  rig.output("rank", FUSEDIFF_F32, {kTokens, kExperts});
  rig.output("expert_idx", FUSEDIFF_I32, {kTokens, kPicks});
  rig.output("y", dtype, {kTokens, kPicks});
  rig.integer("k", kPicks);
  rig.integer("k_group", kept);
  rig.integer("group_count", groups);
  rig.integer("group_select_mode", groups > 1 ? 1 : 0);
  rig.integer("renorm", renorm ? 1 : 0);
  rig.text("norm_type", norm);
  rig.integer("out_flag", 1);
  rig.real("routed_scaling_factor", 2.5);
  rig.real("eps", 1e-20);
  std::mt19937_64 random(7);
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    random_values(in, random, 1, true);
  }
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
  return rig;
}

std::vector<uint64_t> bits_of(Rig& rig) {
  std::vector<uint64_t> bits;
  for (RigTensor& out : rig.outputs()) {
    for (int64_t i = 0; i < out.count(); ++i) {
      bits.push_back(out.bits(i));
    }
  }
  return bits;
}

// Outputs of a path; a test failure where the call fails or writes what it must not.
std::vector<uint64_t> run(Rig& rig, const fusediff_target_v1& target, const std::string& path) {
  EXPECT_EQ(rig.run(target, path), FUSEDIFF_OK) << path << ": " << rig.error();
  EXPECT_EQ(rig.damage(), "") << path;
  return bits_of(rig);
}

TEST(AclnnTest, EveryPathOfTheGatingGivesTheSameBitsInAnyLayout) {
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16}) {
    for (const char* norm : {"sigmoid", "softmax"}) {
      for (const bool renorm : {false, true}) {
        for (const int64_t groups : {1, 8}) {
          Rig rig = gating_rig(dtype, norm, renorm, groups, groups > 1 ? 3 : 1);
          const std::vector<uint64_t> fused = run(rig, host_target("correct"), "fused");
          EXPECT_EQ(fused, run(rig, host_target("correct"), "unfused"));
          EXPECT_EQ(fused, run(rig, host_target("correct"), "reference"));
        }
      }
    }
  }
}

TEST(AclnnTest, NoExecutorIsLeft) {
  const auto live = symbol_of<uint64_t()>("aclnn_emulation/correct/libopapi.so", "aclnn_emulation_live_executors");
  ASSERT_NE(live, nullptr);
  Rig rig = gating_rig(FUSEDIFF_BF16, "sigmoid", true, 8, 3);
  run(rig, host_target("correct"), "unfused");
  EXPECT_EQ(live(), 0u);
}

TEST(AclnnTest, AStreamForEachThreadAndASharedContextGiveTheSameBits) {
  for (const char* options : {",context=shared", ",stream=per_thread", ",context=shared,stream=per_thread,device=0"}) {
    Rig rig = gating_rig(FUSEDIFF_F32, "sigmoid", true, 1, 1);
    const std::vector<uint64_t> plain = run(rig, host_target("correct"), "fused");
    EXPECT_EQ(plain, run(rig, host_target("correct", options), "fused")) << options;
  }
}

TEST(AclnnTest, AThreadThatDidNotOpenTheContextMayUseIt) {
  void* context = nullptr;
  const std::string options = "library_path=" + edition_folder("correct");
  ASSERT_EQ(device_target().open(options.c_str(), &context), FUSEDIFF_OK);
  std::thread([&] {
    void* memory = device_target().alloc(context, 16);
    ASSERT_NE(memory, nullptr);
    float out = 0;
    const float in = 1.5;
    EXPECT_EQ(device_target().write(context, memory, &in, sizeof(in)), FUSEDIFF_OK);
    EXPECT_EQ(device_target().read(context, &out, memory, sizeof(out)), FUSEDIFF_OK);
    EXPECT_EQ(out, in);
    device_target().release(context, memory);
  }).join();
  device_target().close(context);
}

TEST(AclnnTest, OptionsThatAreNoneAreNamed) {
  const auto opened = [](const std::string& options, fusediff_status status) {
    void* context = nullptr;
    EXPECT_EQ(device_target().open(options.c_str(), &context), status) << options;
    return std::string(device_target().last_error());
  };
  const std::string path = "library_path=" + edition_folder("correct");
  EXPECT_EQ(opened(path + ",streams=2", FUSEDIFF_REJECTED),
            "unknown option \"streams\": this target has library_path, device, context and stream");
  EXPECT_EQ(opened(path + ",context=none", FUSEDIFF_REJECTED), "option context must be shared or own, not \"none\"");
  EXPECT_EQ(opened(path + ",device=-1", FUSEDIFF_REJECTED), "option device must be a number from 0 on, not \"-1\"");
  EXPECT_EQ(opened(path + ",device=1", FUSEDIFF_FAILED),
            "aclrtSetDevice returned 107000: aclrtSetDevice: there is device 0 alone");
  const std::string missing = opened("library_path=/nowhere", FUSEDIFF_FAILED);
  EXPECT_NE(missing.find("/nowhere/libascendcl.so"), std::string::npos) << missing;
  EXPECT_NE(missing.find("library_path=DIR or LD_LIBRARY_PATH"), std::string::npos) << missing;
}

TEST(AclnnTest, ARefusalOfTheLibraryCarriesItsCodeAndItsWords) {
  Rig rig = gating_rig(FUSEDIFF_F32, "sigmoid", true, 1, 1);
  rig.input("bias").shape = {63};
  EXPECT_EQ(rig.run(host_target("correct"), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(rig.error().rfind("aclnnMoeGatingTopKGetWorkspaceSize returned 561002: ", 0), 0u) << rig.error();
}

}  // namespace
}  // namespace fusediff::aclnn
