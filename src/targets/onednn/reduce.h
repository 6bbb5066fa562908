// A reduction as a primitive of its own: shared by softmax, layer_norm and reduction.
#pragma once

#include "onednn/plan.h"

namespace fusediff::onednn {

// Along the dimensions in which `to` is 1 and `from` is not. p and eps count for the Lp norms alone.
void add_reduction(Plan& plan, dnnl::algorithm algorithm, const Operand& from, const Operand& to, float p = 0,
                   float eps = 0, const dnnl::post_ops& post_ops = {});

}  // namespace fusediff::onednn
