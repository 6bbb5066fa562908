// A campaign as JUnit XML, in the dialect that Jenkins, GitLab and GitHub actions read: a testsuite for each operator,
// a testcase for each signature, and one for each experiment that the operator was asked. Known ones are skipped.
#pragma once

#include <string>

#include "report/campaign.h"

namespace fusediff {

// UTF-8, ends with a newline. Names of testcases are signatures, experiments and questions: the same in every run.
std::string report_junit(const CampaignReport& report);

}  // namespace fusediff
