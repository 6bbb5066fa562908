// A folded campaign as JSON values, for those who add to it. What the keys mean: REPORT.md.
#pragma once

#include <nlohmann/json.hpp>

#include "report/campaign.h"

namespace fusediff {

nlohmann::ordered_json campaign_object(const CampaignReport& report);

}  // namespace fusediff
