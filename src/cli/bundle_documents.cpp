#include "cli/bundle_documents.h"

#include "report/repro.h"

namespace fusediff {

std::vector<BundleFile> bundle_documents(const Bundle& bundle, Language language) {
  std::vector<BundleFile> documents = {{"ISSUE.md", issue_text(bundle, language)}};
  if (bundle.recording) documents.push_back({"repro.py", repro_script(bundle)});
  return documents;
}

}  // namespace fusediff
