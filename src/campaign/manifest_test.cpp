#include "campaign/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "campaign/manifest_compare.h"

namespace fusediff {
namespace {

using testing::HasSubstr;

std::vector<std::byte> floats(std::vector<float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Case case_of(std::int64_t rows) {
  Case c;
  c.op = "add";
  c.dims["R"] = rows;
  return c;
}

RanCase ran(std::vector<float> values, std::uint64_t agreed = 0, bool deterministic = true) {
  const auto size = static_cast<std::int64_t>(values.size());
  RanSide side{"ok", "", deterministic, {{"y", DType::kF32, {size}, floats(std::move(values)), agreed, false}}};
  return {{1, 2}, {side, std::nullopt}};
}

Manifest manifest_of(std::vector<std::pair<Case, RanCase>> cases) {
  Manifest manifest{{"one", "two"}, {"1", "2"}, {"fused", "unfused"}, R"({"cpu":"a","cpu_flags":"sse avx"})", {}};
  for (const auto& [c, r] : cases) {
    for (ManifestLine& line : lines_of(c, r, manifest.paths)) {
      line.file = "case" + std::to_string(c.dims.at("R"));
      manifest.lines.push_back(std::move(line));
    }
  }
  return manifest;
}

std::vector<float> ramp(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i);
  return values;
}

TEST(Manifest, TextComesBackTheSameAndSorted) {
  const std::string text = write_manifest(manifest_of({{case_of(2), ran({1, 2})}, {case_of(1), ran(ramp(5000))}}));
  const Result<Manifest> read = parse_manifest(text);
  ASSERT_TRUE(read.ok()) << read.error().what;
  EXPECT_EQ(write_manifest(*read), text);
  EXPECT_EQ(write_manifest(manifest_of({{case_of(1), ran(ramp(5000))}, {case_of(2), ran({1, 2})}})), text);
  EXPECT_TRUE(looks_like_manifest(text));
}

TEST(Manifest, AFileThatIsNoneIsRefusedByLine) {
  const std::string text = write_manifest(manifest_of({{case_of(2), ran({1, 2})}}));
  EXPECT_THAT(parse_manifest("").error().what, HasSubstr("empty"));
  EXPECT_THAT(parse_manifest("hello\n").error().what, HasSubstr("line 1"));
  EXPECT_THAT(parse_manifest(text.substr(0, text.size() - 5)).error().what, HasSubstr("line 2"));
  EXPECT_THAT(parse_manifest(text + "{}\n").error().what, HasSubstr("line 3"));
  std::string newer = text;
  newer.replace(newer.find(":1"), 2, ":9");
  EXPECT_THAT(parse_manifest(newer).error().what, HasSubstr("version 9"));
}

TEST(ManifestCompare, TheSameBitsAreNoChange) {
  const Manifest a = manifest_of({{case_of(1), ran({1, 2})}, {case_of(2), ran(ramp(5000))}});
  const ManifestComparison comparison = compare(a, a);
  EXPECT_FALSE(comparison.is_changed());
  EXPECT_EQ(comparison.cases, 2);
  EXPECT_TRUE(comparison.set_up.empty());
  EXPECT_THAT(describe(comparison), HasSubstr("nothing changed"));
}

TEST(ManifestCompare, OfASmallOutputTheFirstElementAndBothValuesAreExact) {
  const ManifestComparison comparison =
      compare(manifest_of({{case_of(1), ran({1, 2, 3})}}), manifest_of({{case_of(1), ran({1, 2.5F, 4})}}));
  EXPECT_TRUE(comparison.is_changed());
  ASSERT_EQ(comparison.groups.size(), 1u);
  EXPECT_EQ(comparison.groups[0].first, 1);
  EXPECT_THAT(comparison.groups[0].values[0], HasSubstr("0x40000000"));
  EXPECT_THAT(comparison.groups[0].values[1], HasSubstr("0x40200000"));
}

TEST(ManifestCompare, OfALargeOutputTheRangeHoldsTheFirstDifference) {
  std::vector<float> changed = ramp(5001);
  changed[3210] = -1;
  const ManifestComparison comparison =
      compare(manifest_of({{case_of(1), ran(ramp(5001))}}), manifest_of({{case_of(1), ran(changed, 4)}}));
  const ManifestGroup& group = comparison.groups.at(0);
  EXPECT_EQ(group.changed, 1);
  EXPECT_EQ(group.unchecked, 1);  // `agree` might allow it
  EXPECT_FALSE(group.first);
  EXPECT_LE(group.range[0], 3210);
  EXPECT_GE(group.range[1], 3210);
  EXPECT_LT(group.range[1] - group.range[0], 80);
}

TEST(ManifestCompare, WhatAgreeAllowsAndWhatIsNotDeterministicIsCountedAndNoChange) {
  const float next = std::nextafterf(1.0F, 2.0F);
  const auto one = [](float value, std::uint64_t agreed, bool deterministic) {
    return manifest_of({{case_of(1), ran({value}, agreed, deterministic)}});
  };
  EXPECT_TRUE(compare(one(1, 0, true), one(next, 0, true)).is_changed());
  const ManifestComparison agreed = compare(one(1, 1, true), one(next, 1, true));
  EXPECT_FALSE(agreed.is_changed());
  EXPECT_EQ(agreed.groups.at(0).agreed, 1);
  EXPECT_TRUE(compare(one(1, 1, true), one(1.5F, 1, true)).is_changed());
  const ManifestComparison loose = compare(one(1, 0, false), one(1.5F, 0, false));
  EXPECT_FALSE(loose.is_changed());
  EXPECT_EQ(loose.groups.at(0).not_deterministic, 1);
}

TEST(ManifestCompare, ATerminalIsShownNoControlCharacters) {
  Manifest before = manifest_of({{case_of(1), ran({1})}, {case_of(2), ran({1})}, {case_of(3), ran({1})}});
  Manifest after = before;
  for (Manifest* manifest : {&before, &after}) {
    for (ManifestLine& line : manifest->lines) line.file += "\x1b[2J\n", line.op += "\x7f";
  }
  after.lines[0].status = "\x1b]0;x\x07";
  after.lines[1].output->name = "y\x1b[31m\n";
  after.lines[2].case_hash = std::string(32, '0');
  after.versions[0] = "1\x1b[0m";
  const ManifestComparison comparison = compare(before, after);
  const std::string text = describe(comparison);
  EXPECT_THAT(text, HasSubstr("status ok -> \"\\u001b]0;x\\u0007\""));
  EXPECT_THAT(text, HasSubstr("output \"y\\u001b[31m\\n\" is new"));
  for (const char c : text) EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)) << text;
  EXPECT_EQ(text.find("[2J\n"), std::string::npos);
}

TEST(ManifestCompare, StatusInputsAndHeadersAreToldApart) {
  const Manifest before = manifest_of({{case_of(1), ran({1})}, {case_of(2), ran({1})}, {case_of(3), ran({1})}});
  RanCase failed = ran({});
  failed.sides[0] = RanSide{"failed", "no", true, {}};
  RanCase other = ran({1});
  other.inputs = {3, 4};
  Manifest after = manifest_of({{case_of(1), failed}, {case_of(2), other}, {case_of(4), ran({1})}});
  after.environment = R"({"cpu":"b","cpu_flags":"sse avx2"})";
  after.versions[0] = "1.1";
  const ManifestComparison comparison = compare(before, after);
  ASSERT_EQ(comparison.changes.size(), 2u);
  const std::string text = describe(comparison);
  EXPECT_THAT(text, HasSubstr("status ok -> failed"));
  EXPECT_THAT(text, HasSubstr("received other inputs"));
  EXPECT_THAT(text, HasSubstr("target: one 1:fused -> one 1.1:fused"));
  EXPECT_THAT(text, HasSubstr("cpu: a -> b"));
  EXPECT_THAT(text, HasSubstr("cpu flags: -avx +avx2"));
  EXPECT_THAT(comparison.only[0], testing::ElementsAre("case3"));
  EXPECT_THAT(comparison.only[1], testing::ElementsAre("case4"));
}

}  // namespace
}  // namespace fusediff
