// aclnnMoeTokenPermute and aclnnMoeTokenUnpermute by the built-in fused paths. Sorted indices [T * K] are row_id_map
// [K, T] with other strides.
#include "aclnn/emulation/builtin_call.h"

using namespace fusediff::emulated;
using namespace fusediff;

namespace {

Tensor as_row_map(const Tensor& sorted, int64_t picks) {
  kit::require(sorted.shape.size() == 1 && picks >= 1 && sorted.shape[0] % picks == 0,
               "sortedIndices has a wrong shape");
  return {{picks, sorted.shape[0] / picks}, {sorted.stride[0], picks * sorted.stride[0]}, sorted.type, sorted.data};
}

Plan permute(const Tensor& tokens, const Tensor& indices, int64_t rows, bool padded, const Tensor& out,
             const Tensor& sorted) {
  kit::require(!padded && indices.shape.size() == 2 && rows >= 0, "paddedMode false and indices [T, K] are emulated");
  auto call = std::make_shared<BuiltinCall>(builtin::kMoePermute);
  call->input("tokens", tokens);
  call->input("indices", indices);
  call->output("row_id_map", as_row_map(sorted, indices.shape[1]));
  call->output("out", out);
  call->integer("num_out_tokens", rows == 0 ? indices.count() : rows);
  return {[call](void* workspace, Context&) { call->run(workspace); }, call->workspace_bytes()};
}

Plan unpermute(const Tensor& rows, const Tensor& sorted, const Tensor* probs, bool padded, const aclIntArray* shape,
               const Tensor& out) {
  kit::require(!padded && shape == nullptr && out.shape.size() == 2, "paddedMode false alone is emulated");
  const int64_t tokens = out.shape[0];
  const int64_t picks = probs == nullptr ? 1 : probs->shape[1];
  auto call = std::make_shared<BuiltinCall>(builtin::kMoeUnpermute);
  call->input("in", rows);
  call->input("row_id_map", as_row_map(sorted, picks));
  call->input("probs", probs == nullptr ? absent(aclnn::kFloat, {tokens, picks}) : *probs, probs != nullptr);
  call->output("out", out);
  call->text("compute", "f32");
  return {[call](void* workspace, Context&) { call->run(workspace); }, call->workspace_bytes()};
}

}  // namespace

ACL_ENTRY int aclnnMoeTokenPermuteGetWorkspaceSize(const aclTensor* tokens, const aclTensor* indices, int64_t rows,
                                                   bool padded, const aclTensor* out, const aclTensor* sorted,
                                                   uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnMoeTokenPermute", bytes, executor, {tokens, indices, out, sorted},
              [&] { return permute(*tokens, *indices, rows, padded, *out, *sorted); });
}
ACLNN_SECOND_STAGE(aclnnMoeTokenPermute)

ACL_ENTRY int aclnnMoeTokenUnpermuteGetWorkspaceSize(const aclTensor* rows, const aclTensor* sorted,
                                                     const aclTensor* probs, bool padded, const aclIntArray* shape,
                                                     aclTensor* out, uint64_t* bytes, aclOpExecutor** executor) {
  return plan("aclnnMoeTokenUnpermute", bytes, executor, {rows, sorted, out},
              [&] { return unpermute(*rows, *sorted, probs, padded, shape, *out); });
}
ACLNN_SECOND_STAGE(aclnnMoeTokenUnpermute)
