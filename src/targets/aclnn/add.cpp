// add by aclnnAdd, as a control: one operator that is known to be clean, under threads too. Where the output lies on an
// input it is aclnnInplaceAdd, which is what the library offers for that.
#include "aclnn/operators.h"
#include "aclnn/steps.h"

namespace fusediff::aclnn {
namespace {

constexpr char kSchema[] =
    R"({"name": "add", "like": "builtin", "paths": ["fused"], "dtype": {"a": ["f32", "f16", "bf16"]}})";

void add(Steps& s) {
  const Value a = s.input("a");
  const Value b = s.input("b");
  const aclScalar* alpha = s.scalar(1);
  const void* y = s.call().output("y").data();
  if (y != nullptr && (y == a.data || y == b.data)) {
    s.step("aclnnInplaceAdd", y == a.data ? a.handle : b.handle, y == a.data ? b.handle : a.handle, alpha);
    return;
  }
  s.step("aclnnAdd", a.handle, b.handle, alpha, s.output("y").handle);
}

}  // namespace

constinit const kit::Operator kAdd{"add", kSchema, {{"fused", run_steps<add>, measure_steps<add>}}};

}  // namespace fusediff::aclnn
