// Signatures that are known: a file that users keep beside their code, so that a run fails for what is new alone. JSON
// in, plain data out; who asks, and what becomes of the answer, is decided above.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fusediff {

inline constexpr int kLedgerVersion = 1;

struct LedgerEntry {
  std::string signature;  // as signature_of() spells it, or as slug_of() does: the name of the bundle's folder
  std::string issue;      // a link, or a number in the user's tracker
  std::string reason;     // why it may stay for now
  std::string expires;    // "2027-01-31", the last day that it counts; "": never
  std::string target;     // scope: the name of the target side; "": every one
  std::string version;    // scope: of that target; "": every one
  bool operator==(const LedgerEntry&) const = default;
};

struct Ledger {
  std::filesystem::path file;
  std::vector<LedgerEntry> known;
};

// {"fusediff_ledger": 1, "known": [{"signature": ..., "issue": ..., "reason": ..., "expires": "2027-01-31",
// "scope": {"target": ..., "version": ...}}]}; signature and issue are needed. Errors are the user's: they name the
// file, the JSON pointer and what would be right. Two entries of one signature and scope are one too many.
Result<Ledger> parse_ledger(std::string_view json, const std::filesystem::path& file);
Result<Ledger> read_ledger(const std::filesystem::path& file);
// Indented, an entry's empty fields left out. Ends with a newline.
std::string write_ledger(const Ledger& ledger);

// The same signature, each spelled in full or as a slug.
bool is_same_signature(std::string_view a, std::string_view b);
// The operator of a signature in either spelling; "" where it is neither.
std::string operator_of_signature(std::string_view signature);

// A date of the calendar, "2027-01-31".
bool is_date(std::string_view text);
// Without line breaks and other control characters.
bool is_one_line(std::string_view text);

enum class Standing {
  kUnknown,  // no entry: it fails the run
  kKnown,
  kExpired,  // an entry whose last day is over: it fails the run
};

struct LedgerAnswer {
  Standing standing = Standing::kUnknown;
  const LedgerEntry* entry = nullptr;  // of the ledger; null where unknown
};
// signature: in either spelling. today: "2026-11-30". Of several entries that fit, one that has not expired counts.
LedgerAnswer ask_ledger(const Ledger& ledger, std::string_view signature, std::string_view target,
                        std::string_view version, std::string_view today);

}  // namespace fusediff
