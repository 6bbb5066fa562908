// The records of the target: those of the built-in operators, narrowed to what the library's kernels take: dense
// tensors that begin at 16 bytes, rows of whole 16-byte words in every dtype, at least one token and one row. No code.
//
// The library keeps sums in the storage dtype and has no say in it; `compute` is f32 here, so that the other side
// computes as a framework does in f32 and the difference shows. The bounds hold for both (see the built-in records).
#pragma once

namespace fusediff::te {

#define FUSEDIFF_TE_WHERE R"("where": ["T >= 1", "N >= 1", "H % 16 == 0"])"
#define FUSEDIFF_TE_WHERE_F32 R"("where": ["T >= 1", "N >= 1", "H % 16 == 0", "compute == 'f32'"])"
#define FUSEDIFF_TE_DTYPES R"(["f32", "f16", "bf16", "f8e5m2", "f8e4m3fn"])"
#define FUSEDIFF_TE_MAP                                                                                    \
  R"({"name": "row_id_map", "shape": ["K", "T"], "dtype": "i32", "role": "saved", "align": 16, "saved": )" \
  R"({"op": "moe_permute", "output": "row_id_map", "inputs": {"tokens": "tokens", "indices": "indices"}}})"
#define FUSEDIFF_TE_PROBS \
  R"({"name": "probs", "shape": ["T", "K"], "dtype": "f32", "role": "probability", "optional": true, "align": 16})"

inline constexpr char kPermuteRecord[] = R"({
  "name": "moe_permute", "like": "builtin", "paths": ["fused"], )" FUSEDIFF_TE_WHERE R"(,
  "inputs": [
    {"name": "tokens", "shape": ["T", "H"], "dtype": )" FUSEDIFF_TE_DTYPES R"(, "align": 16},
    {"name": "indices", "shape": ["T", "K"], "dtype": "i32", "role": "index", "range": [0, "E - 1"],
     "distinct": true, "align": 16}],
  "outputs": [
    {"name": "row_id_map", "shape": ["K", "T"], "dtype": "i32", "stage": 1, "align": 16,
     "always": [{"range": [-1, "N - 1"]}]},
    {"name": "out", "shape": ["N", "H"], "dtype": "=tokens", "stage": 2, "align": 16,
     "bound": {"ulp": "0", "of": "element", "why": "a copy rounds nothing"}}]
})";

inline constexpr char kPermuteGradRecord[] = R"({
  "name": "moe_permute_grad", "like": "builtin", "paths": ["fused"], )" FUSEDIFF_TE_WHERE_F32 R"(,
  "inputs": [
    {"name": "grad_out", "shape": ["N", "H"], "dtype": )" FUSEDIFF_TE_DTYPES R"(, "role": "cotangent", "align": 16},
    )" FUSEDIFF_TE_MAP R"(],
  "outputs": [
    {"name": "grad_tokens", "shape": ["T", "H"], "dtype": "=grad_out", "stage": 1, "align": 16,
     "bound": {"ulp": "K", "of": "abs_inputs",
               "why": "K - 1 additions that each round once in the storage dtype (8-bit dtypes: f16), and the last rounding: as the built-in moe_permute_grad"}}]
})";

inline constexpr char kUnpermuteRecord[] = R"({
  "name": "moe_unpermute", "like": "builtin", "paths": ["fused"], )" FUSEDIFF_TE_WHERE_F32 R"(,
  "inputs": [
    {"name": "in", "shape": ["N", "H"], "dtype": )" FUSEDIFF_TE_DTYPES R"(, "align": 16},
    )" FUSEDIFF_TE_MAP ",\n    " FUSEDIFF_TE_PROBS R"(],
  "outputs": [
    {"name": "out", "shape": ["T", "H"], "dtype": "=in", "stage": 1, "align": 16,
     "bound": {"ulp": "3 * K", "of": "abs_inputs",
               "why": "as the built-in moe_unpermute, 2 K for the products and the sum, and one more for each probability, which is rounded to the storage dtype before it is used: half a unit of a term"}}]
})";

inline constexpr char kUnpermuteGradRecord[] = R"({
  "name": "moe_unpermute_grad", "like": "builtin", "paths": ["fused"], )" FUSEDIFF_TE_WHERE R"(,
  "inputs": [
    {"name": "grad_out", "shape": ["T", "H"], "dtype": )" FUSEDIFF_TE_DTYPES R"(, "role": "cotangent", "align": 16},
    {"name": "in", "shape": ["N", "H"], "dtype": "=grad_out", "align": 16},
    )" FUSEDIFF_TE_MAP ",\n    " FUSEDIFF_TE_PROBS R"(],
  "outputs": [
    {"name": "grad_in", "shape": ["N", "H"], "dtype": "=grad_out", "stage": 1, "align": 16,
     "bound": {"ulp": "2", "of": "element",
               "why": "the probability is rounded to the storage dtype (8-bit: f16), then one product: two relative roundings of half a unit, at most doubled in ULP at a power of two"}},
    {"name": "grad_probs", "shape": ["T", "K"], "dtype": "f32", "stage": 1, "optional": true, "align": 16,
     "bound": {"ulp": {"f32": "2 * H", "bf16": "2 * H + 65536"}, "by": "grad_out", "of": "abs_inputs",
               "why": "as the built-in moe_unpermute_grad; in bf16 each product is rounded to bf16 first, by at most 2^-8 of itself, which is 2^16 ULP of f32. In f16 (8-bit dtypes too) products underflow: no bound"}}]
})";

}  // namespace fusediff::te
