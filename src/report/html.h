// A campaign as one HTML page that needs nothing beside it: no network (its policy forbids it), the charts' library and
// the data inside. Numbers of plots are read from the bundles here, when the page is written; the page only draws.
#pragma once

#include <filesystem>
#include <string>

#include "report/campaign.h"

namespace fusediff {

// place: the file that the page will be, which its links to bundles start from. Whatever a bundle holds is text to the
// page, never markup. UTF-8, ends with a newline.
std::string report_html(const CampaignReport& report, const std::filesystem::path& place);

}  // namespace fusediff
