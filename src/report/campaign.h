// What a campaign left in its folder, folded into one picture: counts, findings by signature, and what was not looked
// at. Reads files only; loads no target and runs nothing that a file names. Nothing is dropped silently: what cannot be
// read stands under `problems`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/bundle.h"
#include "model/case.h"
#include "model/finding.h"

namespace fusediff {

inline constexpr int kReportVersion = 1;

using Tally = std::map<std::string, std::uint64_t>;

// One signature.
struct ReportedFinding {
  Finding finding;
  Case smallest;
  std::optional<Replay> replay;
  std::filesystem::path bundle;  // of several with one signature: the first by name
  std::size_t bundles = 1;
  std::uint64_t seen = 0;  // checks that showed it; 0: not counted
  std::string command;     // that replays it
};

struct CampaignReport {
  std::filesystem::path folder;
  std::optional<double> seconds;  // this and the counts: absent and zero where a campaign wrote neither file of counts
  bool ended = false;             // false: it still runs or was killed, and the counts are of its last second
  std::uint64_t checks = 0;
  double target_seconds = 0;  // inside the paths
  std::uint64_t jobs = 0;
  std::uint64_t restarts = 0;
  std::uint64_t corpus = 0;                       // files
  std::map<std::string, Tally> operators;         // checks by operator, then verdict
  Tally skips, vacuous, not_judged, not_checked;  // by reason
  Tally unasked;                                  // "OP: QUESTION: what to add to the record"
  std::map<std::string, double> experiments;      // seconds by experiment
  std::vector<ReportedFinding> findings;          // by class, then operator, then signature
  Tally without_bundle;                           // "CLASS/SLUG" that was counted or listed and has no bundle
  std::size_t waiting = 0;                        // files in found/: seen, not yet bundled
  std::vector<std::string> problems;              // damaged files, a line each
};

// Errors are the user's: a folder that is none of a campaign, counts that are cut off or of another version.
Result<CampaignReport> fold_campaign(const std::filesystem::path& folder);

// As text, the findings one after another. Ends with a newline.
std::string report_text(const CampaignReport& report);
// As one indented JSON object with the schema version under "fusediff_report". Ends with a newline.
std::string report_json(const CampaignReport& report);

}  // namespace fusediff
