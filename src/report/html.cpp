#include "report/html.h"

#include <algorithm>
#include <system_error>

#include "base/hash.h"
#include "report/campaign_json.h"
#include "report/html_finding.h"
#include "report/series.h"

namespace fusediff {

// Files of src/report/page, and the charts' library.
std::string_view page_html();
std::string_view page_css();
std::string_view page_theme_js();
std::string_view page_dom_js();
std::string_view page_charts_js();
std::string_view page_pictures_js();
std::string_view page_finding_js();
std::string_view page_list_js();
std::string_view page_js();
std::string_view chart_library_js();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostMoments = 1500;
constexpr std::size_t kMostReasons = 300;      // of each kind
constexpr std::size_t kPlotBytes = 8'000'000;  // of all plots together
constexpr std::size_t kBytesOfAPoint = 14;     // index and distance, as JSON
constexpr std::size_t kFewestPoints = 64;
constexpr std::size_t kMostPoints = 512;

// As JSON inside an element of HTML: no "<" is left that could end the element or begin a comment.
std::string data_text(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<')
      text += "\\u003c";
    else if (c == '>')
      text += "\\u003e";
    else if (c == '&')
      text += "\\u0026";
    else
      text += c;
  }
  return text;
}

void clip_reasons(Json& reasons) {
  if (!reasons.is_object() || reasons.size() <= kMostReasons) return;
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [name, count] : reasons.items()) sorted.emplace_back(count.get<std::uint64_t>(), name);
  std::sort(sorted.rbegin(), sorted.rend());
  Json kept = Json::object();
  for (std::size_t i = 0; i < kMostReasons; ++i) kept[sorted[i].second] = sorted[i].first;
  std::uint64_t rest = 0;
  for (std::size_t i = kMostReasons; i < sorted.size(); ++i) rest += sorted[i].first;
  kept[std::to_string(sorted.size() - kMostReasons) + " more, together"] = rest;
  reasons = std::move(kept);
}

void clip_lines(Json& lines) {
  if (lines.size() <= kMostReasons) return;
  const std::size_t more = lines.size() - kMostReasons;
  lines.erase(lines.begin() + static_cast<Json::difference_type>(kMostReasons), lines.end());
  if (lines[0].is_string()) lines.push_back(std::to_string(more) + " more");
}

Json page_data(const CampaignReport& report, const fs::path& place) {
  Json data = campaign_object(report);
  CampaignReport few;  // of the series, as many moments as a chart shows
  few.series = thinned(report.series, kMostMoments);
  data["series"] = campaign_object(few).at("series");
  data["series_lines"] = report.series.size();
  for (const char* key : {"skipped", "vacuous", "not_judged", "not_checked", "unasked", "without_bundle"}) {
    clip_reasons(data.at(key));
  }
  for (const char* key : {"problems", "vanished"}) clip_lines(data.at(key));
  PageLimits limits;
  const std::size_t plots = std::max<std::size_t>(1, report.findings.size() * limits.plots);
  limits.points = std::clamp(kPlotBytes / (plots * kBytesOfAPoint), kFewestPoints, kMostPoints);
  std::error_code code;
  const fs::path folder = fs::absolute(place, code).parent_path();
  data["findings"] = Json::array();
  for (const ReportedFinding& reported : report.findings)
    data["findings"].push_back(page_finding(reported, folder, limits));
  return data;
}

}  // namespace

std::string report_html(const CampaignReport& report, const fs::path& place) {
  const std::string data = data_text(page_data(report, place));
  // Only scripts with this word run. It follows from all of the data, so nothing in a bundle can know it.
  const std::string nonce = hash128(data).hex();
  std::string scripts = "<script nonce=\"" + nonce + "\">\n" + std::string(chart_library_js()) + "\n</script>\n";
  for (const std::string_view part : {page_theme_js(), page_dom_js(), page_charts_js(), page_pictures_js(),
                                      page_finding_js(), page_list_js(), page_js()}) {
    scripts += "<script nonce=\"" + nonce + "\">\n" + std::string(part) + "</script>\n";
  }
  std::string page;
  std::string_view rest = page_html();
  const auto fill = [&](std::string_view mark, std::string_view text) {
    const std::size_t at = rest.find(mark);
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(std::min(rest.size(), at + mark.size()));
  };
  fill("@nonce@", nonce);
  fill("@nonce@", nonce);
  fill("@nonce@", nonce);
  fill("@css@", page_css());
  fill("@data@", data);
  fill("@scripts@", scripts);
  page += rest;
  return page;
}

}  // namespace fusediff
