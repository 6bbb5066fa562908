// The elementwise functions of the operators, by name: oneDNN's algorithm with its two parameters, and the documented
// formula in f64. Schemas list some of the names; each must be here.
#pragma once

#include <string_view>

#include "onednn/plain.h"
#include "onednn/plan.h"

namespace fusediff::onednn {

struct Function {
  const char* name;
  dnnl::algorithm algorithm;
  float alpha;
  float beta;
  double (*exact)(double);
};

// Null for "none". REJECTED for a name that is not here.
const Function* find_function(std::string_view name);

// The function as a post-op; nothing for null.
void append(dnnl::post_ops& post_ops, const Function* function);

// The function as a primitive of its own, from `from` to `to`.
void add_eltwise(Plan& plan, const Operand& from, const Operand& to, const Function& function,
                 const dnnl::post_ops& post_ops = {});

// y = scale * x + shift as a primitive of its own.
void add_linear(Plan& plan, const Operand& from, const Operand& to, float scale, float shift);

// y = a op b as a primitive of its own; b may be 1 where a is not.
void add_binary(Plan& plan, dnnl::algorithm algorithm, const Operand& a, const Operand& b, const Operand& to);

// Each element through the function; nothing for null.
void apply(Numbers& values, const Function* function);

}  // namespace fusediff::onednn
