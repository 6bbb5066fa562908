// A campaign beside a ledger: what of it is known, what has expired, which entries it no longer shows.
#pragma once

#include <string>
#include <string_view>

#include "model/ledger.h"
#include "report/campaign.h"

namespace fusediff {

// Fills `standing` and `entry` of each finding, `known_without_bundle`, `ledger` and `vanished`. A signature that was
// seen and has no bundle of its own stands as its own entry says, else, where its operator and class have bundles, as
// the gravest of these do: the minimiser makes another dtype or output of it. An entry has vanished only where the
// campaign judged checks of its operator and its scope is the campaign's target. today: "2026-11-30".
void ask_ledger(const Ledger& ledger, std::string_view today, CampaignReport& report);

// Drops what an earlier run into the same folder left and this one did not show; asked before the ledger is.
void keep_what_was_seen(CampaignReport& report, const std::vector<std::filesystem::path>& bundled);

// Does it fail a run? Without a ledger every finding does.
bool has_failed(const CampaignReport& report);

// What a ledger says of the findings, a line each: known with the link, expired, entries that were not seen. Ends with
// a newline; "" where no ledger was asked.
std::string ledger_text(const CampaignReport& report);
// The same as one line of JSON: file, and lists of new, known, expired and not_seen signatures.
std::string ledger_json(const CampaignReport& report);

}  // namespace fusediff
