// What the script of a bundle needs to know, as data: the runs, and what to look for in them. Writes no Python.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/bundle.h"

namespace fusediff {

// What the script looks for; each has a part of the script of its own.
enum class Look {
  kGuards,      // memory beside the tensors, calls that do not come back
  kFills,       // bytes that were there before the call
  kMemory,      // workspace asked for
  kInputs,      // inputs that changed
  kReruns,      // a path against itself
  kCompany,     // calls that share a context against each alone
  kStatus,      // what is legal
  kGradient,    // gradients against difference quotients
  kRelation,    // elements that must be equal
  kDifference,  // one side against the other
  kOneSide,     // a rule that outputs obey, or the bits that were wrong
};
Look look_of(const Finding& finding);

// REQUIRES, all: bundle.recording is there.
nlohmann::ordered_json finding_plan(const Bundle& bundle);     // the facts that the parts ask for
nlohmann::ordered_json experiment_plan(const Bundle& bundle);  // kind, count, rounds
nlohmann::ordered_json calls_plan(const Bundle& bundle);       // of each side
nlohmann::ordered_json same_plan(const Bundle& bundle);  // of a relation: runs and elements, as [first, step, count]
// Both sides have calls, and one process cannot make both: their variables differ, or the options of one library.
bool are_apart(const Bundle& bundle);
// The two sides in a reader's words: columns, paths, or targets.
std::array<std::string, 2> side_words(const Finding& finding);

}  // namespace fusediff
