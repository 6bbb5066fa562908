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

TEST(Issue, ABundleOfTwoLibrariesIsRunWithBoth) {
  Bundle b = bundle(FindingClass::kDamage);
  const auto has_other = [&] { return has(issue_text(b, Language::kEnglish), "path/to/other.so"); };
  EXPECT_FALSE(has_other()) << "the other side comes with fusediff";
  b.finding.targets = {"lib", "lib"};
  b.environment = R"({"target": {"file_xxh3_128": "1"}, "against": {"file_xxh3_128": "1"}})";
  EXPECT_FALSE(has_other());
  b.environment = R"({"target": {"file_xxh3_128": "1"}, "against": {"file_xxh3_128": "2"}})";
  const std::string text = issue_text(b, Language::kEnglish);
  EXPECT_TRUE(has(text, "python3 repro.py path/to/library.so [path/to/other.so]\n")) << text;
  EXPECT_TRUE(has(text, "--target path/to/library.so --against path/to/other.so\n")) << text;
}

TEST(Issue, SaysHowTheSidesWereOpened) {
  Bundle b = bundle(FindingClass::kDamage);
  b.finding.targets = {"lib", "lib"};
  b.environment =
      R"({"target": {"file": "lib.so", "options": "isa=avx2", "isolated": true, "variables": ["A=1"]},
          "against": {"file": "lib.so", "options": "isa=sse", "isolated": true, "variables": []}})";
  for (const Language language : kLanguages) {
    const std::string text = issue_text(b, language);
    const std::string words = "--isolate --target-option isa=avx2 --target-env A=1 --against-option isa=sse";
    EXPECT_TRUE(has(text, "--target path/to/library.so --against path/to/library.so:unfused " + words + "\n")) << text;
    EXPECT_TRUE(has(text, "`" + words + "`\n")) << text;
    EXPECT_TRUE(has(text, "python3 repro.py path/to/library.so [path/to/other.so]\n")) << text;
  }
}

TEST(Issue, APythonTargetIsRunFromItsFile) {
  Bundle b = bundle(FindingClass::kDamage);
  b.finding.targets = {"my_ops", "my_ops"};
  b.environment = R"({"target": {"file": "my_ops.py", "isolated": true}, "against": {"file": "my_ops.py"}})";
  const std::string text = issue_text(b, Language::kEnglish);
  EXPECT_TRUE(has(text, "Python, numpy, the file of the target")) << text;
  EXPECT_TRUE(has(text, "python3 repro.py path/to/library.py\n")) << text;
  EXPECT_TRUE(has(text, "--target path/to/library.py\n")) << text;
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

Recording recorded(std::initializer_list<StoredTensor> outputs) {
  Recording recording;
  recording.outputs = outputs;
  return recording;
}

StoredTensor tensor(const std::string& name, DType dtype, std::vector<std::int64_t> shape,
                    std::initializer_list<double> values) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  std::size_t i = 0;
  for (const double value : values) store_bits(dtype, round_to_bits(dtype, value), bytes.data() + i++ * size_of(dtype));
  return {name, dtype, std::move(shape), std::move(bytes)};
}

TEST(Issue, SaysWhichSideHoldsTheRoundedTruth) {
  Bundle b = bundle(FindingClass::kRounding);
  b.recording = recorded({tensor("truth/grad_x", DType::kF64, {8}, {0, 0, 0, 0, 0, 1.00000001, 0, 0})});
  EXPECT_TRUE(has(issue_text(b, Language::kEnglish), "(rounded to the dtype: as `unfused`)"));
  EXPECT_TRUE(has(issue_text(b, Language::kChinese), "舍入后即为“`unfused`”的值"));
}

TEST(Issue, EqualOutputsThatAreZeroAreNoEvidence) {
  Bundle b = bundle(FindingClass::kDamage);
  b.finding.output_hashes = {{"y", {Hash128{1, 2}, Hash128{1, 2}}}, {"z", {Hash128{3, 4}, Hash128{3, 4}}}};
  b.recording = recorded({tensor("target/y", DType::kF32, {2}, {0, 0}), tensor("target/z", DType::kF32, {2}, {0, 1})});
  const std::string text = issue_text(b, Language::kEnglish);
  EXPECT_TRUE(has(text, "The same bits on both sides: `z`.")) << text;
  EXPECT_TRUE(has(text, "can show nothing there: `y`.")) << text;
}

TEST(Issue, OfACallBesideTheCaseNoTruthOfTheCaseIsShown) {
  Bundle b = bundle(FindingClass::kContamination);
  b.recording = recorded({tensor("truth/grad_x", DType::kF64, {8}, {0, 0, 0, 0, 0, 7.5, 0, 0})});
  EXPECT_TRUE(has(issue_text(b, Language::kEnglish), "in f64 7.5"));
  b.finding.notes.push_back("the call that differs is not the case's own but one of the calls beside it: my_op");
  EXPECT_FALSE(has(issue_text(b, Language::kEnglish), "in f64 7.5"));
}

TEST(Issue, OtherCallsComeWithTheirInputs) {
  Bundle b = bundle(FindingClass::kContamination);
  Case mate;
  mate.op = "my_op";
  mate.dims = {{"N", 2}};
  mate.inputs["x"] = {};
  b.smallest.experiment.calls = {mate};
  b.recording = Recording{};
  b.recording->inputs = {tensor("calls/0/x", DType::kF32, {2}, {0.5, 0})};
  EXPECT_TRUE(has(issue_text(b, Language::kEnglish), "  - `x f32[2]`: [0.5000000000"));
}

TEST(Issue, SizesThatDoNotMatterStandNotInTheTitle) {
  Bundle b = bundle(FindingClass::kDamage);
  b.smallest.dims["B"] = 0;
  const auto title = [&] {
    const std::string text = issue_text(b, Language::kEnglish);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_TRUE(has(title(), "`B=0`")) << title();
  b.finding.notes.push_back("does not matter: the size of B (the same at 3 sizes from 1 to 4)");
  EXPECT_FALSE(has(title(), "`B=0`")) << title();
}

TEST(Issue, OfSeveralIgnoredInputsTheNeighboursNameTheOne) {
  Bundle b = bundle(FindingClass::kDamage);
  b.finding.influence = {"fused does not follow beta: changing it moves the outputs of unfused and not those of fused",
                         "fused does not follow mode: changing it moves the outputs of unfused and not those of fused"};
  EXPECT_FALSE(has(issue_text(b, Language::kEnglish), "`grad_x` does not follow")) << "two of them";
  b.finding.notes = {"passes with mode = a, fails with mode = b"};
  EXPECT_TRUE(has(issue_text(b, Language::kEnglish), "`grad_x` does not follow `mode`"));
}

TEST(Issue, PlacesOfSetElementsAreCoordinatesAndKeepTheirFlatIndexAtOtherSizes) {
  Bundle b = bundle(FindingClass::kDamage);
  b.smallest.inputs["x"].set[37] = Literal{};
  b.recording = Recording{};
  StoredTensor x = tensor("x", DType::kF32, {2, 20}, {});
  x.bytes.resize(160);
  b.recording->inputs = {x};
  const std::string text = issue_text(b, Language::kEnglish);
  EXPECT_TRUE(has(text, "[1, 17] = ")) << text;
  EXPECT_TRUE(has(text, "keep their flat index")) << text;
}

TEST(Issue, ChineseTellsEachItemOfAListApart) {
  Bundle b = bundle(FindingClass::kDamage);
  b.finding.notes = {
      "does not matter: the size of B (the same at 3 sizes from 1 to 4); the size of S (the same with 2); attribute "
      "eps; "
      "the values of a; the values of b; the layout of c"};
  const std::string text = issue_text(b, Language::kChinese);
  EXPECT_TRUE(
      has(text,
          "与以下各项无关：B 的大小（从 1 到 4 的 3 种取值均相同）；S 的大小（取 2 时相同）；属性 eps；a 的取值；"
          "b 的取值；c 的布局"))
      << text;
}

TEST(Issue, RanksThatAreNaNAreNoTie) {
  Bundle b = bundle(FindingClass::kFlip);
  Flip flip;
  flip.pick = "idx";
  flip.by = "rank";
  flip.by_dtype = DType::kF32;
  flip.by_is_known = true;
  flip.rank_bits = {{{0x7FC00000, 0x7FC00000}, {0x3F800000, 0x3F800000}}};
  b.finding.flips = {flip};
  const std::string text = issue_text(b, Language::kEnglish);
  EXPECT_TRUE(has(text, "the two `rank` are both NaN on the `fused` side")) << text;
  EXPECT_TRUE(has(text, "the two `rank` are exactly equal on the `unfused` side")) << text;
}

TEST(Issue, ABoundAsWideAsTheValueIsCalledSo) {
  Bundle b = bundle(FindingClass::kRounding);
  EXPECT_FALSE(has(issue_text(b, Language::kEnglish), "excludes nothing"));
  b.finding.differences[0].bound = 0x1p24;
  EXPECT_TRUE(has(issue_text(b, Language::kEnglish), "excludes nothing"));
}

TEST(Issue, LanguagesHaveNames) {
  EXPECT_EQ(language_named("en"), Language::kEnglish);
  EXPECT_EQ(language_named("zh"), Language::kChinese);
  EXPECT_FALSE(language_named("de"));
}

}  // namespace
}  // namespace fusediff
