// What a host leaves behind when a signal ends it, and the pages that end it. Needs nothing of the project but headers,
// so that a host in another language can load it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusediff {

// From now on a fault writes LastWords to the start of the region, goes to whoever had the signal before, and ends the
// process. Faults of threads that never called serve_here() are the target's own threads'.
void report_faults(std::byte* region, std::uint64_t bytes);
// The calling thread serves calls; gives it a signal stack.
void serve_here();
// Closes the first page and the last two of a block. False: the system refuses.
bool close_guards(std::byte* block, std::uint64_t bytes);

}  // namespace fusediff
