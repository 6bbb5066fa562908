// What a host answered, or how it ended. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "base/spawn.h"
#include "model/execution.h"
#include "target/fusediff_target.h"

namespace fusediff {

// How a host ended, and where.
struct HostEnd {
  Ended ended;
  int code = 0;                // siginfo's si_code, 0 where it is not known
  std::uintptr_t address = 0;  // of SIGSEGV and SIGBUS; in a tensor: as this process sees that memory
  std::uintptr_t stack = 0;
  Access access = Access::kUnknown;
  bool own_thread = false;  // on a thread that the target had started
};

struct HostAnswer {
  enum class Kind { kAnswered, kThrew, kEnded, kGivenUp } kind = Kind::kAnswered;
  int status = FUSEDIFF_OK;
  std::string text;          // last_error(), or what was thrown
  std::string note;          // the target's own words on the call: fusediff_note()
  std::string printed;       // what came to stdout and stderr meanwhile, cut to its end
  std::uint64_t number = 0;  // a context, bytes of workspace, or memory
  HostEnd end;               // kEnded
};

}  // namespace fusediff
