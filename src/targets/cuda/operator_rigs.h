// For tests: one random call of any operator of the target, layouts and special values included.
#pragma once

#include <random>
#include <string>

#include "builtin/moe_permute_rig.h"
#include "kit/rig.h"

namespace fusediff::cuda {

inline constexpr const char* kOperators[] = {"add",
                                             "sigmoid",
                                             "moe_gating_topk",
                                             "moe_permute",
                                             "moe_permute_grad",
                                             "moe_unpermute",
                                             "moe_unpermute_grad",
                                             "mhc_pre_sinkhorn",
                                             "mhc_pre_sinkhorn_grad"};

inline int64_t below(std::mt19937_64& random, uint64_t n) { return static_cast<int64_t>(random() % n); }

inline void randomise(kit::Rig& rig, std::mt19937_64& random) {
  const bool tame = random() % 2 == 0;
  for (kit::RigTensor& in : rig.inputs()) {
    kit::random_layout(in, random, true);
    kit::random_values(in, random, 2.0, tame);
  }
  for (kit::RigTensor& out : rig.outputs()) {
    kit::random_layout(out, random, false);
  }
}

inline int32_t wide_of(int32_t dtype) { return dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32; }

inline kit::Rig random_elementwise(std::mt19937_64& random, const std::string& op) {
  kit::Rig rig(op);
  const int32_t dtype = builtin::kPermuteDtypes[random() % 6];
  const std::vector<int64_t> shape = {below(random, 6), below(random, 300)};
  for (const char* name : {"a", "b"}) {
    if (op == "add") {
      rig.input(name, dtype, shape);
    }
  }
  if (op == "sigmoid") {
    rig.input("x", dtype, shape);
  }
  rig.output("y", dtype, shape);
  randomise(rig, random);
  return rig;
}

inline kit::Rig random_gating(std::mt19937_64& random) {
  const int32_t dtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16, FUSEDIFF_BF16, FUSEDIFF_F64};
  const int32_t dtype = dtypes[random() % 4];
  const int64_t mode = below(random, 2), groups = random() % 2 == 0 ? 1 : 1 + below(random, 8);
  const int64_t kept = 1 + below(random, static_cast<uint64_t>(groups));
  const int64_t size = mode + 1 + below(random, random() % 8 == 0 ? 250 : 60);
  const int64_t tokens = below(random, 4), experts = groups * size;
  const int64_t k = 1 + below(random, static_cast<uint64_t>(std::min<int64_t>(size * kept, 20)));
  kit::Rig rig("moe_gating_topk");
  rig.input("x", dtype, {tokens, experts});
  rig.input("bias", dtype, {experts});
  rig.output("norm_out", wide_of(dtype), {tokens, experts});
  rig.output("rank", wide_of(dtype), {tokens, experts});
  rig.output("expert_idx", FUSEDIFF_I32, {tokens, k});
  rig.output("y", dtype, {tokens, k});
  rig.integer("k", k);
  rig.integer("k_group", kept);
  rig.integer("group_count", groups);
  rig.integer("group_select_mode", mode);
  rig.integer("renorm", below(random, 2));
  rig.text("norm_type", random() % 2 == 0 ? "softmax" : "sigmoid");
  rig.integer("out_flag", 1);
  rig.real("routed_scaling_factor", random() % 2 == 0 ? 1.0 : 2.5);
  rig.real("eps", random() % 2 == 0 ? 1e-20 : 1e-3);
  randomise(rig, random);
  rig.input("bias").absent = random() % 3 == 0;
  rig.output("norm_out").absent = random() % 4 == 0;
  rig.output("rank").absent = random() % 4 == 0;
  return rig;
}

inline kit::Rig random_permute(std::mt19937_64& random, const std::string& op) {
  const builtin::PermuteSizes s = builtin::random_permute_sizes(random);
  const int32_t dtype = builtin::kPermuteDtypes[random() % 6];
  const bool storage = random() % 2 == 0;
  kit::Rig rig = op == "moe_permute"        ? builtin::permute_rig(dtype, s)
                 : op == "moe_permute_grad" ? builtin::permute_grad_rig(dtype, s, storage)
                 : op == "moe_unpermute"    ? builtin::unpermute_rig(dtype, s, storage)
                                            : builtin::unpermute_grad_rig(dtype, s);
  builtin::randomise(rig, random, s, random() % 2 == 0);
  if (op == "moe_unpermute_grad") {
    rig.output("grad_probs").absent = random() % 4 == 0;
  }
  return rig;
}

inline kit::Rig random_mhc(std::mt19937_64& random, bool backward) {
  const int32_t dtypes[] = {FUSEDIFF_BF16, FUSEDIFF_F16, FUSEDIFF_F64};
  const int32_t dtype = dtypes[random() % 3], wide = wide_of(dtype);
  const int64_t b = below(random, 3), s = below(random, 4), n = 1 + below(random, 5), halves = 2 + 2 * below(random, 4);
  const int64_t c = 1 + below(random, random() % 4 == 0 ? 150 : 40), m = n * n + 2 * n;
  kit::Rig rig(backward ? "mhc_pre_sinkhorn_grad" : "mhc_pre_sinkhorn");
  if (backward) {
    rig.input("grad_hin", dtype, {b, s, c});
    rig.input("grad_h_post", wide, {b, s, n});
    rig.input("grad_h_res", wide, {b, s, n, n});
  }
  rig.input("x", dtype, {b, s, n, c});
  rig.input("phi", wide, {m, n * c});
  rig.input("alpha", wide, {3});
  rig.input("bias", wide, {m});
  const auto saved = [&](const std::string& name, std::vector<int64_t> shape) {
    backward ? rig.input(name, wide, std::move(shape)) : rig.output(name, wide, std::move(shape));
  };
  if (!backward) {
    rig.output("hin", dtype, {b, s, c});
    rig.output("h_post", wide, {b, s, n});
    rig.output("h_res", wide, {b, s, n, n});
  }
  saved("h_pre", {b, s, n});
  saved("hc_before_norm", {b, s, m});
  saved("inv_rms", {b, s, 1});
  saved("sum_out", {halves, b, s, n});
  saved("norm_out", {halves, b, s, n, n});
  if (backward) {
    rig.output("grad_x", dtype, {b, s, n, c});
    rig.output("grad_phi", wide, {m, n * c});
    rig.output("grad_alpha", wide, {3});
    rig.output("grad_bias", wide, {m});
  } else {
    rig.integer("num_iters", halves / 2);
    rig.real("norm_eps", 1e-3);
  }
  rig.real("hc_eps", 1e-2);
  randomise(rig, random);
  for (const char* name : {"h_pre", "hc_before_norm", "inv_rms", "sum_out", "norm_out"}) {
    if (!backward) {
      rig.output(name).absent = random() % 4 == 0;
    }
  }
  return rig;
}

inline kit::Rig random_call(std::mt19937_64& random, const std::string& op) {
  if (op == "add" || op == "sigmoid") {
    return random_elementwise(random, op);
  }
  if (op == "moe_gating_topk") {
    return random_gating(random);
  }
  return op.starts_with("mhc") ? random_mhc(random, op.ends_with("_grad")) : random_permute(random, op);
}

}  // namespace fusediff::cuda
