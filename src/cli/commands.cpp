#include "cli/command.h"

#include <iostream>

#include "model/quote.h"

namespace fusediff {

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"list", "the targets that are there, their operators and paths", run_list},
      {"check", "run cases and say what is wrong with them", run_check},
      {"fuzz", "look for cases that go wrong", run_fuzz},
      {"replay", "see whether a bundle still shows its finding", run_replay},
      {"minimize", "make a case small while its finding stays the same", run_minimize},
      {"bundle", "pack a bundle into one file to send", run_bundle},
      {"import", "cases of captured tensors, and of suites of other tools", run_import},
      {"merge", "the smallest corpus that keeps every feature of several", run_merge},
      {"manifest", "a hash of every output of a corpus, and what changed since", run_manifest},
      {"ledger", "signatures that are known and do not fail a run", run_ledger},
      {"report", "what a fuzz found, and what it did not look at", run_report},
      {"new-target", "a target of your own to start from", run_new_target},
      {"selftest", "find every planted fault, and nothing where nothing is", run_selftest},
      {"serve", "", run_serve},
  };
  return kCommands;
}

int fail(const Error& error) {
  std::cerr << "fusediff: " << printable(error.what) << std::endl;
  return error.blame == Blame::kUser ? kExitUser : kExitOurs;
}

}  // namespace fusediff
