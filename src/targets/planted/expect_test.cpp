// The first lines of the planted faults, and the records of their targets.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "planted/loaded.h"

namespace fusediff::planted {
namespace {

struct Expectation {
  std::string name;  // of the file, without .cpp
  std::string line;
};

// One for each file that begins with an expectation.
std::vector<Expectation> expectations() {
  std::vector<Expectation> found;
  for (const auto& entry : std::filesystem::directory_iterator(FUSEDIFF_SOURCE_DIR "/src/targets/planted")) {
    std::ifstream file(entry.path());
    std::string line;
    if (entry.path().extension() == ".cpp" && std::getline(file, line) && line.rfind("// EXPECT:", 0) == 0) {
      found.push_back({entry.path().stem(), line});
    }
  }
  return found;
}

TEST(ExpectTest, LinesParseAndNameTheirOperators) {
  const std::regex form(
      "// EXPECT: (none|class=[a-z_]+) op=([a-z_]+) experiment=(pair|repeat|threads|relation|gradient|history)"
      "( stage=[a-z_]+)?( output=[a-z_]+)?( relation=[a-z_]+)?( cause=[a-z_]+)?");
  const std::vector<Expectation> all = expectations();
  EXPECT_GE(all.size(), 40u);
  for (const Expectation& one : all) {
    std::smatch match;
    ASSERT_TRUE(std::regex_match(one.line, match, form)) << one.name << ": " << one.line;
    const nlohmann::json schema = nlohmann::json::parse(loaded("planted_" + one.name)->schema());
    std::set<std::string> names;
    for (const auto& op : schema.at("operators")) {
      names.insert(op.at("name").get<std::string>());
    }
    EXPECT_EQ(names.count(match[2]), 1u) << one.name;
  }
}

TEST(ExpectTest, EveryFaultHasACleanTwinWithTheSameRecord) {
  for (const Expectation& one : expectations()) {
    if (one.line.find("EXPECT: none") == std::string::npos) {
      EXPECT_STREQ(loaded("planted_" + one.name)->schema(), loaded("planted_" + one.name + "_clean")->schema());
    }
  }
}

}  // namespace
}  // namespace fusediff::planted
