// The first lines of the planted faults, and the records of their targets.
#include <nlohmann/json.hpp>
#include <set>

#include "planted/expectation.h"
#include "planted/loaded.h"

namespace fusediff::planted {
namespace {

TEST(ExpectTest, LinesParseAndNameTheirOperators) {
  const std::regex form(
      "// EXPECT: (none|class=[a-z_]+) op=[a-z_]+ experiment=(pair|repeat|threads|relation|gradient|history)"
      "( stage=[a-z_]+)?( output=[a-z_]+)?( relation=[a-z_]+)?( cause=[a-z_]+)?");
  const std::vector<Expectation> all = expectations();
  EXPECT_GE(all.size(), 40u);
  for (const Expectation& one : all) {
    ASSERT_TRUE(std::regex_match(one.line, form)) << one.name << ": " << one.line;
    const nlohmann::json schema = nlohmann::json::parse(loaded("planted_" + one.name)->schema());
    std::set<std::string> names;
    for (const auto& op : schema.at("operators")) {
      names.insert(op.at("name").get<std::string>());
    }
    EXPECT_EQ(names.count(one.words.at("op")), 1u) << one.name;
  }
}

TEST(ExpectTest, EveryFaultHasACleanTwinWithTheSameRecord) {
  for (const Expectation& one : expectations()) {
    if (one.is_fault()) {
      EXPECT_STREQ(loaded("planted_" + one.name)->schema(), loaded("planted_" + one.name + "_clean")->schema());
    }
  }
}

}  // namespace
}  // namespace fusediff::planted
