// Signatures that are known: a file that users keep beside their code, so that a run fails for what is new alone. JSON
// in, plain data out; who asks, and what becomes of the answer, is decided above.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fusediff {

struct LedgerEntry {
  std::string signature;  // as signature_of() spells it
  std::string issue;      // a link, or a number in the user's tracker
  std::string reason;     // why it may stay for now
  std::string expires;    // "2027-01-31", the last day that it counts; "": never
  std::string target;     // scope: the name of the target side; "": every one
  std::string version;    // scope: of that target; "": every one
};

struct Ledger {
  std::filesystem::path file;
  std::vector<LedgerEntry> known;
};

// Errors are the user's and name the file, the entry and what would be right.
Result<Ledger> read_ledger(const std::filesystem::path& file);

enum class Standing {
  kUnknown,  // no entry: it fails the run
  kKnown,
  kExpired,  // an entry whose last day is over: it fails the run
};

struct LedgerAnswer {
  Standing standing = Standing::kUnknown;
  const LedgerEntry* entry = nullptr;  // of the ledger; null where unknown
};
// today: "2026-11-30".
LedgerAnswer ask_ledger(const Ledger& ledger, std::string_view signature, std::string_view target,
                        std::string_view version, std::string_view today);

}  // namespace fusediff
