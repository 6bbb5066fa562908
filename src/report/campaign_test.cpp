#include "report/campaign.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "report/commands.h"
#include "report/sample_report_test.h"
#include "report/text.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSummary = R"({"fusediff_summary": 1, "seconds": 12.5, "checks": 100, "checks_per_second": 8.0,
  "target_seconds": 2.5, "jobs": 2, "restarts": 1, "corpus": 7, "findings": {"damage": 1}, "pending": 0,
  "checks_by_operator": {"add": {"pass": 60, "vacuous": 5}, "sub": {"finding": 30, "skip": 5}},
  "class": {"damage": 30}, "skip": {"sub: not here": 5}, "vacuous": {"add: only empty outputs": 5},
  "harness_error": {}, "signature": {"damage/gone": 3}, "not_checked": {}})";

Finding finding_of(int number, FindingClass cls) {
  Finding f;
  f.experiment = "pair";
  f.oracle = "bits";
  f.op = "op" + std::to_string(number);
  f.targets = {"mine", "builtin"};
  f.paths = {"fused", "unfused"};
  f.dtype = "f32";
  f.output = "y";
  f.cls = cls;
  f.stage = 2;
  f.stage_outputs = {"y"};
  f.evidence = {{cls, "bits", "y", 2, Side::kTarget, "y differs", ""}};
  return f;
}

Bundle bundle_of(const Finding& finding) {
  Bundle bundle;
  bundle.smallest.op = bundle.original.op = finding.op;
  bundle.smallest.dims = {{"N", 1}};
  bundle.finding = finding;
  bundle.replay = Replay{10, 9};
  bundle.environment = "{}\n";
  return bundle;
}

class CampaignFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fusediff_report_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "findings");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const fs::path& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  fs::path add(const Finding& finding) const { return *write_bundle(folder_ / "findings", bundle_of(finding)); }
  std::string error() const {
    const Result<CampaignReport> report = fold_campaign(folder_);
    return report.ok() ? "" : report.error().what;
  }

  fs::path folder_;
};

TEST_F(CampaignFolder, FoldsCountsAndFindings) {
  write("summary.json", kSummary);
  const Finding damage = finding_of(1, FindingClass::kDamage);
  const Finding hang = finding_of(2, FindingClass::kHang);
  const fs::path bundle = add(damage);
  add(hang);
  const Result<CampaignReport> report = fold_campaign(folder_);
  ASSERT_TRUE(report.ok()) << report.error().what;
  EXPECT_TRUE(report->ended);
  EXPECT_EQ(report->checks, 100u);
  EXPECT_EQ(report->operators.at("sub").at("finding"), 30u);
  EXPECT_EQ(report->skips.at("sub: not here"), 5u);
  ASSERT_EQ(report->findings.size(), 2u);
  EXPECT_EQ(report->findings[0].finding.cls, FindingClass::kHang) << "by class";
  EXPECT_EQ(report->findings[1].bundle, bundle);
  EXPECT_EQ(report->findings[1].replay->same, 9);
  EXPECT_EQ(report->without_bundle, (Tally{{"damage/gone", 3}}));
  EXPECT_TRUE(report->problems.empty());
}

TEST_F(CampaignFolder, TextNamesWhatAPersonNeeds) {
  write("summary.json", kSummary);
  const fs::path bundle = add(finding_of(1, FindingClass::kDamage));
  const std::string text = report_text(*fold_campaign(folder_));
  for (const std::string& part :
       {std::string("100 checks in 12.5 s by 2 workers"), std::string("y differs"), std::string("stage 2 (y)"),
        meaning_of(FindingClass::kDamage), "fusediff replay " + bundle.string(), std::string("replayed 9 of 10"),
        std::string("5  sub: not here"), std::string("5  add: only empty outputs"), std::string("3  damage/gone")}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(CampaignFolder, JsonHasASchemaVersionAndTheSameFacts) {
  write("summary.json", kSummary);
  add(finding_of(1, FindingClass::kDamage));
  const auto json = nlohmann::json::parse(report_json(*fold_campaign(folder_)));
  EXPECT_EQ(json.at("fusediff_report"), kReportVersion);
  EXPECT_EQ(json.at("checks_by_verdict"), (nlohmann::json{{"finding", 30}, {"pass", 60}, {"skip", 5}, {"vacuous", 5}}));
  EXPECT_EQ(json.at("findings_by_class"), (nlohmann::json{{"damage", 1}}));
  ASSERT_EQ(json.at("findings").size(), 1u);
  EXPECT_EQ(json["findings"][0].at("class"), "damage");
  EXPECT_EQ(json["findings"][0].at("stage"), 2);
}

void expect_described(const nlohmann::json& object, const std::string& page) {
  for (const auto& [key, value] : object.items()) {
    EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << key << " does not stand in REPORT.md";
  }
}

TEST_F(CampaignFolder, EveryKeyOfTheJsonIsDescribed) {
  std::ifstream file(FUSEDIFF_SOURCE_DIR "/src/report/REPORT.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const auto json = nlohmann::json::parse(report_json(sample_report()));
  expect_described(json, page);
  expect_described(json.at("findings").at(0), page);
  expect_described(json.at("series").at(0), page);
}

TEST_F(CampaignFolder, AFindingBringsItsFilesAndCommands) {
  write("summary.json", kSummary);
  const fs::path bundle = add(finding_of(1, FindingClass::kDamage));
  EXPECT_TRUE(fold_campaign(folder_)->findings[0].repro.empty()) << "a bundle without repro.py";
  std::ofstream(bundle / "repro.py") << "pass\n";
  write("series.jsonl", R"({"fusediff_series":1,"run":1,"seconds":2.5,"checks":10,"corpus":3})"
                        "\n");
  const Result<CampaignReport> report = fold_campaign(folder_);
  EXPECT_EQ(report->findings[0].repro, "python3 " + (bundle / "repro.py").string() + " path/to/library.so");
  EXPECT_EQ(report->findings[0].files.size(), 5u);
  EXPECT_EQ(report->series.size(), 1u);
}

TEST_F(CampaignFolder, OneSignatureInManyBundlesIsOneFinding) {
  constexpr int kBundles = 500;
  constexpr int kSignatures = 50;
  for (int i = 0; i < kSignatures; ++i) add(finding_of(i, FindingClass::kRounding));
  const std::vector<fs::path> firsts = {fs::directory_iterator(folder_ / "findings"), fs::directory_iterator()};
  for (int i = kSignatures; i < kBundles; ++i) {
    fs::copy(firsts[static_cast<std::size_t>(i % kSignatures)], folder_ / "findings" / ("z" + std::to_string(i)));
  }
  const Result<CampaignReport> report = fold_campaign(folder_);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->findings.size(), std::size_t{kSignatures});
  std::size_t bundles = 0;
  for (const ReportedFinding& reported : report->findings) {
    bundles += reported.bundles;
    EXPECT_NE(reported.bundle.filename().string().front(), 'z');
  }
  EXPECT_EQ(bundles, std::size_t{kBundles});
}

TEST_F(CampaignFolder, WithoutASummaryTheCountsAreOfTheLastSecond) {
  write("stats.json", kSummary);
  const Result<CampaignReport> report = fold_campaign(folder_);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->ended);
  EXPECT_NE(report_text(*report).find("still running, or killed"), std::string::npos);
}

TEST_F(CampaignFolder, AFolderThatIsNoneIsRefused) {
  fs::remove(folder_ / "findings");
  EXPECT_NE(error().find("is not the folder of a campaign"), std::string::npos);
  fs::remove_all(folder_);
  EXPECT_NE(error().find("there is no such folder"), std::string::npos);
  std::ofstream(folder_) << "text";
  EXPECT_NE(error().find("is a file"), std::string::npos);
}

TEST_F(CampaignFolder, CountsThatAreCutOffOrNewerOrNoCountsAreRefused) {
  const std::string whole = kSummary;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 1}) {
    write("summary.json", whole.substr(0, length));
    EXPECT_NE(error().find("summary.json: is cut off"), std::string::npos) << length;
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  write("summary.json", with("\"fusediff_summary\": 1", "\"fusediff_summary\": 2"));
  EXPECT_NE(error().find("has version 2, this fusediff reads version 1"), std::string::npos) << error();
  for (const std::string& text : {std::string("{}"), with("100", "-1"), with("100", "1e99"), with("12.5", "\"12\""),
                                  with("{\"sub: not here\": 5}", "[]"), with("\"skip\": 5", "\"skip\": null")}) {
    write("summary.json", text);
    EXPECT_NE(error().find("summary.json: is no summary"), std::string::npos) << text;
    EXPECT_EQ(error().find('\n'), std::string::npos);
  }
}

TEST_F(CampaignFolder, DamagedBundlesAndLinesAreTold) {
  write("summary.json", kSummary);
  add(finding_of(1, FindingClass::kDamage));
  fs::create_directories(folder_ / "findings/half");
  write("findings/half/case.json", "{");
  write("findings.jsonl", "{\"class\": \"flip\", \"slug\": \"listed\"}\n[]\n{\"class\": \"fl");
  const Result<CampaignReport> report = fold_campaign(folder_);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->findings.size(), 1u);
  EXPECT_TRUE(report->without_bundle.contains("flip/listed"));
  ASSERT_EQ(report->problems.size(), 3u);
  EXPECT_NE(report->problems[0].find("half/case.json"), std::string::npos);
  EXPECT_NE(report->problems[1].find("line 2 is damaged"), std::string::npos);
  EXPECT_NE(report->problems[2].find("line 3 is cut off"), std::string::npos);
}

// As a bundle and its campaign say them.
Sides sides_named(const char* first, const char* second, bool two_libraries, const char* target = "",
                  const char* against = "") {
  Sides sides;
  sides.targets = {first, second};
  sides.two_libraries = two_libraries;
  sides.target = target;
  sides.against = against;
  return sides;
}

TEST(Commands, MinimizeNamesBothSides) {
  EXPECT_EQ(minimize_command("b", sides_named("mine", "builtin", true)),
            "fusediff minimize b/original.json --target mine --against builtin");
  EXPECT_EQ(minimize_command("b", sides_named("mine", "builtin", true, "./mine.so")),
            "fusediff minimize b/original.json --target ./mine.so --against builtin");
  EXPECT_EQ(minimize_command("b", sides_named("./theirs.so", "$(id)", true)),
            "fusediff minimize b/original.json --target TARGET --against AGAINST")
      << "no file that a bundle names";
}

TEST(Commands, MinimizeNamesNoOtherSideOfTheSameLibrary) {
  EXPECT_EQ(minimize_command("b", sides_named("mine", "mine", false, "./mine.so")),
            "fusediff minimize b/original.json --target ./mine.so");
  EXPECT_EQ(minimize_command("b", sides_named("mine", "mine", false, "./mine.so", "./mine.so:slow")),
            "fusediff minimize b/original.json --target ./mine.so --against ./mine.so:slow");
  EXPECT_EQ(minimize_command("b", sides_named("mine", "mine", true, "./mine.so")),
            "fusediff minimize b/original.json --target ./mine.so --against AGAINST")
      << "the name would find the first library again";
}

TEST(Commands, SayHowTheSidesWereOpened) {
  Sides sides = sides_named("mine", "mine", false, "./mine.so", "./mine.so:slow");
  sides.settings[0] = {"isa=avx2", true, {"A=1", "B=it's"}, false};
  sides.settings[1] = {"-x", true, {}, false};
  sides.opened_twice = true;
  const std::string words =
      " --isolate --target-option isa=avx2 --target-env A=1 --target-env 'B=it'\\''s' --against-option=-x";
  EXPECT_EQ(replay_command("b", sides), "fusediff replay b --target ./mine.so --against ./mine.so:slow" + words);
  EXPECT_EQ(minimize_command("b", sides),
            "fusediff minimize b/original.json --target ./mine.so --against ./mine.so:slow" + words);
  sides.target = sides.against = "";
  EXPECT_EQ(replay_command("b", sides), "fusediff replay b" + words);
  EXPECT_EQ(minimize_command("b", sides), "fusediff minimize b/original.json --target mine --against mine" + words);
}

TEST(Commands, TheOtherPathOfOneLibraryIsOpenedAsTheTargetIs) {
  Sides sides = sides_named("mine", "mine", false);
  sides.settings[0] = sides.settings[1] = {"x", true, {"A=1"}, false};
  EXPECT_EQ(replay_command("b", sides), "fusediff replay b --target-option x --target-env A=1");
  EXPECT_EQ(minimize_command("b", sides),
            "fusediff minimize b/original.json --target mine --target-option x --target-env A=1");
  sides.settings[0] = sides.settings[1] = {"", true, {}, true};
  EXPECT_EQ(replay_command("b", sides), "fusediff replay b") << "a Python file is always isolated";
}

TEST_F(CampaignFolder, CommandsOfABundleFollowItsEnvironment) {
  write("summary.json", kSummary);
  Bundle bundle = bundle_of(finding_of(1, FindingClass::kDamage));
  bundle.finding.targets = {"mine", "mine"};
  bundle.environment = R"({"target": {"file_xxh3_128": "1"}, "against": {"file_xxh3_128": "1"}})";
  std::ofstream(*write_bundle(folder_ / "findings", bundle) / "repro.py") << "pass\n";
  const Result<CampaignReport> one = fold_campaign(folder_);
  EXPECT_EQ(one->findings[0].minimize.find("--against"), std::string::npos);
  EXPECT_EQ(one->findings[0].repro.find("other.so"), std::string::npos);
  bundle.environment = R"({"target": {"file_xxh3_128": "1"}, "against": {"file_xxh3_128": "2"}})";
  std::ofstream(*write_bundle(folder_ / "findings", bundle) / "repro.py") << "pass\n";
  const Result<CampaignReport> two = fold_campaign(folder_);
  EXPECT_NE(two->findings[0].minimize.find(" --against AGAINST"), std::string::npos);
  EXPECT_NE(two->findings[0].repro.find("path/to/library.so [path/to/other.so]"), std::string::npos);
}

TEST(Commands, ReproNamesTheLibraryThatIsKnown) {
  const auto repro = [](OtherLibrary other, const char* target = "", const char* against = "") {
    return repro_command("b", other, sides_named("mine", "mine", false, target, against));
  };
  EXPECT_EQ(repro(OtherLibrary::kNone, "./my ops.so"), "python3 b/repro.py './my ops.so'");
  EXPECT_EQ(repro(OtherLibrary::kNone, "./my_ops.py:fused"), "python3 b/repro.py ./my_ops.py");
  EXPECT_EQ(repro(OtherLibrary::kNone, "my_ops.py"), "python3 b/repro.py my_ops.py");
  EXPECT_EQ(repro(OtherLibrary::kNone, "planted"), "python3 b/repro.py path/to/library.so");
  EXPECT_EQ(repro(OtherLibrary::kMayBeNamed), "python3 b/repro.py path/to/library.so [path/to/other.so]");
  EXPECT_EQ(repro(OtherLibrary::kMayBeNamed, "./a.so"), "python3 b/repro.py ./a.so [path/to/other.so]");
  EXPECT_EQ(repro(OtherLibrary::kMayBeNamed, "./a.so", "./b.so:old"), "python3 b/repro.py ./a.so ./b.so");
  Sides python = sides_named("mine", "mine", false);
  python.settings[0].python = true;
  EXPECT_EQ(repro_command("b", OtherLibrary::kNone, python), "python3 b/repro.py path/to/library.py");
}

TEST(Commands, QuoteWhatAShellWouldTakeApart) {
  EXPECT_EQ(replay_command("out/findings/add-damage-1", {}), "fusediff replay out/findings/add-damage-1");
  EXPECT_EQ(replay_command("b", sides_named("mine", "planted", true, "./mine.so", "planted")),
            "fusediff replay b --target ./mine.so --against planted")
      << "beside --target no other side is looked up";
  EXPECT_EQ(replay_command("b", sides_named("mine", "mine", false, "my_ops.py")),
            "fusediff replay b --target my_ops.py");
  EXPECT_EQ(report_command("my runs"), "fusediff report 'my runs'");
  EXPECT_EQ(replay_command("my runs/it's", {}), "fusediff replay 'my runs/it'\\''s'");
}

}  // namespace
}  // namespace fusediff
