// cross_entropy: the loss of each row. Fused: at::cross_entropy_loss, logsumexp and log_softmax. Unfused: amax, sub,
// exp, sum, log, gather, mean. Both in f32 for the 16-bit dtypes, as training code that begins with .float() has it.
#include "builtin/operators.h"
#include "torch/aten.h"
#include "torch/operators.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/stack.h>

namespace fusediff::torch {
namespace {

using namespace kit;

constexpr int64_t kIgnored = -100;

struct Loss {
  at::Tensor logits, target;  // in the type to compute in; [R] i64
  double smoothing;
};

Loss read_loss(const Call& call) {
  const Loss loss{widened(aten(call.input("logits"))), aten(call.input("target")), call.real("label_smoothing")};
  require(loss.smoothing >= 0 && loss.smoothing < 1, "label_smoothing must be 0 or more and below 1");
  require(loss.logits.size(1) >= 1, "logits must have at least one class");
  const at::Tensor legal = ((loss.target >= 0) & (loss.target < loss.logits.size(1))) | (loss.target == kIgnored);
  require(legal.all().item<bool>(), "target holds a label that is neither a class nor -100");
  return loss;
}

void give_all(const Call& call, const at::Tensor& lse, const at::Tensor& nll, const at::Tensor& smooth,
              const at::Tensor& loss) {
  give(call.output("lse"), lse);
  give(call.output("terms"), at::stack({lse, nll, smooth, loss}, 1));
  give(call.output("loss"), loss);
}

void loss_fused(const Call& call) {
  const Loss l = read_loss(call);
  const at::Tensor loss = at::cross_entropy_loss(l.logits, l.target, {}, at::Reduction::None, kIgnored, l.smoothing);
  const at::Tensor log_odds = at::log_softmax(l.logits, 1);
  const at::Tensor nll = at::nll_loss(log_odds, l.target, {}, at::Reduction::None, kIgnored);
  give_all(call, at::logsumexp(l.logits, 1), nll, log_odds.mean(1).neg(), loss);
}

void loss_unfused(const Call& call) {
  const Loss l = read_loss(call);
  const at::Tensor max = l.logits.amax(1, true);
  const at::Tensor shifted = l.logits - max;
  const at::Tensor log_sum = shifted.exp().sum(1, true).log();
  const at::Tensor ignored = l.target == kIgnored;
  const at::Tensor label = l.target.masked_fill(ignored, 0).unsqueeze(1);
  const at::Tensor nll = (log_sum - shifted.gather(1, label)).squeeze(1).masked_fill(ignored, 0);
  const at::Tensor smooth = log_sum.squeeze(1) - shifted.mean(1);
  at::Tensor loss = nll;
  if (l.smoothing != 0) {
    loss = (nll * (1 - l.smoothing) + smooth * l.smoothing).masked_fill(ignored, 0);
  }
  give_all(call, (max + log_sum).squeeze(1), nll, smooth, loss);
}

constexpr char kSchema[] = R"({
  "name": "cross_entropy", "like": "builtin", "paths": ["fused", "unfused", "reference"],
  "dtype": {"target": ["i64"]}
})";

}  // namespace

const Operator kCrossEntropy{
    "cross_entropy",
    kSchema,
    {{"fused", in_aten<loss_fused>}, {"unfused", in_aten<loss_unfused>}, reference_of(builtin::kCrossEntropy)}};

}  // namespace fusediff::torch
