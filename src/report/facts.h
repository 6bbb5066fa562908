// What every form of a report says in the same words: how certain, what to do next, which reasons come first. Decides
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/campaign.h"

namespace fusediff {

// "1 check", "2 checks".
std::string counted(std::uint64_t count, std::string_view one, std::string_view many);
// The sum of all counts.
std::uint64_t total(const Tally& tally);
// The most frequent first, by name where equal.
std::vector<std::pair<std::uint64_t, std::string>> most_frequent(const Tally& tally);

// "in 34 checks; replayed 10 of 10; 2 bundles"; "" where nothing was counted.
std::string certainty_of(const ReportedFinding& reported);
// What a ledger says, in words: "known: LINK: REASON, until 2027-01-31"; "" where it says nothing.
std::string standing_of(const ReportedFinding& reported);
// Does it fail a run? Not one that a ledger knows.
bool fails(const ReportedFinding& reported);
// What to run next, each with its label: "replay", "without fusediff", "minimise again".
std::vector<std::pair<std::string, std::string>> commands_of(const ReportedFinding& reported);

// "3 new findings, 2 known ones" and the like: the answer of the first line.
std::string answer_of(const CampaignReport& report);

// Text as XML 1.0, Markdown and JSON can carry it: valid UTF-8, no control characters but tab and line feed; what is
// not becomes U+FFFD.
std::string clean_text(std::string_view text);

}  // namespace fusediff
