// moe_gating_topk as code in PyTorch writes it. Unfused: to f32, sigmoid or softmax, add, topk, gather, sum, div, mul.
// ATen has no fused gating; the fused path is the same operator with fewer passes: softmax that converts on its own and
// out-variants on the outputs' memory. NaN ranks above every number in topk; which of equal ranks it picks is not
// documented. One group only: among equal groups, too, topk may pick any, which a record has no words for.
#include "torch/aten.h"
#include "torch/operators.h"

#include <ATen/ops/add.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

namespace fusediff::torch {
namespace {

using namespace kit;

constexpr int64_t kMaxExperts = 2048;

struct Gating {
  at::Tensor x, bias;  // bias: undefined where there is none
  int64_t tokens, experts, k;
  bool softmax, divide;
  double scale, eps;
};

// REJECTED where a rule of the record is broken.
Gating read(const Call& call) {
  Gating g{};
  g.x = aten(call.input("x"));
  g.bias = aten_if_present(call.input("bias"));
  g.tokens = g.x.size(0);
  g.experts = g.x.size(1);
  g.k = call.integer("k");
  g.softmax = call.text("norm_type") == "softmax";
  g.divide = g.softmax || call.flag("renorm");
  g.scale = call.real("routed_scaling_factor");
  g.eps = call.real("eps");
  const int64_t mode = call.integer("group_select_mode");
  require(g.softmax || call.text("norm_type") == "sigmoid", "norm_type must be sigmoid or softmax");
  require(g.experts >= 1 && g.experts <= kMaxExperts, "x must have 1 to 2048 experts, not ", g.experts);
  require(call.integer("group_count") == 1 && call.integer("k_group") == 1, "group_count and k_group must be 1");
  require(g.k >= 1 && g.k <= g.experts, "k must be 1 to the number of experts, not ", g.k);
  require(mode == 0 || mode == 1, "group_select_mode must be 0 or 1, not ", mode);
  require(g.experts > mode, "group_select_mode 1 needs two experts in a group");
  return g;
}

void give_all(const Call& call, const Gating& g, const at::Tensor& scores, const at::Tensor& rank,
              const at::Tensor& picks, at::Tensor weights) {
  if (g.divide) {
    weights = weights / (weights.sum(-1, true) + g.eps);
  }
  give(call.output("norm_out"), scores);
  give(call.output("rank"), rank);
  give(call.output("expert_idx"), picks);
  give(call.output("y"), weights * g.scale);
}

void gating_unfused(const Call& call) {
  const Gating g = read(call);
  const at::Tensor x = widened(g.x);
  const at::Tensor scores = g.softmax ? at::softmax(x, -1) : at::sigmoid(x);
  const at::Tensor rank = g.bias.defined() ? scores + g.bias : scores;
  const at::Tensor picks = std::get<1>(rank.topk(g.k, -1));
  give_all(call, g, scores, rank, picks, scores.gather(1, picks));
}

// The output's own memory where it is wanted and dense or not, else memory of ATen.
at::Tensor memory_of(const Tensor& output, const Gating& g) {
  return output.present() ? aten(output) : at::zeros({g.tokens, g.experts}, wide_type(g.x));
}

void gating_fused(const Call& call) {
  const Gating g = read(call);
  at::Tensor scores = memory_of(call.output("norm_out"), g);
  if (g.softmax) {
    at::softmax_out(scores, g.x, -1, wide_type(g.x));
  } else {
    at::sigmoid_out(scores, widened(g.x));
  }
  at::Tensor rank = scores;
  if (g.bias.defined()) {
    rank = memory_of(call.output("rank"), g);
    at::add_out(rank, scores, g.bias);
  }
  const at::Tensor picks = std::get<1>(at::topk(rank, g.k, -1));
  give_all(call, g, scores, rank, picks, at::gather(scores, 1, picks));
}

// The record with two changes: PyTorch promises no order among equals, and rank is always given, since only by it can
// a free choice among equals be told from a wrong pick.
constexpr char kSchema[] = R"({
  "name": "moe_gating_topk", "like": "builtin", "paths": ["fused", "unfused"],
  "where": ["G == 1", "KG == 1"],
  "outputs": [
    {"name": "norm_out",   "shape": ["T", "E"], "dtype": "f32", "stage": 1, "optional": true, "if": "out_flag == 1",
     "layout": "any",
     "bound": {"ulp": "4 * E + 16", "of": "row_max",
               "why": "as the built-in operator: softmax with exp written as exp2 and a sum of positive terms in any order is off by (3 E + 14) u of the row's largest and less; sigmoid by 9 u of itself and less"}},
    {"name": "rank",       "shape": ["T", "E"], "dtype": "f32", "stage": 2, "layout": "any",
     "bound": {"ulp": "4 * E + 24", "of": {"row_max_product": [[], ["bias"]]},
               "why": "norm_out is at most 1 and off as stated there, in units of 1; bias is exact in f32; one rounding of their sum"}},
    {"name": "expert_idx", "shape": ["T", "K"], "dtype": "i32", "stage": 3, "layout": "any",
     "always": [{"range": [0, "E - 1"]}, {"distinct_in_row": true}]},
    {"name": "y",          "shape": ["T", "K"], "dtype": "=x",  "stage": 4, "layout": "any"}],
  "decide": [{"by": "rank", "pick": "expert_idx", "count": "K", "order": "largest", "nan": "greatest", "zeros": "equal",
              "tie": "any", "sorted": true}]
})";

}  // namespace

const Operator kMoeGatingTopk{
    "moe_gating_topk", kSchema, {{"fused", in_aten<gating_fused>}, {"unfused", in_aten<gating_unfused>}}};

}  // namespace fusediff::torch
