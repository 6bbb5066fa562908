// The header of a .npy file. The elements that follow it are the caller's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "import/captured.h"

namespace fusediff {

// Reads exactly so many bytes, or fails: a short read is the user's error and says so.
using ExactRead = std::function<Status(char* into, std::size_t bytes)>;

// name is left empty. A type that cannot be used is no error but a `problem`; text that is no header is an error.
// REQUIRES: `read` stands at the file's beginning. ENSURES: behind it, at the first element.
Result<CapturedTensor> read_npy_header(const ExactRead& read);

// "<f4", "|b1", "bfloat16", ...
ElementType element_type(std::string_view descr);

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

}  // namespace fusediff
