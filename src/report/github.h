// A campaign as the step summary of GitHub actions: Markdown with what is new first, a table, a block to open for each
// finding, and the negative space.
#pragma once

#include <cstddef>
#include <string>

#include "report/campaign.h"

namespace fusediff {

// GitHub refuses a summary above 1 MiB; this much is written at most, and what was left out is said.
inline constexpr std::size_t kMostSummaryBytes = 1'000'000;

// UTF-8, ends with a newline.
std::string report_github(const CampaignReport& report);

}  // namespace fusediff
