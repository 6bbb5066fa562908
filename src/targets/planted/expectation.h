// For tests: what the first line of a planted file says has to be found.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace fusediff::planted {

struct Expectation {
  std::string name;                          // of the file, without .cpp
  std::string line;                          // as it stands there
  std::map<std::string, std::string> words;  // op, experiment, class and so on; a near miss has no class

  bool is_fault() const { return words.count("class") == 1; }
};

// One for each file that begins with an expectation.
inline std::vector<Expectation> expectations() {
  std::vector<Expectation> found;
  for (const auto& entry : std::filesystem::directory_iterator(FUSEDIFF_SOURCE_DIR "/src/targets/planted")) {
    std::ifstream file(entry.path());
    Expectation one{entry.path().stem(), "", {}};
    if (entry.path().extension() != ".cpp" || !std::getline(file, one.line) || one.line.rfind("// EXPECT:", 0) != 0) {
      continue;
    }
    const std::regex word("([a-z]+)=([a-z_]+)");
    for (std::sregex_iterator at(one.line.begin(), one.line.end(), word), end; at != end; ++at) {
      one.words[(*at)[1]] = (*at)[2];
    }
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace fusediff::planted
