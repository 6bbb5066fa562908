#include "campaign/found.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/hash.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

class FoundTest : public testing::Test {
 protected:
  FoundTest() : out_(fs::path(testing::TempDir()) / ("fusediff_found_test_" + std::to_string(::getpid()))) {
    fs::remove_all(out_);
    fs::create_directories(found_folder(out_));
  }
  ~FoundTest() override { fs::remove_all(out_); }

  const fs::path out_;
};

Found some_finding() {
  Found found;
  found.c.op = "add";
  found.c.dims = {{"M", 3}};
  found.finding.op = "add";
  found.finding.oracle = "agree";
  found.finding.output = "y";
  found.finding.cls = FindingClass::kRounding;
  return found;
}

TEST_F(FoundTest, ReadsWhatItWrote) {
  const Found found = some_finding();
  ASSERT_TRUE(write_found(out_, "worker-0", found).ok());
  const fs::path file = found_folder(out_) / (slug_of(found.finding) + ".worker-0.json");
  const Result<Found> read = read_found(file);
  ASSERT_TRUE(read.ok()) << read.error().what;
  EXPECT_EQ(read->c, found.c);
  EXPECT_EQ(signature_of(read->finding), signature_of(found.finding));
}

TEST_F(FoundTest, ADamagedFileIsAnErrorThatNamesIt) {
  const fs::path file = found_folder(out_) / "x.json";
  for (const char* text : {"", "{", "[]", "{\"fusediff_found\":2}", "{\"fusediff_found\":1,\"case\":7}"}) {
    std::ofstream(file, std::ios::trunc) << text;
    const Result<Found> read = read_found(file);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.error().what.find(file.string()), std::string::npos);
  }
}

TEST_F(FoundTest, KnownSignaturesComeFromTheListAndFromFound) {
  ASSERT_TRUE(append_line(findings_list(out_), R"({"signature":"first"})").ok());
  ASSERT_TRUE(append_line(findings_list(out_), R"({"signature":"sec)").ok());  // cut by a full disk
  ASSERT_TRUE(append_line(findings_list(out_), R"({"signature":"third"})").ok());
  const Found found = some_finding();
  ASSERT_TRUE(write_found(out_, "worker-0", found).ok());
  EXPECT_EQ(known_signatures(out_, false), (std::set<std::string>{"first", "third"}));
  EXPECT_EQ(known_signatures(out_, true), (std::set<std::string>{"first", "third", signature_of(found.finding)}));
}

TEST_F(FoundTest, KillersAreKnownByTheirHash) {
  EXPECT_TRUE(killers(out_).empty());
  ASSERT_TRUE(write_killer(out_, "{}").ok());
  EXPECT_EQ(killers(out_), (std::set<std::string>{hash128("{}").hex()}));
}

}  // namespace
}  // namespace fusediff
