#include "model/ledger.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/files.h"
#include "base/hash.h"
#include "model/json_text.h"
#include "model/json_tree.h"
#include "model/quote.h"

namespace fusediff {
namespace {

constexpr std::uint64_t kMaxLedgerBytes = std::uint64_t{16} << 20;
constexpr JsonLimits kLimits = {kMaxLedgerBytes, 8, 1 << 20};
constexpr std::size_t kHashDigits = 8;      // at the end of a slug
constexpr std::size_t kSignatureWords = 7;  // fewest of a full one

bool is_full(std::string_view signature) { return signature.find(' ') != std::string_view::npos; }

bool is_slug(std::string_view text) {
  if (text.size() <= kHashDigits + 1 || text[text.size() - kHashDigits - 1] != '-') return false;
  const std::string_view digits = text.substr(text.size() - kHashDigits);
  const bool hex = std::all_of(digits.begin(), digits.end(),
                               [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex && std::count(text.begin(), text.end(), '-') >= 2;
}

std::string hash_of(std::string_view signature) {
  if (is_full(signature)) return hash128(signature).hex().substr(0, kHashDigits);
  return is_slug(signature) ? std::string(signature.substr(signature.size() - kHashDigits)) : "";
}

void read_signature(const JsonView& at, LedgerEntry& entry, JsonTrouble& trouble) {
  entry.signature = read_string(at, trouble, "a signature");
  const auto words = 1 + std::count(entry.signature.begin(), entry.signature.end(), ' ');
  const bool right =
      is_full(entry.signature) ? static_cast<std::size_t>(words) >= kSignatureWords : is_slug(entry.signature);
  if (right) return;
  trouble.at(at, (entry.signature.empty() ? "the signature is empty" : quote(entry.signature) + " is no signature") +
                     "; the \"signature\" of a finding.json, or the name of a bundle's folder, is right");
}

void read_date(const JsonView& at, LedgerEntry& entry, JsonTrouble& trouble) {
  entry.expires = read_string(at, trouble, "a date");
  if (is_date(entry.expires)) return;
  trouble.at(at, quote(entry.expires) + " is no date; a day of the calendar like \"2027-01-31\" is right");
}

void read_scope(const JsonView& at, LedgerEntry& entry, JsonTrouble& trouble) {
  JsonObject scope(at, trouble, "a scope");
  if (const auto target = scope.find("target")) entry.target = read_string(*target, trouble, "the name of a target");
  if (const auto version = scope.find("version")) entry.version = read_string(*version, trouble, "a version");
  scope.finish();
  if (entry.target.empty() && !entry.version.empty())
    trouble.at(at, "has a version of no target; \"target\" beside it is right");
}

LedgerEntry read_entry(const JsonView& at, JsonTrouble& trouble) {
  LedgerEntry entry;
  JsonObject object(at, trouble, "an entry of a ledger");
  if (const auto signature = object.need("signature")) read_signature(*signature, entry, trouble);
  if (const auto issue = object.need("issue")) {
    entry.issue = read_string(*issue, trouble, "a link to an issue");
    if (entry.issue.empty()) trouble.at(*issue, "the link is empty; one to the issue, or its number, is right");
    if (!is_one_line(entry.issue))
      trouble.at(*issue, quote(entry.issue) + " has control characters; one line is right");
  }
  if (const auto reason = object.find("reason")) entry.reason = read_string(*reason, trouble, "a reason");
  if (const auto expires = object.find("expires")) read_date(*expires, entry, trouble);
  if (const auto scope = object.find("scope")) read_scope(*scope, entry, trouble);
  object.finish();
  return entry;
}

bool is_twin(const LedgerEntry& a, const LedgerEntry& b) {
  return is_same_signature(a.signature, b.signature) && a.target == b.target && a.version == b.version;
}

}  // namespace

bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto number = [&](std::size_t at, std::size_t size) {
    int value = -1;
    const auto read = std::from_chars(text.data() + at, text.data() + at + size, value);
    return read.ptr == text.data() + at + size && text[at] != '-' ? value : -1;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

bool is_same_signature(std::string_view a, std::string_view b) {
  if (is_full(a) == is_full(b)) return a == b;
  const std::string hash = hash_of(a);
  return !hash.empty() && hash == hash_of(b) && operator_of_signature(a) == operator_of_signature(b);
}

std::string operator_of_signature(std::string_view signature) {
  if (!is_full(signature)) return is_slug(signature) ? std::string(signature.substr(0, signature.find('-'))) : "";
  std::string_view rest = signature.substr(signature.find(' ') + 1);
  return std::string(rest.substr(0, rest.find(' ')));
}

Result<Ledger> parse_ledger(std::string_view json, const std::filesystem::path& file) {
  const auto wrong = [&](const std::string& what) { return user_error(file.string() + ": " + what); };
  const Result<JsonTree> tree = JsonTree::parse(json, kLimits);
  if (!tree.ok()) return wrong(tree.error().what);
  JsonTrouble trouble;
  Ledger ledger{file, {}};
  JsonObject object(tree->root(), trouble, "a ledger");
  if (const auto version = object.need("fusediff_ledger")) {
    const std::int64_t number = read_integer(*version, trouble, "a ledger version", 1);
    if (number > kLedgerVersion)
      trouble.at(*version, "version " + std::to_string(number) + " is newer than this fusediff, which reads up to " +
                               std::to_string(kLedgerVersion));
  }
  if (const auto known = object.need("known"); known && expect_array(*known, trouble, "a list of entries")) {
    for (const JsonView item : *known) {
      LedgerEntry entry = read_entry(item, trouble);
      for (std::size_t i = 0; i < ledger.known.size() && !trouble.any(); ++i) {
        if (is_twin(ledger.known[i], entry))
          trouble.at(item, "is the signature of /known/" + std::to_string(i) + " again; one entry of it is right");
      }
      ledger.known.push_back(std::move(entry));
    }
  }
  object.finish();
  if (trouble.any()) return wrong(trouble.error().what);
  return ledger;
}

Result<Ledger> read_ledger(const std::filesystem::path& file) {
  const Result<std::string> text = read_file(file, kMaxLedgerBytes);
  if (!text.ok()) return text.error();
  return parse_ledger(*text, file);
}

std::string write_ledger(const Ledger& ledger) {
  std::string text;
  JsonText json(text, 2);
  const auto field = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    json.key(name);
    json.string(value);
  };
  json.open('{');
  json.key("fusediff_ledger");
  json.integer(kLedgerVersion);
  json.key("known");
  json.open('[');
  for (const LedgerEntry& entry : ledger.known) {
    json.open('{');
    field("signature", entry.signature);
    field("issue", entry.issue);
    field("reason", entry.reason);
    field("expires", entry.expires);
    if (!entry.target.empty()) {
      json.key("scope");
      json.open('{');
      field("target", entry.target);
      field("version", entry.version);
      json.close('}');
    }
    json.close('}');
  }
  json.close(']');
  json.close('}');
  return text + "\n";
}

LedgerAnswer ask_ledger(const Ledger& ledger, std::string_view signature, std::string_view target,
                        std::string_view version, std::string_view today) {
  LedgerAnswer answer;
  for (const LedgerEntry& entry : ledger.known) {
    const bool in_scope =
        (entry.target.empty() || entry.target == target) && (entry.version.empty() || entry.version == version);
    if (!in_scope || !is_same_signature(entry.signature, signature)) continue;
    if (entry.expires.empty() || std::string_view(entry.expires) >= today) return {Standing::kKnown, &entry};
    answer = {Standing::kExpired, &entry};
  }
  return answer;
}

}  // namespace fusediff
