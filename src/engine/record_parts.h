// A recording while it is put together: calls and tensors under their names. Runs nothing.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/prepare.h"
#include "model/call.h"
#include "model/execution.h"
#include "model/finding.h"
#include "model/recording.h"

namespace fusediff {

// The call of a path, its inputs not stored anywhere yet.
RecordedCall recorded_call(const Call& call, const std::string& path);

// Stores the inputs of a call under prefix + name and says so in `made`. views: [call.inputs] stored elements.
void store_inputs(const Call& call, std::span<const std::span<const std::byte>> views, const std::string& prefix,
                  RecordedCall& made, Recording& recording);
// The same, where a tensor that is stored with the same bytes under another name is not stored again.
void store_other_inputs(const Call& call, std::span<const std::span<const std::byte>> views, const std::string& prefix,
                        RecordedCall& made, Recording& recording);

// Stores outputs (dense, in the order of call.outputs) under prefix + name; those that are empty for want of being
// asked for, or given, are left out.
void store_outputs(const Call& call, const std::vector<Bytes>& outputs, const std::vector<bool>& given,
                   const std::string& prefix, Recording& recording);

// "target/", "against/".
std::string prefix_of(Side side);

}  // namespace fusediff
