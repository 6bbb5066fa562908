// What the parts of make_tie() share: a case on its way to a tie, and what has been seen of it.
#pragma once

#include <cstdint>
#include <vector>

#include "mutate/lever.h"
#include "mutate/mutate.h"
#include "mutate/ranks.h"

namespace fusediff {

inline constexpr int kMaxProbes = 24;    // of one tie, at most: each costs a run of the paths
inline constexpr int kSolveProbes = 10;  // of one search for an exact rank

struct TieSearch {
  Case& c;
  MutateContext& context;
  Ranks ranks;  // of c as it is; of the first look: both sides, where they can be had
  std::vector<Lever> levers;
  ProbeBudget probes;

  Lever* lever(Lever::Kind kind);  // nullptr: none of that kind
};

// A candidate that the two sides rank differently, if only by 1 ULP, brought to the boundary and tied there on the
// unfused side, so that the difference decides the pick. False where there is none, or none could be brought; the case
// is then as it was.
bool tie_difference(TieSearch& search);

}  // namespace fusediff
