// moe_gating_topk: aclnnMoeGatingTopK as `fused`, small operators as `unfused`, and the built-in composition on a copy
// in host memory as `reference`. The library divides y by its sum where it takes the sigmoid, and where it takes the
// softmax with renorm = 1: the documentation gives that formula and says in another place that renorm supports 0 alone.
// The record divides with the softmax and with renorm. With neither, where the library has no counterpart, y is
// gathered by small operators from the scores and picks of the fused one. Ranks, which it keeps to itself, are made
// from its scores by small operators. Calls without tokens are not documented.
#include <limits>

#include "aclnn/host_copy.h"
#include "aclnn/operators.h"
#include "aclnn/steps.h"
#include "builtin/operators.h"

namespace fusediff::aclnn {
namespace {

constexpr char kSchema[] = R"({"name": "moe_gating_topk", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "where": ["T >= 1"]})";

struct Sizes {
  int64_t tokens, experts, k, groups, kept, mode;
  bool softmax, divide;  // divide: y is divided by (the sum of the picked scores + eps)

  explicit Sizes(const kit::Call& call)
      : tokens(call.input("x").size(0)),
        experts(call.input("x").size(1)),
        k(call.integer("k")),
        groups(call.integer("group_count")),
        kept(call.integer("k_group")),
        mode(call.integer("group_select_mode")),
        softmax(call.text("norm_type") == "softmax"),
        divide(softmax || call.flag("renorm")) {}
};

// `value` in f32.
Value widened(Steps& s, const Value& value) {
  if (value.handle == nullptr || value.type == kFloat) {
    return value;
  }
  const Value wide = s.temporary(kFloat, value.shape);
  s.step("aclnnCast", value.handle, kFloat, wide.handle);
  return wide;
}

// values and indices of the k largest of each row.
struct Largest {
  Value values, indices;
};

Largest top_k(Steps& s, const Value& of, int64_t k) {
  const std::vector<int64_t> shape{of.shape[0], k};
  const Largest made{s.temporary(kFloat, shape), s.temporary(kInt64, shape)};
  s.step("aclnnTopk", of.handle, k, int64_t{1}, true, true, made.values.handle, made.indices.handle);
  return made;
}

Value row_sums(Steps& s, const Value& of) {
  const Value sums = s.temporary(kFloat, {of.shape[0], 1});
  s.step("aclnnReduceSum", of.handle, s.ints({1}), true, kFloat, sums.handle);
  return sums;
}

// Ranks of the experts outside the kept groups become -inf, in their place.
void drop_groups(Steps& s, const Sizes& z, const Value& rank) {
  const int64_t size = z.experts / z.groups;
  const Value members = s.view(rank, {z.tokens * z.groups, size});
  const Largest best = top_k(s, members, z.mode + 1);
  const Value score = s.view(z.mode == 0 ? best.values : row_sums(s, best.values), {z.tokens, z.groups});
  const Largest kept = top_k(s, score, z.kept);
  const Value marks = s.temporary(kFloat, {z.tokens, z.groups});
  const Value out = s.temporary(kBool, {z.tokens, z.groups});
  s.step("aclnnInplaceZero", marks.handle);
  s.step("aclnnInplaceScatterValue", marks.handle, int64_t{1}, kept.indices.handle, s.scalar(1), int64_t{0});
  s.step("aclnnEqScalar", marks.handle, s.scalar(0), out.handle);
  s.step("aclnnInplaceMaskedFillScalar", s.view(rank, {z.tokens, z.groups, size}).handle,
         s.view(out, {z.tokens, z.groups, 1}).handle, s.scalar(-std::numeric_limits<float>::infinity()));
}

// Scores plus bias, into `rank`.
void make_ranks(Steps& s, const Sizes& z, const Value& score, const Value& rank) {
  const Value bias = widened(s, s.input("bias"));
  if (bias.handle == nullptr) {
    s.step("aclnnInplaceCopy", rank.handle, score.handle);
  } else {
    s.step("aclnnAdd", score.handle, bias.handle, s.scalar(1), rank.handle);
  }
  if (z.kept < z.groups) {
    drop_groups(s, z, rank);
  }
}

// The picked scores divided by (their sum + eps).
Value divided(Steps& s, const Value& picked) {
  const Value sums = row_sums(s, picked);
  const Value divisor = s.temporary(kFloat, sums.shape);
  s.step("aclnnAdds", sums.handle, s.scalar(static_cast<float>(s.call().real("eps"))), s.scalar(1), divisor.handle);
  const Value quotient = s.temporary(kFloat, picked.shape);
  s.step("aclnnDiv", picked.handle, divisor.handle, quotient.handle);
  return quotient;
}

// y: the scores at `picks`, divided where the record says so, times the factor, rounded to its dtype.
void weigh(Steps& s, const Sizes& z, const Value& score, const Value& picks) {
  const Value picked = s.temporary(kFloat, {z.tokens, z.k});
  s.step("aclnnGather", score.handle, int64_t{1}, picks.handle, picked.handle);
  const Value weights = z.divide ? divided(s, picked) : picked;
  const Value y = s.output("y");
  const Value scaled = y.type == kFloat ? y : s.temporary(kFloat, picked.shape);
  s.step("aclnnMuls", weights.handle, s.scalar(static_cast<float>(s.call().real("routed_scaling_factor"))),
         scaled.handle);
  if (y.type != kFloat) {
    s.step("aclnnCast", scaled.handle, y.type, y.handle);
  }
}

void fused(Steps& s) {
  const kit::Call& call = s.call();
  const Sizes z(call);
  const Value x = s.input("x");
  const Value bias = s.input("bias");
  const Value y = z.divide ? s.output("y") : s.temporary(x.type, {z.tokens, z.k});
  const Value picks = s.output("expert_idx");
  const Value score = s.output_or_temporary("norm_out");
  const Value rank = s.output("rank");
  const bool scores_wanted = call.output("norm_out").present() || rank.handle != nullptr || !z.divide;
  s.step("aclnnMoeGatingTopK", x.handle, bias.handle, z.k, z.kept, z.groups, z.mode, int64_t{z.softmax ? 1 : 0},
         int64_t{z.softmax ? 0 : 1}, scores_wanted, call.real("routed_scaling_factor"), call.real("eps"), y.handle,
         picks.handle, score.handle);
  if (rank.handle != nullptr) {
    make_ranks(s, z, score, rank);
  }
  if (!z.divide) {
    weigh(s, z, score, picks);
  }
}

void unfused(Steps& s) {
  const Sizes z(s.call());
  const Value x = widened(s, s.input("x"));
  const Value score = s.output_or_temporary("norm_out");
  if (z.softmax) {
    s.step("aclnnSoftmax", x.handle, int64_t{1}, score.handle);
  } else {
    s.step("aclnnSigmoid", x.handle, score.handle);
  }
  const Value rank = s.output_or_temporary("rank");
  make_ranks(s, z, score, rank);
  const Largest best = top_k(s, rank, z.k);
  const Value picks = s.output("expert_idx");
  s.step("aclnnCast", best.indices.handle, kInt32, picks.handle);
  weigh(s, z, score, best.indices);
}

void reference(const kit::Call& call) { run_on_host(call, builtin::kMoeGatingTopk, "unfused"); }

}  // namespace

constinit const kit::Operator kMoeGatingTopk{"moe_gating_topk",
                                             kSchema,
                                             {{"fused", run_steps<fused>, measure_steps<fused>},
                                              {"unfused", run_steps<unfused>, measure_steps<unfused>},
                                              {"reference", reference}}};

}  // namespace fusediff::aclnn
