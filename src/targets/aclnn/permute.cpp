// moe_permute and moe_unpermute by aclnnMoeTokenPermute and aclnnMoeTokenUnpermute, against the built-in compositions.
// The library's sorted indices [T * K] are row_id_map [K, T] transposed, and name every row: cut-off picks, which the
// map marks with -1, are not documented there, nor are calls without tokens.
#include "aclnn/operators.h"
#include "aclnn/steps.h"

namespace fusediff::aclnn {
namespace {

constexpr char kPermuteSchema[] = R"({"name": "moe_permute", "like": "builtin", "paths": ["fused"],
  "dtype": {"tokens": ["f32", "f16", "bf16"]}, "where": ["T >= 1", "N == T * K"]})";
constexpr char kUnpermuteSchema[] = R"({"name": "moe_unpermute", "like": "builtin", "paths": ["fused"],
  "dtype": {"in": ["f32", "f16", "bf16"]}, "where": ["T >= 1", "N == T * K", "compute == 'f32'"]})";

// One copy that turns [T, K] into [K, T] or back.
void copy(Steps& s, const Value& to, const Value& from) { s.step("aclnnInplaceCopy", to.handle, from.handle); }

void permute(Steps& s) {
  const kit::Tensor map = s.call().output("row_id_map");
  const int64_t picks = map.size(0);
  const int64_t tokens = map.size(1);
  const Value sorted = s.temporary(kInt32, {tokens * picks});
  const Value x = s.input("tokens");
  const Value indices = s.input("indices");
  const Value out = s.output("out");
  s.step("aclnnMoeTokenPermute", x.handle, indices.handle, s.call().integer("num_out_tokens"), false, out.handle,
         sorted.handle);
  copy(s, s.transposed(map), s.view(sorted, {tokens, picks}));
}

void unpermute(Steps& s) {
  const kit::Tensor map = s.call().input("row_id_map");
  const int64_t picks = map.size(0);
  const int64_t tokens = map.size(1);
  const Value sorted = s.temporary(kInt32, {tokens * picks});
  copy(s, s.view(sorted, {tokens, picks}), s.transposed(map));
  Value probs = s.input("probs");
  if (probs.handle == nullptr) {  // documented without probabilities for one pick alone
    probs = s.temporary(kFloat, {tokens, picks});
    s.step("aclnnInplaceOne", probs.handle);
  }
  const Value in = s.input("in");
  const Value out = s.output("out");
  s.step("aclnnMoeTokenUnpermute", in.handle, sorted.handle, probs.handle, false,
         static_cast<const aclIntArray*>(nullptr), out.handle);
}

}  // namespace

constinit const kit::Operator kMoePermute{
    "moe_permute", kPermuteSchema, {{"fused", run_steps<permute>, measure_steps<permute>}}};
constinit const kit::Operator kMoeUnpermute{
    "moe_unpermute", kUnpermuteSchema, {{"fused", run_steps<unpermute>, measure_steps<unpermute>}}};

}  // namespace fusediff::aclnn
