#include "report/libraries.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "report/settings.h"

namespace fusediff {
namespace {

using Json = nlohmann::json;
using Texts = std::array<std::string, 2>;  // [Side]

// A text of both sides; "" where it is not there.
Texts texts_of(const std::string& environment, const char* key) {
  const Json json = Json::parse(environment, nullptr, false);
  Texts texts;
  const std::array<const char*, 2> sides = {"target", "against"};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    if (!json.is_object() || !json.contains(sides[s]) || !json[sides[s]].is_object()) continue;
    const auto at = json[sides[s]].find(key);
    if (at != json[sides[s]].end() && at->is_string()) texts[s] = at->get<std::string>();
  }
  return texts;
}

bool are_both_there(const Texts& texts) { return !texts[0].empty() && !texts[1].empty(); }

}  // namespace

bool are_two_libraries(const Finding& finding, const std::string& environment) {
  if (!finding.columns[0].empty()) return false;
  for (const char* key : {"file_xxh3_128", "file"}) {
    const Texts texts = texts_of(environment, key);
    if (are_both_there(texts)) return texts[0] != texts[1];
  }
  return finding.targets[0] != finding.targets[1];
}

std::array<std::string, 2> library_words(const Finding& finding, const std::string& environment) {
  const Texts files = texts_of(environment, "file");
  Texts words = finding.targets;
  for (std::size_t s = 0; s < words.size(); ++s) {
    if (!files[s].empty()) words[s] += " (" + std::filesystem::path(files[s]).filename().string() + ")";
  }
  return words;
}

bool needs_other_library(const Finding& finding, const std::string& environment) {
  return finding.targets[1] != "builtin" && are_two_libraries(finding, environment);
}

bool is_opened_twice(const Finding& finding, const std::string& environment) {
  if (finding.targets[0] != finding.targets[1] || are_two_libraries(finding, environment)) return false;
  const Settings settings = settings_of(environment);
  return settings[0].options != settings[1].options || settings[0].variables != settings[1].variables;
}

}  // namespace fusediff
