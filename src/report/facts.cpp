#include "report/facts.h"

#include <algorithm>

namespace fusediff {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the well-formed sequence that text begins with (Unicode 15, table 3-7); 0: none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0), next = byte(1);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool legal = follows(1) && (lead != 0xE0 || next >= 0xA0) && (lead != 0xED || next < 0xA0);
    return legal && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool legal = follows(1) && (lead != 0xF0 || next >= 0x90) && (lead != 0xF4 || next < 0x90);
    return legal && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

std::uint64_t total(const Tally& tally) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : tally) sum += count;
  return sum;
}

std::vector<std::pair<std::uint64_t, std::string>> most_frequent(const Tally& tally) {
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [name, count] : tally) sorted.emplace_back(count, name);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  return sorted;
}

std::string certainty_of(const ReportedFinding& reported) {
  std::vector<std::string> parts;
  if (reported.seen > 0) parts.push_back("in " + counted(reported.seen, "check", "checks"));
  if (reported.replay) {
    parts.push_back("replayed " + std::to_string(reported.replay->same) + " of " +
                    std::to_string(reported.replay->runs));
  }
  if (reported.bundles > 1) parts.push_back(std::to_string(reported.bundles) + " bundles, the first is named here");
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

std::string standing_of(const ReportedFinding& reported) {
  if (reported.standing == Standing::kUnknown) return "";
  std::string text(name_of(reported.standing));
  for (const std::string& part : {reported.entry.issue, reported.entry.reason}) {
    if (!part.empty()) text += ": " + part;
  }
  if (!reported.entry.expires.empty()) text += ", until " + reported.entry.expires;
  return text;
}

bool fails(const ReportedFinding& reported) { return reported.standing != Standing::kKnown; }

std::vector<std::pair<std::string, std::string>> commands_of(const ReportedFinding& reported) {
  std::vector<std::pair<std::string, std::string>> commands = {{"replay", reported.command}};
  if (!reported.repro.empty()) commands.emplace_back("without fusediff", reported.repro);
  if (!reported.minimize.empty()) commands.emplace_back("minimise again", reported.minimize);
  return commands;
}

std::string answer_of(const CampaignReport& report) {
  std::uint64_t fresh = 0, known = 0, expired = 0;
  for (const ReportedFinding& reported : report.findings) {
    fresh += reported.standing == Standing::kUnknown;
    known += reported.standing == Standing::kKnown;
    expired += reported.standing == Standing::kExpired;
  }
  std::string text =
      report.ledger.empty() ? counted(fresh, "finding", "findings") : counted(fresh, "new finding", "new findings");
  if (report.findings.empty()) text = "no finding";
  if (expired > 0) text += ", " + counted(expired, "known one that has expired", "known ones that have expired");
  if (known > 0) text += ", " + counted(known, "known one", "known ones");
  if (const std::size_t without = report.without_bundle.size() - report.known_without_bundle.size(); without > 0) {
    text += ", " + counted(without, "signature seen", "signatures seen") + " without a bundle";
  }
  if (report.waiting > 0) text += ", " + counted(report.waiting, "file", "files") + " not bundled yet";
  return text;
}

std::string clean_text(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool control = first < 0x20 ? first != '\t' && first != '\n' : first == 0x7F;
    // U+FFFE and U+FFFF are no characters of XML.
    const bool none = length == 3 && (text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF"));
    clean += length == 0 || control || none ? kReplacement : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return clean;
}

}  // namespace fusediff
