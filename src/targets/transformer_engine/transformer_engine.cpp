// The target `transformer_engine`: nvte_permute and nvte_unpermute as the fused paths of the moe_permute family. The
// backward of each is the other one, as the library's own Python layer calls them.
#include <algorithm>
#include <numeric>
#include <vector>

#include "kit/target.h"
#include "transformer_engine/context.h"
#include "transformer_engine/records.h"

namespace fusediff::te {
namespace {

using kit::Call;
using kit::Carver;

// Sizes of a call. REJECTED outside what the kernels take.
struct Sizes {
  int64_t tokens, picks, rows, columns;

  // `many`: a tensor [T, H]; `few`: one [N, H]; `map`: one [K, T].
  Sizes(const kit::Tensor& many, const kit::Tensor& few, const kit::Tensor& map)
      : tokens(many.size(0)), picks(map.size(0)), rows(few.size(0)), columns(many.size(1)) {
    few.require_shape({rows, columns});
    map.require_shape({picks, tokens});
    kit::require(tokens >= 1 && rows >= 1 && rows <= tokens * picks, "there must be 1 to ", tokens * picks,
                 " rows and at least one token");
    kit::require(picks >= 1 && picks <= 128, "there must be 1 to 128 picks, not ", picks);
    kit::require(columns >= 16 && columns % 16 == 0, "rows must have a multiple of 16 columns, not ", columns);
  }

  int n_tokens() const { return static_cast<int>(tokens); }
  int n_picks() const { return static_cast<int>(picks); }
  int n_rows() const { return static_cast<int>(rows); }
  int n_columns() const { return static_cast<int>(columns); }
};

// A handle of a tensor of the call. REJECTED unless it is dense; UNSUPPORTED for a dtype the library has not.
Handle handle(const Context& context, const kit::Tensor& tensor) {
  kit::require(tensor.rank() == 2 && (tensor.size(1) == 1 || tensor.stride(1) == 1) &&
                   (tensor.size(0) <= 1 || tensor.stride(0) == tensor.size(1)),
               tensor.name(), " must be dense");
  return Handle(context.library(), tensor.data(), tensor.dtype(), {tensor.size(0), tensor.size(1)});
}

std::vector<int32_t> read_indices(const Context& context, const kit::Tensor& tensor) {
  std::vector<int32_t> values(static_cast<size_t>(tensor.count()));
  kit::require(tensor.dtype() == FUSEDIFF_I32, tensor.name(), " must be i32");
  context.read(values.data(), tensor.data(), values.size() * sizeof(int32_t));
  return values;
}

// REJECTED where a row is out of range: the kernels would read and write there.
void check_map(const Context& context, const kit::Tensor& map, int64_t rows) {
  for (const int32_t row : read_indices(context, map)) {
    kit::require(row >= -1 && row < rows, "row_id_map has an entry that is neither -1 nor one of ", rows, " rows");
  }
}

// Flat positions (token * picks + pick), stably sorted by expert.
std::vector<int32_t> sorted_rows(const std::vector<int32_t>& experts) {
  std::vector<int32_t> order(experts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return experts[static_cast<size_t>(a)] < experts[static_cast<size_t>(b)];
  });
  return order;
}

size_t permute_workspace(const Call& call) {
  Carver carver;
  carver.take<int32_t>(call.input("indices").count());
  return carver.bytes();
}

void permute(const Call& call) {
  const Context& context = call.context<Context>();
  context.use_device();
  const Sizes s(call.input("tokens"), call.output("out"), call.output("row_id_map"));
  call.input("indices").require_shape({s.tokens, s.picks});
  kit::require(call.integer("num_out_tokens") == s.rows, "num_out_tokens and out differ");
  int32_t* sorted = call.workspace().take<int32_t>(s.tokens * s.picks);
  const std::vector<int32_t> order = sorted_rows(read_indices(context, call.input("indices")));
  context.write(sorted, order.data(), order.size() * sizeof(int32_t));
  const Handle none(context.library());
  const Handle sorted_row_id(context.library(), sorted, FUSEDIFF_I32, {s.tokens * s.picks});
  const Handle tokens = handle(context, call.input("tokens"));
  const Handle out = handle(context, call.output("out"));
  const Handle map = handle(context, call.output("row_id_map"));
  context.library().permute()(tokens, out, sorted_row_id, map, none, none, none, s.n_tokens(), s.n_picks(),
                              s.n_columns(), s.n_rows(), context.stream());
  context.finish();
}

// out = the sums over picks of the rows of `in`, by probabilities where there are any.
void sum_rows(const Call& call, const kit::Tensor& in, const kit::Tensor& out, const kit::Tensor* probs) {
  const Context& context = call.context<Context>();
  context.use_device();
  const kit::Tensor map = call.input("row_id_map");
  const Sizes s(out, in, map);
  kit::require(call.text("compute") == "f32", "compute must be f32: the library has no say in it");
  check_map(context, map, s.rows);
  const bool weighted = probs != nullptr && probs->present();
  if (weighted) {
    probs->require_shape({s.tokens, s.picks});
  }
  const Handle from = handle(context, in);
  const Handle to = handle(context, out);
  const Handle row_id_map = handle(context, map);
  const Handle none(context.library());
  if (weighted) {
    const Handle weights = handle(context, *probs);
    context.library().unpermute()(from, to, row_id_map, weights, s.n_tokens(), s.n_picks(), s.n_columns(),
                                  context.stream());
    context.finish();
  } else {
    context.library().unpermute()(from, to, row_id_map, none, s.n_tokens(), s.n_picks(), s.n_columns(),
                                  context.stream());
    context.finish();
  }
}

void permute_grad(const Call& call) { sum_rows(call, call.input("grad_out"), call.output("grad_tokens"), nullptr); }

void unpermute(const Call& call) {
  const kit::Tensor probs = call.input("probs");
  sum_rows(call, call.input("in"), call.output("out"), &probs);
}

// The library writes grad_probs whenever there are probabilities: where it is not wanted, into the workspace.
size_t unpermute_grad_workspace(const Call& call) {
  Carver carver;
  carver.take<float>(call.output("grad_probs").count());
  return carver.bytes();
}

void unpermute_grad(const Call& call) {
  const Context& context = call.context<Context>();
  context.use_device();
  const kit::Tensor map = call.input("row_id_map");
  const kit::Tensor wanted = call.output("grad_probs");
  const Sizes s(call.input("grad_out"), call.output("grad_in"), map);
  call.input("in").require_shape({s.rows, s.columns});
  call.input("probs").require_shape({s.tokens, s.picks});
  wanted.require_shape({s.tokens, s.picks});
  if (!call.input("probs").present()) {
    kit::unsupported("without probabilities the library's backward has one pick and no gradient of them");
  }
  check_map(context, map, s.rows);
  float* unwanted = call.workspace().take<float>(s.tokens * s.picks);
  const Handle none(context.library());
  const Handle grad_out = handle(context, call.input("grad_out"));
  const Handle grad_in = handle(context, call.output("grad_in"));
  const Handle row_id_map = handle(context, map);
  const Handle probs = handle(context, call.input("probs"));
  const Handle in = handle(context, call.input("in"));
  const Handle grad_probs(context.library(), wanted.present() ? wanted.data() : unwanted, FUSEDIFF_F32,
                          {s.tokens, s.picks});
  context.library().permute()(grad_out, grad_in, none, row_id_map, probs, grad_probs, in, s.n_tokens(), s.n_picks(),
                              s.n_columns(), 0, context.stream());
  context.finish();
}

constinit const kit::Operator kPermute{"moe_permute", kPermuteRecord, {{"fused", permute, permute_workspace}}};
constinit const kit::Operator kPermuteGrad{"moe_permute_grad", kPermuteGradRecord, {{"fused", permute_grad}}};
constinit const kit::Operator kUnpermute{"moe_unpermute", kUnpermuteRecord, {{"fused", unpermute}}};
constinit const kit::Operator kUnpermuteGrad{
    "moe_unpermute_grad", kUnpermuteGradRecord, {{"fused", unpermute_grad, unpermute_grad_workspace}}};

using kit::detail::guarded;

Context& context_of(void* context) { return *static_cast<Context*>(context); }

void* alloc(void* context, size_t bytes) {
  void* memory = nullptr;
  guarded([&] { memory = context_of(context).alloc(bytes); });
  return memory;
}

void release(void* context, void* memory) { context_of(context).release(memory); }

fusediff_status write(void* context, void* memory, const void* host, size_t bytes) {
  return guarded([&] { context_of(context).write(memory, host, bytes); });
}

fusediff_status read(void* context, void* host, const void* memory, size_t bytes) {
  return guarded([&] { context_of(context).read(host, memory, bytes); });
}

fusediff_target_v1 make_table() {
  fusediff_target_v1 table = *kit::detail::entry<Context>(
      "transformer_engine", "1.0", kit::detail::listed(kPermute, kPermuteGrad, kUnpermute, kUnpermuteGrad));
  table.alloc = alloc;
  table.release = release;
  table.write = write;
  table.read = read;
  return table;
}

}  // namespace
}  // namespace fusediff::te

extern "C" FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) {
  static const fusediff_target_v1 table = fusediff::te::make_table();
  return &table;
}
