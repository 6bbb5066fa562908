// See product.h.
#include "onednn/product.h"

namespace fusediff::onednn {

using namespace kit;

Epilogue::Epilogue(const Call& call, float by)
    : bias(Plan::has(call, "bias")),
      residual(Plan::has(call, "residual")),
      scale(by),
      activation(find_function(call.text("activation"))) {}

dnnl::primitive_attr fused_epilogue(const Call& call, const Plan& plan, const Epilogue& epilogue,
                                    std::vector<Argument>& arguments) {
  dnnl::post_ops post_ops;
  append(post_ops, epilogue.activation);
  if (epilogue.residual) {
    const Operand residual = plan.input(call, "residual");
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(post_ops.len()) | DNNL_ARG_SRC_1, residual});
    post_ops.append_binary(dnnl::algorithm::binary_add, residual.desc);
  }
  dnnl::primitive_attr attributes = plan.attributes(post_ops);
  if (epilogue.scale != 1) {
    attributes.set_output_scales(0, {epilogue.scale});
  }
  return attributes;
}

void add_unfused(const Call& call, Plan& plan, const Epilogue& epilogue,
                 const std::function<void(const Operand& to)>& product) {
  const Operand y = plan.output(call, "y");
  int left = 1 + (epilogue.bias ? 1 : 0) + (epilogue.scale != 1 ? 1 : 0) + (epilogue.activation != nullptr ? 1 : 0) +
             (epilogue.residual ? 1 : 0);
  // Where the next primitive writes: the last one to y.
  const auto next = [&] { return --left == 0 ? y : plan.between(y.dims(), y.desc.data_type()); };
  Operand now = next();
  product(now);
  if (epilogue.bias) {
    const Operand to = next();
    add_binary(plan, dnnl::algorithm::binary_add, now, plan.input(call, "bias").as({1, y.dims()[1]}), to);
    now = to;
  }
  if (epilogue.scale != 1) {
    const Operand to = next();
    add_linear(plan, now, to, epilogue.scale, 0);
    now = to;
  }
  if (epilogue.activation != nullptr) {
    const Operand to = next();
    add_eltwise(plan, now, to, *epilogue.activation);
    now = to;
  }
  if (epilogue.residual) {
    add_binary(plan, dnnl::algorithm::binary_add, now, plan.input(call, "residual"), next());
  }
}

void finish_reference(const Call& call, const Epilogue& epilogue, Numbers y) {
  const Numbers bias = epilogue.bias ? numbers(call.input("bias")) : Numbers();
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = (y[i] + (epilogue.bias ? bias[i % bias.size()] : 0)) * static_cast<double>(epilogue.scale);
  }
  apply(y, epilogue.activation);
  if (epilogue.residual) {
    const Numbers residual = numbers(call.input("residual"));
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] += residual[i];
    }
  }
  store(call.output("y"), y);
}

}  // namespace fusediff::onednn
