// One command of the program: its name, what it says of itself, and how it starts. The table is in commands.cpp; a new
// command is one file and one line there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fusediff {

inline constexpr int kExitClean = 0;
inline constexpr int kExitFindings = 1;
inline constexpr int kExitUser = 2;
inline constexpr int kExitOurs = 3;

using Arguments = std::vector<std::string>;

struct Command {
  std::string_view name;
  std::string_view summary;                // for the list of commands; "" hides it there
  int (*run)(const Arguments& arguments);  // what follows the command's name; the exit code
};
std::span<const Command> commands();

int run_bundle(const Arguments& arguments);
int run_check(const Arguments& arguments);
int run_fuzz(const Arguments& arguments);
int run_import(const Arguments& arguments);
int run_ledger(const Arguments& arguments);
int run_list(const Arguments& arguments);
int run_manifest(const Arguments& arguments);
int run_merge(const Arguments& arguments);
int run_minimize(const Arguments& arguments);
int run_new_target(const Arguments& arguments);
int run_replay(const Arguments& arguments);
int run_report(const Arguments& arguments);
int run_selftest(const Arguments& arguments);
int run_serve(const Arguments& arguments);

// This day where the program runs, "2026-11-30".
std::string today();

// Prints "fusediff: WHAT" on stderr; the exit code that says whose error it is.
int fail(const Error& error);

}  // namespace fusediff
