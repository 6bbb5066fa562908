#include "campaign/found.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/files.h"
#include "base/hash.h"
#include "campaign/captured.h"
#include "model/case_json.h"
#include "model/finding_json.h"
#include "model/inline_bits.h"

namespace fusediff {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int kFoundVersion = 1;
constexpr std::uint64_t kMaxFoundBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMaxKillers = 4096;
constexpr std::uint64_t kMaxListBytes = std::uint64_t{256} << 20;

// Files of a folder with the suffix; none where the folder is missing.
std::vector<fs::path> files_of(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (at->path().filename().string().ends_with(suffix)) files.push_back(at->path());
  }
  return files;
}

}  // namespace

fs::path found_folder(const fs::path& out) { return out / "found"; }
fs::path corpus_folder(const fs::path& out) { return out / "corpus"; }
fs::path killers_folder(const fs::path& out) { return out / "killers"; }
fs::path findings_folder(const fs::path& out) { return out / "findings"; }
fs::path workers_folder(const fs::path& out) { return out / "workers"; }
fs::path findings_list(const fs::path& out) { return out / "findings.jsonl"; }

Status write_found(const fs::path& out, std::string_view writer, const Found& found) {
  const Json json = {{"fusediff_found", kFoundVersion},
                     {"signature", signature_of(found.finding)},
                     {"case", write_case(with_small_bits_inline(found.c))},
                     {"finding", write_finding(found.finding)}};
  const std::string name = slug_of(found.finding) + "." + std::string(writer) + ".json";
  return write_file(found_folder(out) / name, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<Found> read_found(const fs::path& file) {
  const Result<std::string> text = read_file(file, kMaxFoundBytes);
  if (!text.ok()) return text.error();
  const auto wrong = [&](const std::string& what) { return user_error(file.string() + ": " + what); };
  try {
    const Json json = Json::parse(*text);
    if (json.at("fusediff_found") != kFoundVersion) return wrong("a version that this fusediff does not read");
    Result<Case> c = parse_case(json.at("case").get<std::string>(), tensors_folder(file.parent_path().parent_path()));
    if (!c.ok()) return wrong(c.error().what);
    Result<Finding> finding = parse_finding(json.at("finding").get<std::string>());
    if (!finding.ok()) return wrong(finding.error().what);
    return Found{*std::move(c), *std::move(finding)};
  } catch (const std::exception& thrown) {
    return wrong(thrown.what());
  }
}

std::set<std::string> known_signatures(const fs::path& out, bool unfinished) {
  std::set<std::string> known;
  const auto take = [&](std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return;
    if (const auto at = json.find("signature"); at != json.end() && at->is_string()) known.insert(*at);
  };
  if (const Result<std::string> list = read_file(findings_list(out), kMaxListBytes); list.ok()) {
    std::string_view rest = *list;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      take(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (!unfinished) return known;
  for (const fs::path& file : files_of(found_folder(out), ".json")) {
    if (const Result<std::string> text = read_file(file, kMaxFoundBytes); text.ok()) take(*text);
  }
  return known;
}

Status write_killer(const fs::path& out, std::string_view case_text) {
  if (Status made = make_directories(killers_folder(out)); !made.ok()) return made;
  if (files_of(killers_folder(out), ".json").size() >= kMaxKillers) return {};
  return write_file(killers_folder(out) / (hash128(case_text).hex() + ".json"), case_text);
}

std::set<std::string> killers(const fs::path& out) {
  std::set<std::string> hashes;
  for (const fs::path& file : files_of(killers_folder(out), ".json")) hashes.insert(file.stem().string());
  return hashes;
}

}  // namespace fusediff
