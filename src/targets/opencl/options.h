// What --target-option says: words NAME=VALUE, separated by commas.
#pragma once

#include <string>
#include <string_view>

namespace fusediff::opencl {

struct Options {
  int platform = 0;  // positions in the lists that OpenCL gives
  int device = 0;
  bool queue_per_thread = false;
  bool shared_scratch = false;
  bool wait_each_step = false;
  bool contract = true;
  enum class Memory { kDefault, kSvm, kBuffer } memory = Memory::kDefault;
  std::string kernels;  // "": the file that the description names
  std::string build;    // handed to the compiler of the kernels
};

// Throws kit::Failure (REJECTED) at an unknown word.
Options parse_options(std::string_view text);

}  // namespace fusediff::opencl
