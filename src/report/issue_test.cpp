#include "report/issue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "report/issue_words.h"

namespace fusediff {
namespace {

constexpr Language kLanguages[] = {Language::kEnglish, Language::kChinese};

Bundle bundle(FindingClass cls) {
  Bundle b;
  Finding& f = b.finding;
  f.experiment = "pair";
  f.oracle = "bits";
  f.op = "my_op";
  f.targets = {"lib", "builtin"};
  f.paths = {"fused", "unfused"};
  f.dtype = "f32";
  f.output = "grad_x";
  f.cls = cls;
  f.stage = 2;
  f.stage_outputs = {"grad_x"};
  f.evidence = {{cls, "bits", "grad_x", 2, Side::kTarget, "grad_x differs in 1 of 8 elements, by at most 3 ULP"}};
  f.notes = {"passes with N = 7, fails with N = 8"};
  f.input_hashes = {{"x", {Hash128{1, 2}, Hash128{1, 2}}}};
  Difference d;
  d.output = "grad_x";
  d.stage = 2;
  d.elements = 8;
  d.differing = 1;
  d.first = d.worst = 5;
  d.first_bits = d.worst_bits = {0x3F800003, 0x3F800000};
  d.max_ulp = d.median_ulp = 3;
  d.cls = cls;
  d.error = {3, 0};
  d.bound = 2;
  d.judged_by = "outside the worst-case bound of 2 ULP";
  f.differences = {d};
  b.smallest.op = b.original.op = f.op;
  b.smallest.dims = {{"N", 8}};
  b.original.attrs["gain"] = 2.5;
  b.environment =
      R"({"fusediff": "1", "target": {"name": "lib", "version": "7", "file": "/opt/someone/lib.so"}, "cpu": "X"})";
  return b;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::span<const std::string_view> flat(const IssueWords& words) {
  constexpr std::size_t kCount = (sizeof(IssueWords) - sizeof(words.sentences)) / sizeof(std::string_view);
  return {reinterpret_cast<const std::string_view*>(&words), kCount};
}

std::set<char> places(std::string_view words) {
  std::set<char> found;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] == '{' && words[i + 2] == '}') found.insert(words[i + 1]);
  }
  return found;
}

TEST(Issue, EveryLanguageHasEveryPhraseWithTheSamePlaces) {
  const auto english = flat(kEnglishIssue), chinese = flat(kChineseIssue);
  ASSERT_EQ(english.size(), chinese.size());
  for (std::size_t i = 0; i < english.size(); ++i) {
    if (&english[i] != &kEnglishIssue.gap) {
      EXPECT_FALSE(english[i].empty()) << "phrase " << i << ": " << chinese[i];
      EXPECT_TRUE(!chinese[i].empty() || english[i] == " ") << "phrase " << i << ": " << english[i];
    }
    EXPECT_EQ(places(english[i]), places(chinese[i])) << english[i];
  }
  for (const SentenceWords& sentence : kChineseIssue.sentences)
    EXPECT_EQ(places(sentence.from), places(sentence.to)) << sentence.from;
}

TEST(Issue, SaysNumbersAsDecimalAndBitsAndWhatIsNextToTheInput) {
  const std::string text = issue_text(bundle(FindingClass::kDamage), Language::kEnglish);
  EXPECT_TRUE(has(text, "# `my_op` (`fused`): `grad_x` is wrong, off by 3 ULP where rounding explains at most 2"))
      << text;
  EXPECT_TRUE(has(text, "`fused` 1.0000003576 (`0x3f800003`), `unfused` 1.0000000000 (`0x3f800000`)")) << text;
  EXPECT_TRUE(has(text, "passes with N = 7, fails with N = 8")) << text;
  EXPECT_TRUE(has(text, "python3 repro.py path/to/library.so")) << text;
  EXPECT_TRUE(has(text, "`gain=2.5`")) << text;
  EXPECT_EQ(text.back(), '\n');
}

TEST(Issue, ChineseSaysTheSameFactsInChinese) {
  const std::string text = issue_text(bundle(FindingClass::kDamage), Language::kChinese);
  EXPECT_TRUE(has(text, "`fused` 1.0000003576 (`0x3f800003`)")) << text;
  EXPECT_TRUE(has(text, "N = 7 时通过，N = 8 时失败")) << text;
  EXPECT_TRUE(has(text, "超出最坏情况误差界 2 ULP")) << text;
  EXPECT_FALSE(has(text, "Expected")) << text;
}

TEST(Issue, NamesNoFolderOfTheMachine) {
  Bundle b = bundle(FindingClass::kCrash);
  b.finding.evidence[0].what = "SIGSEGV in run(): /opt/someone/src/op.cpp:3: no";
  for (const Language language : kLanguages) {
    const std::string text = issue_text(b, language);
    EXPECT_FALSE(has(text, "someone")) << text;
    EXPECT_TRUE(has(text, "lib.so")) << text;
    EXPECT_TRUE(has(text, "op.cpp:3")) << text;
  }
}

TEST(Issue, MarkdownInNamesAndMessagesStaysText) {
  Bundle b = bundle(FindingClass::kCrash);
  b.finding.evidence[0].what = "SIGABRT in run(): a|b <i> *x*";
  const std::string text = issue_text(b, Language::kEnglish);
  EXPECT_TRUE(has(text, "a\\|b \\<i\\> \\*x\\*")) << text;
}

TEST(Issue, EveryClassSaysWhatWouldBeRightAndFitsAPage) {
  for (int i = 0; i < kFindingClassCount; ++i) {
    for (const Language language : kLanguages) {
      const std::string text = issue_text(bundle(static_cast<FindingClass>(i)), language);
      EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 120);
      for (const char* open : {"{0}", "{1}", "{2}", "{3}"}) EXPECT_FALSE(has(text, open)) << text;
    }
  }
}

TEST(Issue, UnwrittenBytesAreCountedAndHaveNoError) {
  Bundle b = bundle(FindingClass::kUnwritten);
  b.finding.byte_ranges = {{"grad_x", "", 32, 32, {{0, 31}}}};
  const std::string text = issue_text(b, Language::kEnglish);
  EXPECT_TRUE(has(text, "leaves 32/32 bytes of `grad_x` unwritten")) << text;
  EXPECT_FALSE(has(text, "largest distance")) << text;
}

TEST(Issue, ARecordingGivesPlacesTheTruthAndSmallInputsInFull) {
  Bundle b = bundle(FindingClass::kDamage);
  Recording recording;
  const auto floats = [](std::initializer_list<double> values, DType dtype) {
    std::vector<std::byte> bytes(values.size() * size_of(dtype));
    std::size_t i = 0;
    for (const double value : values)
      store_bits(dtype, round_to_bits(dtype, value), bytes.data() + i++ * size_of(dtype));
    return bytes;
  };
  recording.outputs.push_back({"target/grad_x", DType::kF32, {2, 4}, floats({0, 0, 0, 0, 0, 1, 0, 0}, DType::kF32)});
  recording.outputs.push_back({"truth/grad_x", DType::kF64, {2, 4}, floats({0, 0, 0, 0, 0, 1.25, 0, 0}, DType::kF64)});
  recording.inputs.push_back({"x", DType::kF32, {2}, floats({0.5, 0}, DType::kF32)});
  b.recording = recording;
  b.smallest.inputs["x"] = {};
  const std::string text = issue_text(b, Language::kEnglish);
  EXPECT_TRUE(has(text, "`grad_x[1, 1]`: `fused` 1.0000003576")) << text;
  EXPECT_TRUE(has(text, "in f64 1.25")) << text;
  EXPECT_TRUE(has(text, "`x f32[2]`: [0.5000000000 (`0x3f000000`), 0.0000000000]")) << text;
}

TEST(Issue, LanguagesHaveNames) {
  EXPECT_EQ(language_named("en"), Language::kEnglish);
  EXPECT_EQ(language_named("zh"), Language::kChinese);
  EXPECT_FALSE(language_named("de"));
}

}  // namespace
}  // namespace fusediff
