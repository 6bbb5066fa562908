// The options of open(), and the instruction set level of the process: oneDNN reads it once, before its first
// primitive. Not here: anything that computes.
#pragma once

#include <string>
#include <string_view>

namespace fusediff::onednn {

struct Options {
  // "default" or a name of the list in options.cpp.
  std::string isa = "default";
  // True: each call brings the scratchpad, out of its workspace. False: each primitive keeps its own, and then oneDNN
  // forbids to execute one from several threads at once.
  bool user_scratchpad = true;
  // True: one primitive object per kind of call, executed by all threads. False: one for each thread.
  bool shared_primitive = true;
  // OpenMP threads in a call; 0: what OpenMP gives.
  int threads = 1;
  // True: calls with an empty tensor are UNSUPPORTED.
  bool skip_empty = false;
};

// Comma separated key=value; "" is the defaults. REJECTED for what is unknown.
Options parse_options(std::string_view text);

// Brings the process to the level, or REJECTED with one line: this CPU has not got it, or the process runs at another.
// Threads may call it at once.
void claim_isa(const std::string& isa);

// Makes `threads` the number of OpenMP threads of calls from this thread.
void set_threads(int threads);

}  // namespace fusediff::onednn
