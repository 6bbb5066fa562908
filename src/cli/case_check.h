// A case file and its verdict, whatever the target does to the process that runs it. What commands that take cases
// share; prints nothing.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"
#include "campaign/child.h"
#include "campaign/protocol.h"
#include "model/case.h"
#include "model/finding.h"

namespace fusediff {

struct CaseFile {
  std::string text;
  std::filesystem::path folder;  // absolute: where the files are that the case names
  Case c;
};

// Errors are the user's and name the file.
Result<CaseFile> read_case_file(const std::filesystem::path& file);

// The case's verdict; a process that ends of it is a finding. The child is fresh afterwards where the target may have
// broken it. seconds: the cap of one run. An error is of the case or of the set-up.
Result<Verdict> verdict_in_child(Child& child, const CaseFile& file, const OpenAnswer& sides, double seconds);

// The exit code that says it.
int exit_code_of(const Verdict& verdict);

}  // namespace fusediff
