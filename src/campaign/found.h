// What a worker leaves for its supervisor when it meets a finding: one file a signature and worker, replaced whole. It
// is the first thing that happens to a finding; minimising and bundling come later, elsewhere.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/case.h"
#include "model/finding.h"

namespace fusediff {

struct Found {
  Case c;
  Finding finding;
};

// The folders and files of a campaign, below its --out.
std::filesystem::path found_folder(const std::filesystem::path& out);     // found/
std::filesystem::path corpus_folder(const std::filesystem::path& out);    // corpus/: libFuzzer's
std::filesystem::path killers_folder(const std::filesystem::path& out);   // killers/: cases that ended a worker
std::filesystem::path findings_folder(const std::filesystem::path& out);  // findings/: bundles
std::filesystem::path workers_folder(const std::filesystem::path& out);   // workers/: state and log of each
std::filesystem::path findings_list(const std::filesystem::path& out);    // findings.jsonl

// Writes found/SLUG.WORKER.json, synced. writer tells workers apart.
Status write_found(const std::filesystem::path& out, std::string_view writer, const Found& found);
Result<Found> read_found(const std::filesystem::path& file);

// Signatures in findings.jsonl, and in found/ where `unfinished`. Lines that are no JSON are passed over: the file may
// have been cut by a full disk.
std::set<std::string> known_signatures(const std::filesystem::path& out, bool unfinished);

// Keeps a case that ended a worker away from all workers that start from now on. The name is its hash. Only the first
// few thousand: a corpus is run through at the start, and what comes later is new each time.
Status write_killer(const std::filesystem::path& out, std::string_view case_text);
// Hashes, as Hash128::hex(), of all killers.
std::set<std::string> killers(const std::filesystem::path& out);

}  // namespace fusediff
