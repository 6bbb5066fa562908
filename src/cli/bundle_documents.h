// The files of a bundle that are made of all the rest of it: what a maintainer reads, and what shows it to them.
#pragma once

#include <vector>

#include "engine/bundle.h"
#include "report/issue.h"

namespace fusediff {

// ISSUE.md in the language, and repro.py where the runs were recorded.
std::vector<BundleFile> bundle_documents(const Bundle& bundle, Language language);

}  // namespace fusediff
