// A call as another operator record spells it: the against side and the truth may list tensors in another order, or
// fewer.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "model/call.h"

namespace fusediff {

struct Adapted {
  Call call;
  std::vector<int> input_from;   // [call.inputs]: index in the original, -1: absent there
  std::vector<int> output_from;  // [original outputs]: index in call.outputs, -1: not given here
};

// Matched by name. What the other record does not know (a tensor that is present, an attribute off its default, another
// shape, strides or a dtype outside its choices, a broken `where`) is an error: the other side does not offer this
// call. outside: dtypes are not looked at, and the first `where` that does not hold stands in call.broken. What that
// record always writes is given memory though nobody asks for it. The second side always runs with outputs apart from
// inputs, except where the operator only updates.
Result<Adapted> adapt(const Call& original, const Operator& to, bool outside);

// Every float tensor f64, dense and apart, every output asked for whose `if` holds: the call of the truth.
Call widened(const Call& call);

}  // namespace fusediff
