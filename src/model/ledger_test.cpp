#include "model/ledger.h"

#include <gtest/gtest.h>

#include "model/finding.h"

namespace fusediff {
namespace {

constexpr const char* kSignature = "bits silu fused/unfused f32 y rounding stage 1";

std::string slug() {
  Finding f;
  f.oracle = "bits";
  f.op = "silu";
  f.paths = {"fused", "unfused"};
  f.dtype = "f32";
  f.output = "y";
  f.cls = FindingClass::kRounding;
  f.stage = 1;
  EXPECT_EQ(signature_of(f), kSignature);
  return slug_of(f);
}

std::string with(const std::string& entry) { return R"({"fusediff_ledger": 1, "known": [)" + entry + "]}"; }
std::string entry(const std::string& more = "", const std::string& signature = kSignature) {
  return R"({"signature": ")" + signature + R"(", "issue": "https://x/1")" + more + "}";
}

std::string error_of(const std::string& json) {
  const Result<Ledger> ledger = parse_ledger(json, "l.json");
  return ledger.ok() ? "" : ledger.error().what;
}

TEST(Ledger, ReadsAndWritesTheSame) {
  const std::string text =
      with(entry(R"(, "reason": "upstream", "expires": "2028-02-29", "scope": {"target": "t", "version": "2"})"));
  const Result<Ledger> ledger = parse_ledger(text, "l.json");
  ASSERT_TRUE(ledger.ok()) << ledger.error().what;
  ASSERT_EQ(ledger->known.size(), 1u);
  EXPECT_EQ(ledger->known[0].version, "2");
  const Result<Ledger> again = parse_ledger(write_ledger(*ledger), "l.json");
  ASSERT_TRUE(again.ok()) << again.error().what;
  EXPECT_EQ(again->known, ledger->known);
}

TEST(Ledger, WhatIsWrongIsNamedWithItsPointer) {
  const auto says = [](const std::string& json, const std::string& pointer, const std::string& words) {
    const std::string what = error_of(json);
    EXPECT_NE(what.find("l.json"), std::string::npos) << json;
    EXPECT_NE(what.find(pointer), std::string::npos) << what;
    EXPECT_NE(what.find(words), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  };
  says(with(entry(R"(, "expires": "2027-02-30")")), "/known/0/expires", "is no date");
  says(with(entry(R"(, "expires": "soon")")), "/known/0/expires", "is no date");
  says(with(entry(R"(, "expire": "2027-02-20")")), "/known/0", "expire");
  says(with(entry("", "")), "/known/0/signature", "is empty");
  says(with(std::string(R"({"signature": ")") + kSignature + R"(", "issue": "a\nb"})"), "/known/0/issue", "control");
  says(with(entry("", "silu")), "/known/0/signature", "is no signature");
  says(with(entry() + "," + entry()), "/known/1", "/known/0 again");
  says(with(entry() + "," + entry("", slug())), "/known/1", "/known/0 again");
  says(with(R"({"signature": "x"})"), "/known/0", "");
  says(with(entry(R"(, "scope": {"version": "2"})")), "/known/0/scope", "of no target");
  says(R"({"fusediff_ledger": 2, "known": []})", "/fusediff_ledger", "newer");
  says(R"({"known": []})", "", "fusediff_ledger");
  says("{", "", "");
}

TEST(Ledger, ASignatureIsKnownByItsSlugToo) {
  for (const std::string& spelled : {std::string(kSignature), slug()}) {
    const Ledger ledger = *parse_ledger(with(entry("", spelled)), "l.json");
    for (const std::string& asked : {std::string(kSignature), slug()}) {
      EXPECT_EQ(ask_ledger(ledger, asked, "t", "1", "2026-11-30").standing, Standing::kKnown)
          << spelled << " " << asked;
    }
    EXPECT_EQ(ask_ledger(ledger, "bits silu fused/unfused f16 y rounding stage 1", "t", "1", "2026-11-30").standing,
              Standing::kUnknown);
    EXPECT_EQ(operator_of_signature(spelled), "silu");
  }
}

TEST(Ledger, TheLastDayCountsAndTheNextOneDoesNot) {
  const Ledger ledger = *parse_ledger(with(entry(R"(, "expires": "2027-01-31")")), "l.json");
  EXPECT_EQ(ask_ledger(ledger, kSignature, "t", "1", "2027-01-31").standing, Standing::kKnown);
  EXPECT_EQ(ask_ledger(ledger, kSignature, "t", "1", "2027-02-01").standing, Standing::kExpired);
}

TEST(Ledger, ScopeIsKept) {
  const Ledger ledger = *parse_ledger(with(entry(R"(, "scope": {"target": "t", "version": "2"})")), "l.json");
  EXPECT_EQ(ask_ledger(ledger, kSignature, "t", "2", "2027-01-31").standing, Standing::kKnown);
  EXPECT_EQ(ask_ledger(ledger, kSignature, "t", "3", "2027-01-31").standing, Standing::kUnknown);
  EXPECT_EQ(ask_ledger(ledger, kSignature, "u", "2", "2027-01-31").standing, Standing::kUnknown);
}

TEST(Ledger, DatesAreThoseOfTheCalendar) {
  EXPECT_TRUE(is_date("2028-02-29"));
  for (const char* wrong : {"2027-02-29", "2100-02-29", "2027-13-01", "2027-00-01", "2027-01-00", "2027-1-01", "",
                            "2027-01-3x", "27-01-2003"}) {
    EXPECT_FALSE(is_date(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace fusediff
