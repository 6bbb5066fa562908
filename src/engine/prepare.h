// From a case to what both sides receive: the bound call and the bytes of every input, saved ones computed.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "engine/check.h"
#include "engine/draw_cache.h"
#include "model/call.h"
#include "run/runner.h"

namespace fusediff {

using Bytes = std::vector<std::byte>;

struct Prepared {
  Call call;                   // as the target side's record spells it
  std::vector<Bytes> inputs;   // [call.inputs] stored elements
  std::vector<Bytes> givens;   // [call.givens]
  std::vector<bool> computed;  // [call.inputs] a saved tensor that the case does not override

  std::vector<std::span<const std::byte>> views() const;
};

// Why a case cannot be run here: a skip, or an error of the case.
struct Unprepared {
  bool skip = false;
  Error error;
};

// Binds the case to the target side's operator, draws every input, and computes saved ones by the unfused path of the
// against side, or of whoever offers the producer.
std::variant<Prepared, Unprepared> prepare(const Case& c, const Operator& op, const Comparison& comparison,
                                           const CheckOptions& options, Runner& runner, DrawCache& cache);

// The call with every output asked for that the case does without, where its `if` holds; nothing where that adds none.
std::optional<Call> fuller_call(const Case& c, const Call& call);

// The inputs of `prepared` in f64, all logical elements, saved ones computed anew in f64. absolute: of the magnitudes.
// Nothing when a producer does not offer f64. Matches widened(prepared.call).
std::optional<std::vector<Bytes>> widened_inputs(const Prepared& prepared, const Comparison& comparison,
                                                 const CheckOptions& options, Runner& runner, bool absolute);

}  // namespace fusediff
