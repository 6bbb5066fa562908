// The element type that an input gets: what the file says, what --dtype says, what the operator takes. Reads no values.
#pragma once

#include "base/status.h"
#include "import/captured.h"
#include "import/stream.h"
#include "import/tensors.h"
#include "model/case.h"
#include "model/schema.h"

namespace fusediff {

class Typing {
 public:
  // All three outlive it.
  Typing(const Operator& op, const TensorOptions& options, const Say& say) : op_(op), options_(options), say_(say) {}

  // Fills plan.from and plan.to.
  Status decide(const CapturedTensor& tensor, const InputRule& rule, TensorPlan& plan) const;

  // Is the dtype one that the rule allows? The choice stands in the case where there is one.
  Status enter(const InputRule& rule, const TensorPlan& plan, Case& c) const;

 private:
  const Operator& op_;
  const TensorOptions& options_;
  const Say& say_;
};

}  // namespace fusediff
