#include "report/known.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fusediff {
namespace {

std::string slug_in(const std::string& key) { return key.substr(key.find('/') + 1); }

// The slugs of one operator and class begin so.
std::string kind_of(const Finding& f) { return f.op + "-" + std::string(name_of(f.cls)) + "-"; }

struct Target {
  std::string name;
  std::string version;  // "": not known
};

Target target_of(const ReportedFinding& reported) {
  const auto json = nlohmann::json::parse(reported.environment, nullptr, false);
  Target target{reported.finding.targets[0], ""};
  if (!json.is_object()) return target;
  const auto side = json.find("target");
  if (side != json.end() && side->is_object()) target.version = side->value("version", "");
  return target;
}

// By what the bundles say; else as the campaign named it.
Target target_of(const CampaignReport& report) {
  if (!report.findings.empty()) return target_of(report.findings.front());
  return {std::filesystem::path(report.target.substr(0, report.target.find(':'))).stem().string(), ""};
}

bool was_judged(const CampaignReport& report, const std::string& op) {
  const auto at = report.operators.find(op);
  if (at == report.operators.end()) return false;
  return std::any_of(at->second.begin(), at->second.end(), [](const auto& verdict) {
    return verdict.second > 0 && verdict.first != "skip" && verdict.first != "harness_error";
  });
}

bool stands_as_its_kind(const CampaignReport& report, const std::string& slug) {
  bool found = false;
  for (const ReportedFinding& reported : report.findings) {
    if (!slug.starts_with(kind_of(reported.finding))) continue;
    if (reported.standing != Standing::kKnown) return false;
    found = true;
  }
  return found;
}

bool shows(const CampaignReport& report, const LedgerEntry& entry) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const ReportedFinding& reported) {
                       return is_same_signature(entry.signature, signature_of(reported.finding));
                     }) ||
         std::any_of(report.without_bundle.begin(), report.without_bundle.end(),
                     [&](const auto& seen) { return is_same_signature(entry.signature, slug_in(seen.first)); });
}

std::string line_of(const char* what, const LedgerEntry& entry, const std::string& signature) {
  std::string text = std::string("  ") + what + "  " + signature + "  " + entry.issue;
  if (!entry.expires.empty()) text += "  until " + entry.expires;
  if (!entry.reason.empty()) text += "  (" + entry.reason + ")";
  return text + "\n";
}

}  // namespace

void ask_ledger(const Ledger& ledger, std::string_view today, CampaignReport& report) {
  report.ledger = ledger.file;
  for (ReportedFinding& reported : report.findings) {
    const Target target = target_of(reported);
    const LedgerAnswer answer = ask_ledger(ledger, signature_of(reported.finding), target.name, target.version, today);
    reported.standing = answer.standing;
    if (answer.entry != nullptr) reported.entry = *answer.entry;
  }
  const Target target = target_of(report);
  report.known_without_bundle.clear();
  for (const auto& [key, count] : report.without_bundle) {
    const Standing own = ask_ledger(ledger, slug_in(key), target.name, target.version, today).standing;
    const bool by_kind = own == Standing::kUnknown && report.waiting == 0 && stands_as_its_kind(report, slug_in(key));
    if (own == Standing::kKnown || by_kind) report.known_without_bundle.insert(key);
  }
  report.vanished.clear();
  for (const LedgerEntry& entry : ledger.known) {
    const bool covered = was_judged(report, operator_of_signature(entry.signature)) &&
                         (entry.target.empty() || entry.target == target.name) &&
                         (entry.version.empty() || entry.version == target.version);
    if (covered && !shows(report, entry)) report.vanished.push_back(entry);
  }
}

void keep_what_was_seen(CampaignReport& report, const std::vector<std::filesystem::path>& bundled) {
  std::erase_if(report.findings, [&](const ReportedFinding& reported) {
    const auto is_it = [&](const std::filesystem::path& path) { return path.filename() == reported.bundle.filename(); };
    return reported.seen == 0 && std::none_of(bundled.begin(), bundled.end(), is_it);
  });
  std::erase_if(report.without_bundle, [](const auto& seen) { return seen.second == 0; });
}

bool has_failed(const CampaignReport& report) {
  const bool any = std::any_of(report.findings.begin(), report.findings.end(),
                               [](const ReportedFinding& reported) { return reported.standing != Standing::kKnown; });
  return any || std::any_of(report.without_bundle.begin(), report.without_bundle.end(),
                            [&](const auto& seen) { return !report.known_without_bundle.contains(seen.first); });
}

std::string ledger_text(const CampaignReport& report) {
  if (report.ledger.empty()) return "";
  std::size_t known = 0, expired = 0, fresh = 0;
  std::string lines;
  for (const ReportedFinding& reported : report.findings) {
    const std::string signature = signature_of(reported.finding);
    if (reported.standing == Standing::kKnown) ++known, lines += line_of("known  ", reported.entry, signature);
    if (reported.standing == Standing::kExpired) ++expired, lines += line_of("expired", reported.entry, signature);
    if (reported.standing == Standing::kUnknown) ++fresh, lines += "  new      " + signature + "\n";
  }
  for (const auto& [key, count] : report.without_bundle) {
    const bool is_known = report.known_without_bundle.contains(key);
    ++(is_known ? known : fresh);
    lines += std::string(is_known ? "  known    " : "  new      ") + slug_in(key) + "  (no bundle of its own)\n";
  }
  for (const LedgerEntry& entry : report.vanished) lines += line_of("not seen", entry, entry.signature);
  return "ledger " + report.ledger.string() + ": " + std::to_string(fresh) + " new, " + std::to_string(known) +
         " known, " + std::to_string(expired) + " expired, " + std::to_string(report.vanished.size()) +
         " not seen in this run\n" + lines;
}

std::string ledger_json(const CampaignReport& report) {
  using Json = nlohmann::ordered_json;
  Json json = {{"file", report.ledger.string()},
               {"new", Json::array()},
               {"known", Json::array()},
               {"expired", Json::array()},
               {"not_seen", Json::array()}};
  for (const ReportedFinding& reported : report.findings)
    json[std::string(name_of(reported.standing))].push_back(signature_of(reported.finding));
  for (const auto& [key, count] : report.without_bundle)
    json[report.known_without_bundle.contains(key) ? "known" : "new"].push_back(slug_in(key));
  for (const LedgerEntry& entry : report.vanished) json["not_seen"].push_back(entry.signature);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fusediff
