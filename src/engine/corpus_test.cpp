// Every seed case binds, draws, and shows nothing on the built-in fused path against the unfused one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "engine/check.h"
#include "model/case_json.h"
#include "model/values.h"
#include "target/target.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> seed_cases() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(FUSEDIFF_SOURCE_DIR) / "corpus")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Corpus : public testing::Test {
 protected:
  void SetUp() override {
    const Result<const Target*> loaded = loader_.load("builtin");
    ASSERT_TRUE(loaded.ok()) << loaded.error().what;
    builtin_ = *loaded;
  }
  static Result<Case> read(const fs::path& file) {
    const Result<std::string> text = read_file(file, kMaxCaseBytes);
    if (!text.ok()) return text.error();
    return parse_case(*text, file.parent_path());
  }

  TargetLoader loader_{{fs::path(FUSEDIFF_BIN_DIR) / "targets"}};
  const Target* builtin_ = nullptr;
};

TEST_F(Corpus, EveryOperatorHasSeeds) {
  for (const Operator& op : builtin_->schema.operators) {
    EXPECT_TRUE(fs::is_directory(fs::path(FUSEDIFF_SOURCE_DIR) / "corpus" / op.name)) << op.name;
  }
}

TEST_F(Corpus, EverySeedShowsNothingOnTheBuiltInPaths) {
  constexpr std::int64_t kMostRows = 4096;  // the largest cases of the reports take minutes together
  Engine engine({{PathOf{builtin_, "fused"}, PathOf{builtin_, "unfused"}}, builtin_}, {});
  int checked = 0;
  for (const fs::path& file : seed_cases()) {
    SCOPED_TRACE(file.string());
    const Result<Case> c = read(file);
    ASSERT_TRUE(c.ok()) << c.error().what;
    EXPECT_EQ(file.parent_path().filename(), c->op);
    EXPECT_EQ(*parse_case(write_case(*c)), *c);
    const Operator* op = builtin_->schema.find(c->op);
    ASSERT_NE(op, nullptr);
    const Result<Call> call = bind(*c, *op, std::uint64_t{1} << 33);
    ASSERT_TRUE(call.ok()) << call.error().what;
    const auto rows = c->dims.find("T");
    if (rows != c->dims.end() && rows->second > kMostRows) continue;
    const Result<CheckResult> result = engine.check(*c);
    ASSERT_TRUE(result.ok()) << result.error().what;
    const Verdict& verdict = result->verdict;
    EXPECT_TRUE(verdict.kind == Verdict::Kind::kPass || verdict.kind == Verdict::Kind::kVacuous)
        << name_of(verdict.kind) << " " << verdict.reason << (verdict.finding ? signature_of(*verdict.finding) : "");
    ++checked;
  }
  EXPECT_GT(checked, 30);
}

}  // namespace
}  // namespace fusediff
