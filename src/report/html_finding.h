// One finding as the data of its part of the page: the facts of report_json(), and the numbers of its pictures.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "report/campaign.h"

namespace fusediff {

struct PageLimits {
  std::size_t points = 512;  // of a plot
  std::size_t plots = 4;     // of ULP distances, in a finding
  std::size_t text = 4000;   // bytes of one sentence
  std::size_t lines = 60;    // sentences of one kind
  std::size_t case_text = 20000;
};

// folder: where the page will lie. Reads the bundle's tensors; what cannot be read is a sentence under "unread".
nlohmann::ordered_json page_finding(const ReportedFinding& reported, const std::filesystem::path& folder,
                                    const PageLimits& limits);

}  // namespace fusediff
