// moe_unpermute and its backward. Fused: at::bmm over the picks, and in the storage dtype an accumulation pick by pick.
// Unfused: zeros, index_copy, mul, sum over the picks.
#include "builtin/operators.h"
#include "torch/operators.h"
#include "torch/row_map.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/zeros.h>

namespace fusediff::torch {
namespace {

using namespace kit;

struct Unpermute {
  at::Tensor rows, probs;  // [T, K, H] at their picks; [T, K], undefined where there are none
  bool storage;
};

Unpermute read(const Call& call) {
  const at::Tensor in = aten(call.input("in"));
  const RowMap map = read_row_map(call, call.output("out").size(0), in.size(0));
  return {spread(map, in), aten_if_present(call.input("probs")), keeps_storage(call)};
}

// Each product and each sum is kept in the dtype of the rows.
at::Tensor accumulated(const Unpermute& u) {
  const at::Tensor sum = at::zeros({u.rows.size(0), u.rows.size(2)}, u.rows.options());
  for (int64_t pick = 0; pick < u.rows.size(1); ++pick) {
    const at::Tensor row = u.rows.select(1, pick);
    sum.add_(u.probs.defined() ? (row * u.probs.select(1, pick).unsqueeze(1)).to(row.scalar_type()) : row);
  }
  return sum;
}

void unpermute_fused(const Call& call) {
  const Unpermute u = read(call);
  if (u.storage) {
    give(call.output("out"), accumulated(u));
    return;
  }
  const at::Tensor rows = widened(u.rows);
  give(call.output("out"), u.probs.defined() ? at::bmm(u.probs.unsqueeze(1), rows).squeeze(1) : rows.sum(1));
}

// Times f32 probabilities promotes 16-bit rows to f32.
void unpermute_unfused(const Call& call) {
  const Unpermute u = read(call);
  const at::Tensor products = u.probs.defined() ? u.rows * u.probs.unsqueeze(-1) : u.rows;
  const at::Tensor kept = u.storage ? products.to(u.rows.scalar_type()) : widened(products);
  give(call.output("out"), kept.sum(1));
}

struct UnpermuteGrad {
  at::Tensor grad_out, in, probs;
  RowMap map;
};

UnpermuteGrad read_grad(const Call& call) {
  const at::Tensor grad_out = aten(call.input("grad_out"));
  const at::Tensor in = aten(call.input("in"));
  return {grad_out, in, aten_if_present(call.input("probs")), read_row_map(call, grad_out.size(0), in.size(0))};
}

// The rows of the gradient, one for each reached row of `in`, at their places; zeros elsewhere.
void give_grad_in(const Call& call, const UnpermuteGrad& g, const at::Tensor& reached) {
  at::Tensor grad_in = at::zeros({g.in.size(0), g.in.size(1)}, g.in.options());
  grad_in.index_copy_(0, g.map.rows, reached.to(g.in.scalar_type()));
  give(call.output("grad_in"), grad_in);
}

// Gathers first, then multiplies what was reached.
void grad_fused(const Call& call) {
  const UnpermuteGrad g = read_grad(call);
  const at::Tensor rows = widened(spread(g.map, g.in));
  give(call.output("grad_probs"), at::bmm(rows, widened(g.grad_out).unsqueeze(-1)).squeeze(-1));
  at::Tensor reached = g.grad_out.index_select(0, g.map.slots.div(g.map.picks, "floor"));
  if (g.probs.defined()) {
    reached = reached * g.probs.flatten().index_select(0, g.map.slots).unsqueeze(1);
  }
  give_grad_in(call, g, reached);
}

// Multiplies for every pick, then gathers.
void grad_unfused(const Call& call) {
  const UnpermuteGrad g = read_grad(call);
  const at::Tensor rows = widened(spread(g.map, g.in));
  const at::Tensor gradient = g.grad_out.unsqueeze(1);
  give(call.output("grad_probs"), (widened(gradient) * rows).sum(-1));
  at::Tensor by_pick = gradient.expand({g.map.tokens, g.map.picks, g.in.size(1)});
  by_pick = g.probs.defined() ? by_pick * g.probs.unsqueeze(-1) : by_pick;
  give_grad_in(call, g, by_pick.reshape({g.map.tokens * g.map.picks, g.in.size(1)}).index_select(0, g.map.slots));
}

constexpr char kSchema[] = R"({
  "name": "moe_unpermute", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "dtype": {"in": ["f32", "f16", "bf16"]}
})";

constexpr char kGradSchema[] = R"({
  "name": "moe_unpermute_grad", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "dtype": {"grad_out": ["f32", "f16", "bf16"]}
})";

}  // namespace

const Operator kMoeUnpermute{"moe_unpermute",
                             kSchema,
                             {{"fused", in_aten<unpermute_fused>},
                              {"unfused", in_aten<unpermute_unfused>},
                              reference_of(builtin::kMoeUnpermute)}};

const Operator kMoeUnpermuteGrad{
    "moe_unpermute_grad",
    kGradSchema,
    {{"fused", in_aten<grad_fused>}, {"unfused", in_aten<grad_unfused>}, reference_of(builtin::kMoeUnpermuteGrad)}};

}  // namespace fusediff::torch
