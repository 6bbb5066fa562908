// Starts a program as a process of its own and learns how it ended. Always posix_spawn, never fork: devices do not
// survive a fork. What the program does is not known here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace fusediff {

struct SpawnRequest {
  std::string program;
  std::vector<std::string> arguments;            // argv[1] and on
  std::vector<std::string> environment;          // "NAME=VALUE", in place of ours of that name
  std::vector<std::pair<int, int>> descriptors;  // ours -> the program's; all others of ours are close-on-exec
  std::string output_file;                       // stdout and stderr are appended there; "": our stderr takes both
  bool truncate_output = false;                  // start output_file anew
};

// How a process ended: signal is 0 where it exited by itself.
struct Ended {
  int signal = 0;
  int exit_code = 0;
  bool operator==(const Ended&) const = default;
};

// The program runs in a process group of its own (Ctrl-C on the terminal does not reach it), with default signal
// handling and stdin from /dev/null.
Result<pid_t> spawn(const SpawnRequest& request);

// Nothing while it still runs. ENSURES: once it has ended it is reaped, and must not be asked for again.
std::optional<Ended> poll_end(pid_t process);

// Kills what is left of the group of a process that has ended.
void kill_group(pid_t process);

// Kills the process and all of its group, and reaps it.
void kill_and_reap(pid_t process);

// Called by a program at its start: from now on it is killed when its parent ends. False: the parent, `expected`, is
// gone already.
bool die_with_parent(pid_t expected);
// No longer, from now on: for a program that hears of its parent's end in another way.
void outlive_parent();

// Caps the memory that the process can map for data, and switches core dumps off. Under AddressSanitizer, which maps
// terabytes, only the latter.
void limit_process(std::uint64_t data_bytes);

// "signal 11 (Segmentation fault)", "exit code 3".
std::string describe(const Ended& ended);

}  // namespace fusediff
