// A recording without its tensors as JSON text, for a line between processes. Read back to the same struct; the tensors
// go as safetensors.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "model/recording.h"

namespace fusediff {

std::string write_recording(const Recording& recording);
// Without inputs and outputs. An error says what is wrong.
Result<Recording> parse_recording(std::string_view json);

}  // namespace fusediff
