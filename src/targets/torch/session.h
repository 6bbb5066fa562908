// A context of the target torch: its options. ATen keeps both, threads and CPU capability, once for a process and reads
// the second only at its first call, so a context that asks for other values than the process has is refused.
#pragma once

#include <string_view>

namespace fusediff::torch {

class Session {
 public:
  // "" or comma separated: threads=N, at::set_num_threads(N); capability=default|avx2|avx512, ATEN_CPU_CAPABILITY. What
  // is left out is as the library and its environment have it. REJECTED: an unknown option or value, a capability that
  // the CPU lacks, a value that differs from the one of the process.
  explicit Session(std::string_view options);
};

}  // namespace fusediff::torch
