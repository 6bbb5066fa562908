// Reads series.jsonl of a campaign, which src/campaign/series.h describes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/campaign.h"

namespace fusediff {

// The lines in their order; none where there is no file. A damaged line is passed over and told in `problems`; a last
// one without its newline is what a killed campaign leaves, and no word.
std::vector<Moment> read_series(const std::filesystem::path& folder, std::vector<std::string>& problems);

// At most `most` of them: the first and the last of each run where there is room, and between them evenly.
std::vector<Moment> thinned(const std::vector<Moment>& series, std::size_t most);

}  // namespace fusediff
