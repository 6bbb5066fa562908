#include "report/html_finding.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <system_error>

#include "model/case_json.h"
#include "model/inline_bits.h"
#include "model/number_text.h"
#include "report/campaign_json.h"
#include "report/facts.h"
#include "report/html_plots.h"
#include "report/text.h"
#include "report/text_cause.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Every string and list in it cut to what a page should hold.
void clip(Json& json, const PageLimits& limits) {
  if (json.is_string()) {
    if (const std::string text = clean_text(json.get<std::string>()); text.size() > limits.text) {
      json = clean_text(text.substr(0, limits.text)) + " ... (cut; the whole is in finding.json)";
    } else {
      json = text;
    }
  } else if (json.is_array()) {
    const std::size_t all = json.size();
    if (all > limits.lines) json.erase(json.begin() + static_cast<Json::difference_type>(limits.lines), json.end());
    for (Json& item : json) clip(item, limits);
    if (all > limits.lines && json[0].is_string()) {
      json.push_back(std::to_string(all - limits.lines) + " more, in finding.json");
    }
  } else if (json.is_object()) {
    for (auto& [key, value] : json.items()) clip(value, limits);
  }
}

// A relative address of a file, every byte but letters, digits and a few marks as %XX.
std::string address(const fs::path& file, const fs::path& folder) {
  std::error_code code;
  const fs::path full = fs::absolute(file, code).lexically_normal();
  const fs::path path = full.lexically_relative(folder.lexically_normal());
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text = "./";
  for (const char c : path.generic_string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("/._-~").find(c) != std::string_view::npos) {
      text += c;
    } else {
      text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json difference_json(const Difference& d) {
  const auto values = [&](const std::array<std::uint64_t, 2>& bits) {
    Json both = Json::array();
    for (const std::uint64_t b : bits) both.push_back(decimal(d.dtype, b) + " (" + hex(d.dtype, b) + ")");
    return both;
  };
  Json json = {{"output", d.output},
               {"dtype", name_of(d.dtype)},
               {"class", name_of(d.cls)},
               {"elements", d.elements},
               {"differing", d.differing},
               {"max_ulp", ulp_words(d.max_ulp)},
               {"median_ulp", ulp_words(d.median_ulp)},
               {"first", d.first},
               {"first_values", values(d.first_bits)},
               {"worst", d.worst},
               {"worst_values", values(d.worst_bits)},
               {"judged_by", d.judged_by},
               {"follows_pick", d.follows_pick}};
  json["stage"] = d.stage ? Json(*d.stage) : Json(nullptr);
  json["error"] = d.error ? Json{short_decimal((*d.error)[0]), short_decimal((*d.error)[1])} : Json(nullptr);
  json["bound"] = d.bound ? Json(short_decimal(*d.bound)) : Json(nullptr);
  return json;
}

Json bytes_json(const ByteRanges& b) {
  return {{"output", b.output}, {"follows", b.follows}, {"bytes", b.bytes}, {"total", b.total}, {"ranges", b.ranges}};
}

Json sweep_json(const GradientSweep& s) {
  Json own = Json::array();
  for (const auto& [eps, quotient] : s.own) own.push_back({number(eps), number(quotient)});
  return {{"output", s.output},
          {"index", s.index},
          {"path", {number(s.path[0]), number(s.path[1])}},
          {"truth", number(s.truth)},
          {"quotient", number(s.quotient)},
          {"quotient_error", number(s.quotient_error)},
          {"own", own}};
}

Json rate_json(const Rate& r) {
  return {{"runs", r.runs},
          {"differing", r.differing},
          {"pinned_runs", r.pinned_runs},
          {"pinned_differing", r.pinned_differing}};
}

Json cause_json(const CauseRun& c) {
  return {{"what", c.what}, {"calls", c.calls}, {"differing", c.differing}, {"digests", c.digests}};
}

template <typename T, typename Make>
Json list(const std::vector<T>& items, std::size_t most, Make make) {
  Json json = Json::array();
  for (std::size_t i = 0; i < std::min(items.size(), most); ++i) json.push_back(make(items[i]));
  return json;
}

std::string case_text(const Case& c, std::size_t most) {
  const std::string text = clean_text(write_case(with_bits_inline(c), 2));
  if (text.size() <= most) return text;
  return clean_text(text.substr(0, most)) + "\n... cut here; the whole is in case.json";
}

}  // namespace

Json page_finding(const ReportedFinding& reported, const fs::path& folder, const PageLimits& limits) {
  const Finding& f = reported.finding;
  CampaignReport one;
  one.findings.push_back(reported);
  Json json = campaign_object(one).at("findings").at(0);
  json["sides"] = side_names(f);
  json["certainty"] = certainty_of(reported);
  json["ledger_says"] = standing_of(reported);
  json["run"] = experiment_text(reported.smallest.experiment);
  json["conclusion"] = f.conclusion;
  json["differences"] = list(f.differences, limits.lines, difference_json);
  json["bytes"] = list(f.byte_ranges, limits.lines, bytes_json);
  json["causes"] = list(f.causes, limits.lines, cause_json);
  json["sweeps"] = list(f.sweeps, limits.lines, sweep_json);
  json["rates"] = {rate_json(f.rates[0]), rate_json(f.rates[1])};
  clip(json, limits);
  json["case"] = case_text(reported.smallest, limits.case_text);
  json["environment"] = clean_text(reported.environment.substr(0, limits.text));
  json["files"] = Json::array();
  for (std::size_t i = 0; i < std::min(reported.files.size(), limits.lines); ++i) {
    json["files"].push_back(
        {{"name", clean_text(reported.files[i])}, {"href", address(reported.bundle / reported.files[i], folder)}});
  }
  const Tensors tensors(reported.bundle);
  json["ulp"] = ulp_plots(f, tensors, limits.plots, limits.points);
  json["ties"] = tie_pictures(f, tensors);
  json["unread"] = tensors.unread();
  return json;
}

}  // namespace fusediff
