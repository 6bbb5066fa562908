// What a campaign left in its folder, folded into one picture: counts, findings by signature, and what was not looked
// at. Reads files only; loads no target and runs nothing that a file names. Nothing is dropped silently: what cannot be
// read stands under `problems`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/bundle.h"
#include "model/case.h"
#include "model/finding.h"
#include "model/ledger.h"

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
  std::uint64_t seen = 0;          // checks that showed it; 0: not counted
  std::string command;             // that replays it
  std::string minimize;            // that minimises the original again
  std::string repro;               // that runs its repro.py; "": the bundle has none
  std::vector<std::string> files;  // names in the bundle's folder, sorted
  std::string environment;         // its environment.json
  // What a ledger says of it; kUnknown where none was asked.
  Standing standing = Standing::kUnknown;
  LedgerEntry entry;  // where it is not kUnknown
};

// "new", "known", "expired".
std::string_view name_of(Standing standing);

// How far a campaign was at a moment: a line of series.jsonl (src/campaign/series.h).
struct Moment {
  std::uint64_t run = 1;  // several runs may share a folder
  double seconds = 0;     // of that run, as are checks
  std::uint64_t checks = 0;
  std::uint64_t corpus = 0;    // files
  std::uint64_t features = 0;  // that libFuzzer told of; 0: not known
  Tally findings;              // distinct signatures by class, of all runs so far
};

struct CampaignReport {
  std::filesystem::path folder;
  std::optional<double> seconds;  // this and the counts: absent and zero where a campaign wrote neither file of counts
  bool ended = false;             // false: it still runs or was killed, and the counts are of its last second
  std::uint64_t checks = 0;
  double target_seconds = 0;  // inside the paths
  std::uint64_t jobs = 0;
  std::uint64_t restarts = 0;
  std::uint64_t corpus = 0;                                   // files
  std::map<std::string, Tally> operators;                     // checks by operator, then verdict
  Tally skips, vacuous, not_judged, not_checked;              // by reason
  Tally unasked;                                              // "OP: QUESTION: what to add to the record"
  std::map<std::string, double> experiments;                  // seconds by experiment
  std::map<std::string, std::map<std::string, Tally>> asked;  // by operator and experiment: "checks", "pass"
  std::string target, against;                                // as the campaign named them; "": not named
  std::vector<ReportedFinding> findings;                      // by class, then operator, then signature
  Tally without_bundle;               // "CLASS/SLUG" that was counted or listed and has no bundle
  std::set<std::string> known_without_bundle;  // those of them that the ledger speaks for
  std::size_t waiting = 0;            // files in found/: seen, not yet bundled
  std::vector<Moment> series;         // in the order of the file; none where there is no file
  std::filesystem::path ledger;       // that was asked; "": none
  std::vector<LedgerEntry> vanished;  // entries of it that no finding has
  std::vector<std::string> problems;  // damaged files, a line each
};

// Errors are the user's: a folder that is none of a campaign, counts that are cut off or of another version.
Result<CampaignReport> fold_campaign(const std::filesystem::path& folder);

// As text, the findings one after another. Ends with a newline.
std::string report_text(const CampaignReport& report);
// As one indented JSON object with the schema version under "fusediff_report"; REPORT.md says what each key means. Ends
// with a newline.
std::string report_json(const CampaignReport& report);

}  // namespace fusediff
