// A case bound to an operator: every size, attribute and layout decided and checked, before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/case.h"
#include "model/schema.h"
#include "model/tensor.h"

namespace fusediff {

inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;

struct CallAttr {
  std::string name;
  AttrValue value;
};

// Everything that all runs of a case share. Tensors in schema order; absent ones are there with present == false.
struct Call {
  const Operator* op = nullptr;
  std::vector<std::int64_t> dims;  // in the order of op->dims
  std::vector<CallAttr> attrs;     // every attribute, in schema order
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<Tensor> givens;
  std::vector<std::string> notes;  // e.g. a dim outside the tried range
  std::string broken;              // bound with `outside`: the first `where` that does not hold; "": the call is legal

  // Evaluates a schema expression with this call's dims and attributes.
  Result<std::int64_t> evaluate(const Expr& expr) const;
  ExprScope scope() const;
};

// What is legal is `where`, `if`, choices, layouts and inplace rules; values are checked where they are drawn. An error
// carries the JSON pointer into the case and what would be legal. max_bytes: the memory cap of the run, for all
// tensors, those that are not passed included. outside: `where` may be broken (dims must still be sizes). op must
// outlive the call. Tensors that may have one dtype only need not stand under "dtypes".
Result<Call> bind(const Case& c, const Operator& op, std::uint64_t max_bytes, bool outside = false);

}  // namespace fusediff
