// What the paths of moe_gating_topk share: the call, read and checked once, the order of candidates, and the two run
// functions. No arithmetic stands here.
#pragma once

#include <cstdint>

#include "kit/target.h"

namespace fusediff::builtin {

inline constexpr int64_t kMaxExperts = 2048;
inline constexpr int64_t kGroupAlignment = 32;

// The tensors and attributes of a call; T and A are the dtype of x and the type to compute in (and to report scores
// in).
template <class T, class A = kit::Compute<T>>
struct Gating {
  int64_t tokens, experts, k, groups, kept_groups, group_mode;
  bool softmax, divide;  // divide: y is divided by (the sum of the selected + eps)
  A scale, eps;
  kit::View<const T, 2> x;
  kit::Row<const T> bias;          // false: none
  kit::View<A, 2> norm_out, rank;  // false: not wanted
  kit::View<int32_t, 2> expert_idx;
  kit::View<T, 2> y;
};

// REJECTED where a rule of the schema is broken.
template <class T>
Gating<T> read_gating(const kit::Call& call) {
  using kit::require;
  Gating<T> g{};
  g.x = call.input("x").view<const T, 2>();
  g.tokens = g.x.shape[0];
  g.experts = g.x.shape[1];
  g.k = call.integer("k");
  g.groups = call.integer("group_count");
  g.kept_groups = call.integer("k_group");
  g.group_mode = call.integer("group_select_mode");
  g.softmax = call.text("norm_type") == "softmax";
  g.divide = g.softmax || call.flag("renorm");
  g.scale = static_cast<kit::Compute<T>>(call.real("routed_scaling_factor"));
  g.eps = static_cast<kit::Compute<T>>(call.real("eps"));
  require(g.softmax || call.text("norm_type") == "sigmoid", "norm_type must be sigmoid or softmax");
  require(g.group_mode == 0 || g.group_mode == 1, "group_select_mode must be 0 or 1, not ", g.group_mode);
  require(g.experts >= 1 && g.experts <= kMaxExperts, "x must have 1 to 2048 experts, not ", g.experts);
  require(g.groups >= 1 && g.experts % g.groups == 0, "group_count must divide ", g.experts, " experts: ", g.groups);
  const int64_t size = g.experts / g.groups;
  require(g.kept_groups >= 1 && g.kept_groups <= g.groups, "k_group must be 1 to group_count, not ", g.kept_groups);
  require(g.k >= 1 && g.k <= size * g.kept_groups, "k must be 1 to the experts of the kept groups, not ", g.k);
  require(size > g.group_mode, "group_select_mode 1 needs two experts in a group");
  require((size + kGroupAlignment - 1) / kGroupAlignment * kGroupAlignment * g.groups <= kMaxExperts,
          "the group size rounded up to 32, times group_count, must be at most 2048");
  call.output("expert_idx").require_shape({g.tokens, g.k});
  call.output("y").require_shape({g.tokens, g.k});
  call.output("norm_out").require_shape({g.tokens, g.experts});
  call.output("rank").require_shape({g.tokens, g.experts});
  call.input("bias").require_shape({g.experts});
  g.bias = call.input("bias").optional_view<const T, 1>();
  g.norm_out = call.output("norm_out").optional_view<kit::Compute<T>, 2>();
  g.rank = call.output("rank").optional_view<kit::Compute<T>, 2>();
  g.expert_idx = call.output("expert_idx").view<int32_t, 2>();
  g.y = call.output("y").view<T, 2>();
  return g;
}

void run_gating_fused(const kit::Call& call);
void run_gating_unfused(const kit::Call& call);
size_t gating_unfused_workspace(const kit::Call& call);

}  // namespace fusediff::builtin
