// A verdict in words, for a terminal: what, where, how certain, how to see it again. Decides nothing.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "model/case.h"
#include "model/finding.h"

namespace fusediff {

// One line: class, operator, output, stage, and the main fact.
std::string headline(const Finding& finding);

// The whole story of a verdict in a screen or less, lines of at most 120 columns where names allow. Ends with a
// newline.
std::string describe(const Verdict& verdict, const Case& c);

// What the class means, one sentence.
std::string meaning_of(FindingClass cls);

// "planted:fused against builtin:unfused, add R=2 C=3 f32"
std::string comparison_of(const Finding& finding, const Case& c);
// "stage 1 (norm_out)"; "" where no stage is to blame.
std::string blame_of(const Finding& finding);
// What a reader calls the two sides: the columns of an experiment, else the paths, else the targets.
std::array<std::string, 2> side_names(const Finding& finding);
// A sentence of the evidence that speaks of target and against, with these names in their place.
std::string in_own_words(std::string sentence, const Finding& finding);
// What the oracles saw, a line each, the naming one first.
std::vector<std::string> evidence_of(const Finding& finding);

}  // namespace fusediff
