// moe_permute and its backward. Fused: argsort, index_select into the output, index_add for the backward. Unfused:
// sort, repeat_interleave, index_select; zeros, index_copy and sum over the picks for the backward.
#include "builtin/operators.h"
#include "torch/operators.h"
#include "torch/row_map.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>

namespace fusediff::torch {

using namespace kit;

namespace {

constexpr int64_t kMaxPicks = 128;

struct Permute {
  at::Tensor tokens, experts;  // experts: flattened, [T * K]
  int64_t count, picks, rows;
};

Permute read(const Call& call) {
  const at::Tensor indices = aten(call.input("indices"));
  const int64_t picks = indices.size(1);
  const Permute p{aten(call.input("tokens")), indices.flatten(), indices.numel(), picks,
                  call.integer("num_out_tokens")};
  require(picks >= 1 && picks <= kMaxPicks, "indices must have 1 to 128 picks, not ", picks);
  require(p.rows >= 0 && p.rows <= p.count, "num_out_tokens must be 0 to ", p.count, ", not ", p.rows);
  return p;
}

// The inverse of the order, -1 behind the last row.
void give_map(const Call& call, const Permute& p, const at::Tensor& order) {
  at::Tensor map = at::full({p.count}, -1, at::kInt);
  map.index_copy_(0, order.narrow(0, 0, p.rows), at::arange(p.rows, at::kInt));
  give(call.output("row_id_map"), map.view({p.count / p.picks, p.picks}).t());
}

void permute_fused(const Call& call) {
  const Permute p = read(call);
  const at::Tensor order = at::argsort(p.experts, /*stable=*/true, 0, false);
  at::Tensor out = aten(call.output("out"));
  at::index_select_out(out, p.tokens, 0, order.narrow(0, 0, p.rows).div(p.picks, "floor"));
  give_map(call, p, order);
}

void permute_unfused(const Call& call) {
  const Permute p = read(call);
  const at::Tensor order = std::get<1>(at::sort(p.experts, /*stable=*/true, 0, false));
  const at::Tensor repeated = p.tokens.repeat_interleave(p.picks, 0);
  give(call.output("out"), repeated.index_select(0, order.narrow(0, 0, p.rows)));
  give_map(call, p, order);
}

struct PermuteGrad {
  at::Tensor grad_out;  // in the dtype that the sum is kept in
  RowMap map;
};

PermuteGrad read_grad(const Call& call) {
  const at::Tensor grad_out = aten(call.input("grad_out"));
  return {keeps_storage(call) ? grad_out : widened(grad_out),
          read_row_map(call, call.output("grad_tokens").size(0), grad_out.size(0))};
}

void grad_fused(const Call& call) {
  const PermuteGrad g = read_grad(call);
  const at::Tensor token = g.map.slots.div(g.map.picks, "floor");
  const at::Tensor sum = at::zeros({g.map.tokens, g.grad_out.size(1)}, g.grad_out.options());
  give(call.output("grad_tokens"), sum.index_add(0, token, g.grad_out.index_select(0, g.map.rows)));
}

void grad_unfused(const Call& call) {
  const PermuteGrad g = read_grad(call);
  give(call.output("grad_tokens"), spread(g.map, g.grad_out).sum(1));
}

constexpr char kSchema[] = R"({
  "name": "moe_permute", "like": "builtin", "paths": ["fused", "unfused"],
  "dtype": {"tokens": ["f32", "f16", "bf16"]}
})";

constexpr char kGradSchema[] = R"({
  "name": "moe_permute_grad", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "dtype": {"grad_out": ["f32", "f16", "bf16"]}
})";

}  // namespace

RowMap read_row_map(const Call& call, int64_t tokens, int64_t rows) {
  const at::Tensor map = aten(call.input("row_id_map"));
  const int64_t picks = map.size(0);
  require(picks >= 1 && picks <= kMaxPicks, "row_id_map must have 1 to 128 picks, not ", picks);
  require(map.size(1) == tokens, "row_id_map has ", map.size(1), " columns, the call has ", tokens, " tokens");
  const at::Tensor flat = map.t().flatten().to(at::kLong);
  require(((flat >= -1) & (flat < rows)).all().item<bool>(), "row_id_map holds an entry that is neither -1 nor a row");
  const at::Tensor slots = (flat >= 0).nonzero().squeeze(1);
  const at::Tensor reached = flat.index_select(0, slots);
  const at::Tensor times = at::zeros({rows}, at::kLong).index_add(0, reached, at::full_like(reached, 1));
  require((times <= 1).all().item<bool>(), "row_id_map names a row twice");
  return {tokens, picks, slots, reached};
}

at::Tensor spread(const RowMap& map, const at::Tensor& rows) {
  at::Tensor at_picks = at::zeros({map.tokens * map.picks, rows.size(1)}, rows.options());
  at_picks.index_copy_(0, map.slots, rows.index_select(0, map.rows));
  return at_picks.view({map.tokens, map.picks, rows.size(1)});
}

bool keeps_storage(const Call& call) {
  const std::string_view compute = call.text("compute");
  require(compute == "f32" || compute == "storage", "compute must be f32 or storage, not ", compute);
  return compute == "storage";
}

const Operator kMoePermute{
    "moe_permute", kSchema, {{"fused", in_aten<permute_fused>}, {"unfused", in_aten<permute_unfused>}}};

const Operator kMoePermuteGrad{
    "moe_permute_grad",
    kGradSchema,
    {{"fused", in_aten<grad_fused>}, {"unfused", in_aten<grad_unfused>}, reference_of(builtin::kMoePermuteGrad)}};

}  // namespace fusediff::torch
