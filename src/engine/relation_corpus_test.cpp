// No relation breaks on a seed case of the built-in operators, and each kind of relation is asked of some.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/files.h"
#include "engine/check.h"
#include "model/case_json.h"
#include "target/target.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostRows = 4096;  // the largest cases of the reports take minutes together

std::vector<fs::path> seed_cases() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(FUSEDIFF_SOURCE_DIR) / "corpus")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The case with the relation, of the first row that the kind takes and of the last.
std::vector<Case> asked_of(const Case& seed, RelationKind kind, const Operator& op) {
  Case c = seed;
  c.experiment = {};
  c.experiment.kind = ExperimentKind::kRelation;
  c.experiment.relation = kind;
  c.experiment.seed = 7;
  std::vector<Case> cases;
  const std::int64_t rows = op.rows ? c.dims.at(op.rows->dim) : 0;
  if (kind == RelationKind::kBatchSplit) c.experiment.row = std::min<std::int64_t>(rows / 2, 1);
  cases.push_back(c);
  const bool of_rows = kind == RelationKind::kRowAlone || kind == RelationKind::kBatchSplit;
  c.experiment.row = rows - 1;
  if (of_rows && rows > 1) cases.push_back(c);
  return cases;
}

TEST(RelationCorpus, NoRelationBreaksOnTheBuiltInPaths) {
  TargetLoader loader({fs::path(FUSEDIFF_BIN_DIR) / "targets"});
  const Result<const Target*> builtin = loader.load("builtin");
  ASSERT_TRUE(builtin.ok()) << builtin.error().what;
  std::array<int, kRelationKindCount> passed{};
  for (const char* path : {"fused", "unfused"}) {
    Engine engine({{PathOf{*builtin, path}, PathOf{*builtin, "unfused"}}, *builtin}, {});
    for (const fs::path& file : seed_cases()) {
      const Result<std::string> text = read_file(file, kMaxCaseBytes);
      ASSERT_TRUE(text.ok()) << text.error().what;
      const Result<Case> seed = parse_case(*text, file.parent_path());
      ASSERT_TRUE(seed.ok()) << seed.error().what;
      const Operator* op = (*builtin)->schema.find(seed->op);
      const auto rows = seed->dims.find("T");
      if (op == nullptr || (rows != seed->dims.end() && rows->second > kMostRows)) continue;
      for (int kind = 0; kind < kRelationKindCount; ++kind) {
        const auto relation = static_cast<RelationKind>(kind);
        for (const Case& c : asked_of(*seed, relation, *op)) {
          SCOPED_TRACE(file.string() + " " + path + " " + std::string(name_of(relation)));
          const Result<CheckResult> result = engine.check(c);
          ASSERT_TRUE(result.ok()) << result.error().what;
          const Verdict& verdict = result->verdict;
          EXPECT_NE(verdict.kind, Verdict::Kind::kHarnessError) << verdict.reason;
          EXPECT_FALSE(verdict.finding) << signature_of(*verdict.finding) << verdict.finding->evidence[0].what;
          passed[static_cast<std::size_t>(kind)] += verdict.kind == Verdict::Kind::kPass ? 1 : 0;
        }
      }
    }
  }
  for (int kind = 0; kind < kRelationKindCount; ++kind)
    EXPECT_GT(passed[static_cast<std::size_t>(kind)], 0) << name_of(static_cast<RelationKind>(kind));
}

}  // namespace
}  // namespace fusediff
