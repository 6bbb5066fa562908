#include "report/libraries.h"

#include <gtest/gtest.h>

namespace fusediff {
namespace {

Finding finding_of(const char* target, const char* against) {
  Finding f;
  f.targets = {target, against};
  f.paths = {"fused", "fused"};
  return f;
}

std::string environment_of(const std::string& target, const std::string& against) {
  return "{\"target\": {" + target + "}, \"against\": {" + against + "}}";
}

constexpr const char* kOne = R"("file": "a.so", "file_xxh3_128": "1")";

TEST(Libraries, TwoBuildsOfOneNameAreTwo) {
  const Finding f = finding_of("mine", "mine");
  EXPECT_TRUE(are_two_libraries(f, environment_of(kOne, R"("file": "a.so", "file_xxh3_128": "2")")));
  EXPECT_FALSE(are_two_libraries(f, environment_of(kOne, kOne)));
  EXPECT_FALSE(are_two_libraries(f, environment_of(kOne, R"("file": "link.so", "file_xxh3_128": "1")")));
}

TEST(Libraries, WithoutHashesTheFilesTellAndWithoutFilesTheNames) {
  EXPECT_TRUE(are_two_libraries(finding_of("mine", "mine"), environment_of(kOne, R"("file": "b.so")")));
  EXPECT_FALSE(are_two_libraries(finding_of("mine", "mine"), environment_of(kOne, R"("file": "a.so")")));
  for (const char* environment : {"", "no JSON", "[]", "{\"target\": 1}", "{\"target\": {\"file\": 1}}"}) {
    EXPECT_FALSE(are_two_libraries(finding_of("mine", "mine"), environment)) << environment;
    EXPECT_TRUE(are_two_libraries(finding_of("mine", "theirs"), environment)) << environment;
  }
}

TEST(Libraries, AFindingAboutOnePathAloneIsOfOneLibrary) {
  Finding f = finding_of("mine", "mine");
  f.columns = {"shared", "alone"};
  EXPECT_FALSE(are_two_libraries(f, environment_of(kOne, R"("file_xxh3_128": "2")")));
}

TEST(Libraries, WordsNameTheFileWithoutFolders) {
  const auto words =
      library_words(finding_of("mine", "theirs"), environment_of(R"("file": "/opt/x/a.so")", R"("file": 3)"));
  EXPECT_EQ(words[0], "mine (a.so)");
  EXPECT_EQ(words[1], "theirs");
}

TEST(Libraries, TheOneThatComesWithFusediffIsNotAskedFor) {
  EXPECT_FALSE(needs_other_library(finding_of("mine", "builtin"), ""));
  EXPECT_TRUE(needs_other_library(finding_of("mine", "theirs"), ""));
}

TEST(Libraries, OneLibraryMayBeOpenedTwice) {
  const auto with = [](const char* more) { return std::string(kOne) + ", " + more; };
  const Finding f = finding_of("mine", "mine");
  EXPECT_FALSE(is_opened_twice(f, environment_of(kOne, kOne)));
  EXPECT_TRUE(is_opened_twice(f, environment_of(with(R"("options": "x")"), kOne)));
  EXPECT_TRUE(is_opened_twice(f, environment_of(kOne, with(R"("variables": ["A=1"])"))));
  EXPECT_FALSE(is_opened_twice(f, environment_of(with(R"("options": "x")"), with(R"("options": "x")"))));
  EXPECT_FALSE(is_opened_twice(f, environment_of(with(R"("isolated": true)"), kOne)));
  EXPECT_FALSE(is_opened_twice(finding_of("mine", "builtin"), R"({"target": {"options": "x"}, "against": {}})"))
      << "these are two libraries";
  Finding one_path = finding_of("mine", "builtin");
  one_path.columns = {"alone", "in its batch"};
  EXPECT_FALSE(is_opened_twice(one_path, R"({"target": {"options": "x"}, "against": {}})"));
}

}  // namespace
}  // namespace fusediff
