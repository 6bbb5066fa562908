// Saved tensors: computed once by the operator that the schema names, from a case's own inputs and givens.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "engine/check.h"
#include "model/call.h"
#include "run/runner.h"

namespace fusediff {

// A tensor of the case with its stored elements.
struct Source {
  const Tensor* tensor = nullptr;
  const std::vector<std::byte>* bytes = nullptr;
};

struct SavedRequest {
  const Call* call = nullptr;  // whose input is to be saved
  const SavedRule* rule = nullptr;
  const Tensor* tensor = nullptr;                          // that input: its shape and dtype
  const std::map<std::string, Source>* sources = nullptr;  // inputs and givens of the case by name
};

// The stored elements of the saved tensor, by the unfused path of the first of against, target and fallback that offers
// the producer. An error says which producer failed and why: the case is then skipped.
Result<std::vector<std::byte>> compute_saved(const SavedRequest& request, const Comparison& comparison,
                                             const CheckOptions& options, Runner& runner);

}  // namespace fusediff
