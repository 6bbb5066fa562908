// Hand-written cases, cases/NAME.json: `fusediff check` finds in planted_NAME what its first line says, and nothing in
// its clean twin or in a near miss.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "planted/expectation.h"

namespace fusediff::planted {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = FUSEDIFF_SOURCE_DIR "/src/targets/planted/cases";
// Checks of a case whose fault shows now and then, at most; so many at once.
constexpr int kMostChecks = 8000;
constexpr int kChecksAtOnce = 100;

fs::path case_of(const std::string& name) { return kCases / (name + ".json"); }

// The verdicts of `times` checks of a case on a target.
std::vector<nlohmann::json> check(const fs::path& file, const std::string& target, int times = 1) {
  std::string command = FUSEDIFF_BIN_DIR "/fusediff check --format json --target " + target;
  for (int i = 0; i < times; ++i) {
    command += " " + file.string();
  }
  std::vector<nlohmann::json> verdicts;
  FILE* const out = popen(command.c_str(), "r");
  std::string line;
  std::array<char, 4096> part{};
  while (out != nullptr && std::fgets(part.data(), part.size(), out) != nullptr) {
    line += part.data();
    if (line.back() == '\n') {
      verdicts.push_back(nlohmann::json::parse(line).at("verdict"));
      line.clear();
    }
  }
  EXPECT_NE(out, nullptr);
  if (out != nullptr) {
    pclose(out);
  }
  EXPECT_EQ(verdicts.size(), static_cast<size_t>(times)) << command;
  return verdicts;
}

bool is_finding(const nlohmann::json& verdict) { return verdict.at("verdict") == "finding"; }

// "" where the finding is the expected one.
std::string other_than_expected(const Expectation& wanted, const nlohmann::json& finding) {
  std::string other;
  for (const char* key : {"class", "op", "experiment", "relation", "output"}) {
    const auto word = wanted.words.find(key);
    if (word != wanted.words.end() && finding.at(key) != word->second) {
      other += std::string(key) + " is " + finding.at(key).dump() + "; ";
    }
  }
  const auto stage = wanted.words.find("stage");
  const nlohmann::json& blamed = finding.at("stage_outputs");
  if (stage != wanted.words.end() && std::find(blamed.begin(), blamed.end(), stage->second) == blamed.end()) {
    other += "stage is " + blamed.dump() + "; ";
  }
  return other;
}

TEST(CasesTest, EveryCaseHasItsTarget) {
  std::set<std::string> names;
  for (const Expectation& one : expectations()) {
    names.insert(one.name);
  }
  for (const auto& entry : fs::directory_iterator(kCases)) {
    EXPECT_EQ(names.count(entry.path().stem()), 1u) << entry.path();
  }
}

TEST(CasesTest, EachFaultIsFoundAsItsFirstLineSays) {
  for (const Expectation& one : expectations()) {
    if (!one.is_fault() || !fs::exists(case_of(one.name))) {
      continue;
    }
    const bool now_and_then = one.words.at("class") == "nondeterminism";
    nlohmann::json seen;
    for (int checks = 0; seen.is_null() && checks < kMostChecks; checks += kChecksAtOnce) {
      for (nlohmann::json& verdict :
           check(case_of(one.name), "planted_" + one.name, now_and_then ? kChecksAtOnce : 1)) {
        seen = is_finding(verdict) ? verdict : seen;
      }
      checks = now_and_then ? checks : kMostChecks;
    }
    ASSERT_FALSE(seen.is_null()) << one.name << ": nothing found";
    EXPECT_EQ(other_than_expected(one, seen.at("finding")), "") << one.name << ": " << seen.at("finding").dump();
  }
}

TEST(CasesTest, NothingIsFoundInTwinsAndNearMisses) {
  for (const Expectation& one : expectations()) {
    if (!fs::exists(case_of(one.name))) {
      continue;
    }
    const nlohmann::json verdict =
        check(case_of(one.name), "planted_" + one.name + (one.is_fault() ? "_clean" : ""))[0];
    EXPECT_TRUE(verdict.at("verdict") == "pass" || (!one.is_fault() && !is_finding(verdict)))
        << one.name << ": " << verdict.dump();
    EXPECT_NE(verdict.at("verdict"), "harness_error") << one.name << ": " << verdict.dump();
  }
}

}  // namespace
}  // namespace fusediff::planted
