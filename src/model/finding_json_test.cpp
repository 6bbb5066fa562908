#include "model/finding_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace fusediff {
namespace {

Finding full_finding() {
  Finding f;
  f.experiment = "pair";
  f.oracle = "decide";
  f.op = "topk";
  f.targets = {"mine", "builtin"};
  f.paths = {"fused", "unfused"};
  f.dtype = "f32";
  f.output = "idx";
  f.cls = FindingClass::kFlip;
  f.stage = 1;
  f.stage_outputs = {"norm"};
  f.evidence = {{FindingClass::kFlip, "decide", "idx", 3, std::nullopt, "slot 9 differs"},
                {FindingClass::kRounding, "bits", "norm", 1, Side::kTarget, "1 ULP"}};
  Difference d;
  d.output = "norm";
  d.stage = 1;
  d.max_ulp = std::numeric_limits<std::uint64_t>::max();
  d.first_bits = {0x3f800000, 0x3f800001};
  d.error = {{0.25, std::numeric_limits<double>::infinity()}};
  d.bound = 4;
  d.largest = 0x1p-20;
  d.follows_pick = true;
  f.differences = {d};
  f.byte_ranges = {{"y", "workspace", 3, 12, {{0, 2}}}};
  Flip flip;
  flip.pick = "idx";
  flip.rank_bits = {{{1, 2}, {3, 4}}};
  flip.stages = {{"norm", DType::kF32, {{{5, 6}, {7, 8}}}}};
  flip.sums = {{"y", {1.5, 2.5}}};
  f.flips = {flip};
  f.rates[1] = {16, 2, 8, 1};
  f.influence = {"fused does not follow grad_out"};
  f.notes = {"note"};
  f.sweeps = {
      {"grad", 3, {1.5, std::nullopt}, 0.25, -2, 1e-9, {{0.2, 0.5}, {0.1, std::numeric_limits<double>::infinity()}}}};
  f.input_hashes = {{"x", {Hash128{1, 2}, std::nullopt}}};
  return f;
}

TEST(FindingJson, ReadsBackWhatItWrote) {
  const std::string text = write_finding(full_finding());
  const Result<Finding> read = parse_finding(text);
  ASSERT_TRUE(read.ok()) << read.error().what;
  EXPECT_EQ(write_finding(*read), text);
  EXPECT_EQ(signature_of(*read), signature_of(full_finding()));
  EXPECT_EQ(read->differences[0].max_ulp, std::numeric_limits<std::uint64_t>::max());
}

TEST(FindingJson, RefusesWhatIsNone) {
  EXPECT_FALSE(parse_finding("{").ok());
  EXPECT_FALSE(parse_finding("[]").ok());
  std::string newer = write_finding(full_finding());
  newer.replace(newer.find(":1"), 2, ":9");
  EXPECT_THAT(parse_finding(newer).error().what, ::testing::HasSubstr("version 9 is newer"));
}

TEST(FindingJson, VerdictsOfEveryKindReadBack) {
  for (int kind = 0; kind <= static_cast<int>(Verdict::Kind::kHarnessError); ++kind) {
    Verdict verdict{static_cast<Verdict::Kind>(kind), "because", {}};
    if (verdict.kind == Verdict::Kind::kFinding) verdict.finding = full_finding();
    const Result<Verdict> read = parse_verdict(write_verdict(verdict));
    ASSERT_TRUE(read.ok()) << read.error().what;
    EXPECT_EQ(read->kind, verdict.kind);
    EXPECT_EQ(read->finding.has_value(), verdict.finding.has_value());
  }
}

TEST(Signature, HoldsNoShapeAndNoValue) {
  Finding a = full_finding();
  Finding b = a;
  b.differences[0].elements = 99;
  b.flips[0].row = 7;
  EXPECT_EQ(signature_of(a), signature_of(b));
  b.stage = 2;
  EXPECT_NE(signature_of(a), signature_of(b));
  EXPECT_EQ(slug_of(a).find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"),
            std::string::npos);
}

TEST(FindingClass, EveryNameReadsBack) {
  for (int i = 0; i < kFindingClassCount; ++i) {
    const auto cls = static_cast<FindingClass>(i);
    EXPECT_EQ(finding_class_named(name_of(cls)), cls);
  }
  EXPECT_FALSE(finding_class_named("ugly"));
}

}  // namespace
}  // namespace fusediff
