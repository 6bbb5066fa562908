#include "report/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

namespace fusediff {
namespace {

Finding finding(FindingClass cls) {
  Finding f;
  f.experiment = "pair";
  f.oracle = "bits";
  f.op = "op";
  f.targets = {"toy", "builtin"};
  f.paths = {"fused", "unfused"};
  f.dtype = "f32";
  f.output = "y";
  f.cls = cls;
  f.evidence = {{cls, "bits", "y", 2, Side::kTarget, "y differs in 1 of 8 elements, by at most 3 ULP"}};
  return f;
}

Difference difference() {
  Difference d;
  d.output = "y";
  d.stage = 2;
  d.elements = 8;
  d.differing = 1;
  d.first = d.worst = 5;
  d.first_bits = d.worst_bits = {0x3F800003, 0x3F800000};
  d.max_ulp = d.median_ulp = 3;
  d.largest = 3 * 0x1p-23;
  d.cls = FindingClass::kDamage;
  d.error = {3, 0};
  d.judged_by = "outside the worst-case bound of 2 ULP";
  return d;
}

std::string told(const Finding& f, const Case& c = {}) { return describe({Verdict::Kind::kFinding, "", f}, c); }

TEST(Text, AVerdictThatIsNoFindingIsOneLine) {
  Case c;
  c.op = "op";
  c.dims = {{"N", 4}};
  c.attrs = {{"gain", 2.5}, {"mode", std::string("q")}, {"on", std::int64_t{1}}};
  EXPECT_EQ(describe({Verdict::Kind::kPass, "", {}}, c), "pass: op N=4 gain=2.5 mode=q on=1\n");
  EXPECT_EQ(describe({Verdict::Kind::kSkip, "toy:fused: unsupported", {}}, c),
            "skip: op N=4 gain=2.5 mode=q on=1: toy:fused: unsupported\n");
  EXPECT_EQ(describe({Verdict::Kind::kHarnessError, "toy:fused will not open", {}}, {}).substr(0, 14),
            "harness error:");
}

TEST(Text, TheHeadlineSaysClassOperatorOutputStageAndTheMainFact) {
  Finding f = finding(FindingClass::kDamage);
  f.stage = 2;
  f.stage_outputs = {"y", "z"};
  EXPECT_EQ(headline(f),
            "damage in op, output y, stage 2 (y, z): fused: y differs in 1 of 8 elements, by at most 3 ULP");
  f.paths = {"fused", "fused"};
  EXPECT_NE(headline(f).find(": toy: y differs"), std::string::npos);  // paths of one name: the targets tell them apart
}

TEST(Text, ADifferenceShowsBothValuesAsDecimalAndBitsAndBothErrors) {
  Finding f = finding(FindingClass::kDamage);
  f.differences = {difference()};
  const std::string text = told(f);
  EXPECT_NE(text.find("stage 2, y (f32): 1 of 8 elements differs, at most 3 ULP [damage]"), std::string::npos) << text;
  EXPECT_NE(text.find("index 5: fused 1.0000003576 (0x3f800003), unfused 1.0000000000 (0x3f800000)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("fused 3 ULP, unfused 0 ULP"), std::string::npos) << text;
  EXPECT_NE(text.find("outside the worst-case bound of 2 ULP"), std::string::npos) << text;
  EXPECT_EQ(text.back(), '\n');
}

TEST(Text, AFlipShowsWhoPickedWhatAndTheTie) {
  Finding f = finding(FindingClass::kFlip);
  Flip flip;
  flip.pick = "p";
  flip.by = "r";
  flip.by_is_known = true;
  flip.row = 3;
  flip.slot = 1;
  flip.picked = {122, 472};
  flip.rank_bits = {{{0x3F800001, 0x3F800000}, {0x3F800000, 0x3F800000}}};
  flip.gap_ulp = {1, 0};
  flip.rows = 2;
  f.flips = {flip};
  f.evidence[0].what = "row 3, slot 1: target picks 122, against picks 472";
  const std::string text = told(f);
  EXPECT_NE(text.find("p row 3, slot 1: fused picks 122, unfused picks 472 (2 rows in all)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("the two ranks tie exactly in the unfused path"), std::string::npos) << text;
  EXPECT_NE(text.find("1 ULP apart"), std::string::npos) << text;
  EXPECT_EQ(text.find("against picks"), std::string::npos) << text;
  f.flips[0].by_is_known = false;
  EXPECT_NE(told(f).find("not to be had"), std::string::npos);
}

TEST(Text, UnwrittenBytesAreCountedWithTheirRanges) {
  Finding f = finding(FindingClass::kUnwritten);
  f.byte_ranges = {{"y", "", 8, 32, {{24, 31}}}, {"z", "workspace", 4, 32, {{0, 3}}}};
  f.differences = {difference()};
  const std::string text = told(f);
  EXPECT_NE(text.find("y 8/32 bytes unwritten: 24..31"), std::string::npos) << text;
  EXPECT_NE(text.find("z 4/32 bytes follow the workspace fill: 0..3"), std::string::npos) << text;
  EXPECT_EQ(text.find("ULP [damage]"), std::string::npos) << text;  // what nobody wrote has no error
}

TEST(Text, RatesInfluenceNotesAndTheSignatureStandThere) {
  Finding f = finding(FindingClass::kNondeterminism);
  f.rates = {Rate{300, 3, 150, 1}, Rate{16, 0, 8, 0}};
  f.influence = {"fused does not follow g: changing it moves the outputs of unfused and not those of fused"};
  f.notes = {"truth: builtin:unfused in f64"};
  const std::string text = told(f);
  EXPECT_NE(text.find("fused differs from itself in 3 of 300 (1 of 150 pinned to one CPU)"), std::string::npos) << text;
  EXPECT_NE(text.find("unfused gave the same 16 of 16 times"), std::string::npos) << text;
  EXPECT_NE(text.find("fused does not follow g"), std::string::npos) << text;
  EXPECT_NE(text.find("note: truth: builtin:unfused in f64"), std::string::npos) << text;
  EXPECT_NE(text.find(signature_of(f)), std::string::npos) << text;
}

TEST(Text, LinesStayWithinTheScreen) {
  Finding f = finding(FindingClass::kRounding);
  f.differences = {difference()};
  for (int i = 0; i < 30; ++i) f.differences[0].judged_by += " and a word";
  f.influence = {f.differences[0].judged_by};
  f.evidence.push_back({FindingClass::kRounding, "always", "z", 3, {}, f.differences[0].judged_by});
  std::istringstream lines(told(f));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(Text, EveryClassHasAMeaningOfItsOwn) {
  std::set<std::string> meanings;
  for (int i = 0; i < kFindingClassCount; ++i) meanings.insert(meaning_of(static_cast<FindingClass>(i)));
  EXPECT_EQ(meanings.size(), static_cast<std::size_t>(kFindingClassCount));
  EXPECT_EQ(meanings.count(""), 0u);
}

}  // namespace
}  // namespace fusediff
