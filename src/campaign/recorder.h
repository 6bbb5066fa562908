// Has a child write down the runs of a bundle's smallest case, and checks later sights of it against what was written.
// Whatever goes wrong is a note of the finding: a bundle never fails for it.
#pragma once

#include <filesystem>

#include "campaign/child.h"
#include "engine/bundle.h"
#include "model/finding.h"

namespace fusediff {

struct RecorderOptions {
  ChildOptions child;
  std::filesystem::path folder;  // takes a folder for a moment, which sweep_bundles() would remove
  double seconds = 10;           // of one run
};

// Fills bundle.recording, or leaves it absent and says why. ends_process: the case ends the process that runs it: only
// what goes in is written down. So it is where a child dies of running it here.
void record_into(Bundle& bundle, const RecorderOptions& options, bool ends_process);

// Are the inputs whose hashes the finding names those of the recording? False where one is not; true where a finding
// has none.
bool has_recorded_inputs(const Finding& seen, const Recording& recording);

}  // namespace fusediff
