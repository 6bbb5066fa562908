#include "report/repro.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>

#include "model/dtype.h"
#include "report/python_text.h"
#include "report/repro_plan.h"
#include "report/repro_rule.h"

namespace fusediff {

std::string_view repro_numbers();

namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPython = "/usr/bin/python3";

bool has_python() { return std::system("/usr/bin/python3 -c 'import numpy' 2> /dev/null") == 0; }

std::filesystem::path folder() {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    ("repro_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
  std::filesystem::create_directories(path);
  return path;
}

void write(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

// Exit code of `python3 SCRIPT argument`; what it says is in file `said`.
int run(const std::filesystem::path& script, const std::string& argument, const std::filesystem::path& said) {
  const std::string command =
      std::string(kPython) + " '" + script.string() + "' '" + argument + "' > '" + said.string() + "' 2>&1";
  return WEXITSTATUS(std::system(command.c_str()));
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Tensor vector_of(std::string name, std::int64_t elements) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = {elements};
  tensor.stride = {1};
  tensor.align = 4;
  return tensor;
}

// y = x of one path against the other, `elements` f32 each.
Bundle bundle_of(FindingClass cls, std::int64_t elements) {
  Bundle bundle;
  bundle.smallest.op = "copy";
  Finding& f = bundle.finding;
  f.op = "copy";
  f.experiment = "pair";
  f.targets = {"mine", "mine"};
  f.paths = {"fused", "unfused"};
  f.output = "y";
  f.cls = cls;
  f.evidence.push_back({cls, "bits", "y", 1, Side::kTarget, "y says \"\"\" and \\N"});
  Difference d;
  d.output = "y";
  d.max_ulp = 1;
  f.differences.push_back(d);
  Recording recording;
  for (const std::size_t s : {0u, 1u}) {
    RecordedCall call;
    call.op = "copy";
    call.path = f.paths[s];
    call.attrs = {{"scale", std::numeric_limits<double>::infinity()}, {"mode", std::string("a'b\"c\n")}};
    call.inputs = {vector_of("x", elements)};
    call.outputs = {vector_of("y", elements)};
    call.stored = {"x"};
    recording.calls[s].push_back(call);
  }
  const std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * 4);
  recording.inputs = {{"x", DType::kF32, {elements}, bytes}};
  recording.outputs = {{"target/y", DType::kF32, {elements}, bytes}, {"against/y", DType::kF32, {elements}, bytes}};
  bundle.recording = recording;
  return bundle;
}

TEST(PythonText, LiteralsOfEveryKind) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Json value{{"a", true}, {"b", nullptr}, {"c", -infinity}, {"d", {1, 2.5}}, {"e", "\"\\\n"}};
  EXPECT_EQ(python_literal(value),
            "{\"a\": True, \"b\": None, \"c\": float(\"-inf\"), \"d\": [1, 2.5], \"e\": \"\\\"\\\\\\n\"}");
  EXPECT_EQ(python_literal(Json(std::nan(""))), "float(\"nan\")");
}

TEST(PythonText, NoLineOfNumbersIsTooLong) {
  const std::string text = python_literal({{"numbers", std::vector<int>(200, 12345)}});
  std::size_t longest = 0;
  for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    longest = std::max(longest, end - at);
  }
  EXPECT_LE(longest, 120u);
}

TEST(ReproRule, NumbersOfEverySentence) {
  EXPECT_EQ(broken_rule("p holds 0 stands twice in row 3, columns 1 and 2"),
            (Json{{"kind", "distinct"}, {"row", 3}, {"twice", {1, 2}}}));
  EXPECT_EQ(broken_rule("p holds 9 in row 0, column 4, outside 0..7"),
            (Json{{"kind", "range"}, {"row", 0}, {"low", 0.0}, {"high", 7.0}}));
  EXPECT_EQ(broken_rule("y holds nan in row 2, column 0 although every input is finite"),
            (Json{{"kind", "finite"}, {"row", 2}}));
  EXPECT_EQ(broken_rule("y holds row 1 sums to 0.9, not to 1 within 1e-06"),
            (Json{{"kind", "row_sums"}, {"row", 1}, {"sum", 1.0}, {"within", 1e-6}}));
  EXPECT_EQ(broken_rule("p holds 4 in row 0, column 1: no permutation of 0..3"),
            (Json{{"kind", "permutation"}, {"row", 0}}));
  EXPECT_TRUE(broken_rule("something else").is_null());
  EXPECT_EQ(memory_cap("asks for 9 bytes of workspace; with tensors of 4 bytes the cap is 1024"), 1024u);
  EXPECT_EQ(memory_cap("no memory to keep the outputs"), std::nullopt);
}

TEST(Repro, EveryClassHasItsPart) {
  for (int cls = 0; cls < kFindingClassCount; ++cls) {
    const std::string script = repro_script(bundle_of(static_cast<FindingClass>(cls), 4));
    std::size_t looks = 0;
    for (std::size_t at = script.find("\ndef look("); at != std::string::npos; at = script.find("\ndef look(", at + 1))
      ++looks;
    EXPECT_EQ(looks, 1u) << name_of(static_cast<FindingClass>(cls));
  }
}

TEST(Repro, LargeTensorsStayInTheirFiles) {
  EXPECT_THAT(repro_script(bundle_of(FindingClass::kDamage, 4)), Not(HasSubstr("beside this script.\n")));
  const std::string large = repro_script(bundle_of(FindingClass::kDamage, 100000));
  EXPECT_THAT(large, HasSubstr("inputs.safetensors beside this script."));
  EXPECT_THAT(large, HasSubstr("INPUTS = {}"));
  EXPECT_LT(large.size(), 100000u);
}

// Whatever stands in the finding, the script is Python, and a library that is not there is one clear line.
TEST(Repro, AMissingLibraryIsOneLine) {
  if (!has_python()) GTEST_SKIP() << "no Python with NumPy";
  const auto path = folder();
  for (int cls = 0; cls < kFindingClassCount; ++cls) {
    write(path / "repro.py", repro_script(bundle_of(static_cast<FindingClass>(cls), 4)));
    EXPECT_EQ(run(path / "repro.py", "/no/such/library.so", path / "said"), 2) << text_of(path / "said");
    EXPECT_THAT(text_of(path / "said"), HasSubstr("cannot use /no/such/library.so as a target"));
    EXPECT_THAT(text_of(path / "said"), Not(HasSubstr("Traceback")));
  }
}

// Every element of the 8 and 16 bit formats means the same in the script and here.
TEST(Repro, NarrowFloatsAreDecodedExactly) {
  if (!has_python()) GTEST_SKIP() << "no Python with NumPy";
  const auto path = folder();
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF8E4M3FN, DType::kF8E5M2}) {
    const std::uint64_t count = std::uint64_t{1} << (8 * size_of(dtype));
    std::string bits, expected, distances;
    for (std::uint64_t i = 0; i < count; ++i) {
      const double value = float_value(dtype, i);
      const std::uint64_t distance = ulp_distance(dtype, i, (i * 7919 + 5) % count);
      bits.append(reinterpret_cast<const char*>(&i), size_of(dtype));
      expected.append(reinterpret_cast<const char*>(&value), sizeof value);
      distances.append(reinterpret_cast<const char*>(&distance), sizeof distance);
    }
    write(path / "bits", bits);
    write(path / "expected", expected);
    write(path / "distances", distances);
    std::string script = "import numpy as np\nimport sys, os\nnp.seterr(all='ignore')\nFINDING = {'class': ''}\n";
    script += repro_numbers();
    script += "d = '" + std::string(name_of(dtype)) + "'\n";
    script += R"(
os.chdir(sys.argv[1])
bits = np.fromfile("bits", raw_type(d))
others = ((np.arange(len(bits), dtype="u8") * np.uint64(7919) + np.uint64(5)) % np.uint64(len(bits))).astype(raw_type(d))
right = np.array_equal(values(d, bits), np.fromfile("expected", "f8"), equal_nan=True)
near = np.array_equal(ulps(d, bits, others), np.fromfile("distances", "u8"))
print(right, near)
sys.exit(0 if right and near else 1)
)";
    write(path / "decode.py", script);
    EXPECT_EQ(run(path / "decode.py", path.string(), path / "said"), 0)
        << name_of(dtype) << ": " << text_of(path / "said");
  }
}

// A library of testdata/copy_target.cpp.
std::string library(const char* kind) {
  return std::string(FUSEDIFF_BIN_DIR) + "/testdata/report_copy_" + kind + ".so";
}

// y[0] is 1, the other side says 0: two builds of one library with one name and one path.
Bundle two_builds() {
  Bundle bundle = bundle_of(FindingClass::kZeroSign, 4);
  bundle.finding.paths = {"fused", "fused"};
  bundle.recording->calls[1][0].path = "fused";
  const float one = 1;
  std::memcpy(bundle.recording->outputs[0].bytes.data(), &one, sizeof one);
  bundle.environment =
      R"({"target": {"file": "a.so", "file_xxh3_128": "1"}, "against": {"file": "b.so", "file_xxh3_128": "2"}})";
  return bundle;
}

class ReproRun : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_python()) GTEST_SKIP() << "no Python with NumPy";
    folder_ = folder();
    use(bundle_of(FindingClass::kZeroSign, 4));
  }

  void use(const Bundle& bundle) { write(folder_ / "repro.py", repro_script(bundle)); }

  // Exit code of `python3 PYTHON_OPTIONS repro.py ARGUMENTS`, run by a shell; said_ is what it writes.
  int run_with(const std::string& arguments, const std::string& before = "", const std::string& options = "") {
    const std::string said = "'" + (folder_ / "said").string() + "'";
    const std::string command = before + " " + kPython + " " + options + " '" + (folder_ / "repro.py").string() +
                                "' > " + said + " 2>&1 " + arguments;
    const int code = WEXITSTATUS(std::system(command.c_str()));
    said_ = text_of(folder_ / "said");
    EXPECT_THAT(said_, Not(HasSubstr("Traceback")));
    return code;
  }

  std::filesystem::path folder_;
  std::string said_;
};

TEST_F(ReproRun, ALibraryThatDiesWhileItIsLoadedShowsNothing) {
  for (const std::string& sides : {library("aborting"), library("plain") + " " + library("aborting")}) {
    EXPECT_EQ(run_with(sides), 2) << said_;
    EXPECT_THAT(said_, HasSubstr("cannot use " + library("aborting") + " as a target: while it was loaded"));
    EXPECT_THAT(said_, Not(HasSubstr("the bug is")));
  }
}

TEST_F(ReproRun, ALibraryThatDiesInTheCallHasTheBug) {
  EXPECT_EQ(run_with(library("plain") + " --target-option abort"), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("the library ended the process: SIGABRT"));
}

TEST_F(ReproRun, WhatIsNoWholeLibraryIsOneLine) {
  const std::filesystem::path cut = folder_ / "cut.so", pipe = folder_ / "pipe.so";
  std::filesystem::remove(cut);
  std::filesystem::remove(pipe);
  std::filesystem::copy_file(library("plain"), cut);
  for (const std::uintmax_t size : {std::uintmax_t{0}, std::uintmax_t{100}, std::uintmax_t{4096}}) {
    std::filesystem::resize_file(cut, size);
    EXPECT_EQ(run_with(cut.string()), 2) << said_;
    EXPECT_EQ(run_with(library("plain") + " " + cut.string()), 2) << said_;
  }
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::filesystem::path& path : {pipe, folder_}) {
    EXPECT_EQ(run_with(path.string()), 2) << said_;
    EXPECT_EQ(said_, "cannot use " + path.string() + " as a target: it is no regular file\n");
  }
}

TEST_F(ReproRun, WithoutNumPyOneLineSaysWhereItIs) {
  EXPECT_EQ(run_with(library("plain"), "", "-I -S"), 2) << said_;
  EXPECT_EQ(said_, "numpy is needed: apt-get install python3-numpy, or pip install numpy\n");
}

TEST_F(ReproRun, NumbersOfTriesBelowOneAreRefused) {
  for (const char* option : {"--runs 0", "--runs -1", "--runs x", "--seconds 0", "--seconds nan"}) {
    EXPECT_EQ(run_with(library("plain") + " " + option), 2) << said_;
    EXPECT_THAT(said_, HasSubstr("is right"));
  }
}

TEST_F(ReproRun, AnInterruptEndsItQuietly) {
  EXPECT_EQ(run_with(library("plain") + " --target-option hang", "timeout --preserve-status -s INT 2"), 130) << said_;
}

TEST_F(ReproRun, OutputThatCannotBeWrittenIsNoAnswer) {
  EXPECT_EQ(run_with(library("plain") + " > /dev/full"), 2) << said_;
  EXPECT_THAT(said_, HasSubstr("this script cannot go on: "));
  EXPECT_EQ(run_with(library("plain") + " >&-"), 0) << "nobody asked for words";
}

TEST_F(ReproRun, TwoBuildsOfOneLibraryAreNotTakenForOne) {
  use(two_builds());
  EXPECT_EQ(run_with(library("plain") + " --target-option wrong"), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("compared with the recorded outputs of mine (b.so), path fused"));
  EXPECT_EQ(run_with(library("plain")), 0) << said_;
  EXPECT_EQ(run_with(library("plain") + " " + library("plain") + " --target-option wrong"), 1) << said_;
  EXPECT_THAT(said_, Not(HasSubstr("recorded outputs of")));
}

TEST_F(ReproRun, OneLibraryIsBothSides) {
  EXPECT_EQ(run_with(library("plain")), 0) << said_;
  EXPECT_THAT(said_, Not(HasSubstr("recorded outputs of")));
}

// A bundle of testdata/copy_target.py.
Bundle of_python(FindingClass cls) {
  Bundle bundle = bundle_of(cls, 4);
  bundle.environment =
      R"({"target": {"file": "copy_target.py", "isolated": true}, "against": {"file": "copy_target.py"}})";
  return bundle;
}

const std::string kCopyFile = std::string(FUSEDIFF_SOURCE_DIR) + "/src/report/testdata/copy_target.py";

TEST_F(ReproRun, APythonFileIsCalledByItself) {
  use(of_python(FindingClass::kZeroSign));
  EXPECT_EQ(run_with(kCopyFile), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("y (f32): all 4 elements agree"));
  EXPECT_EQ(run_with(kCopyFile + " --target-option wrong"), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("y (f32): 1 of 4 elements differ"));
  EXPECT_EQ(run_with(kCopyFile + " --target-env COPY=wrong"), 1) << said_;
  EXPECT_EQ(run_with(kCopyFile + " --target-option abort"), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("the library ended the process: SIGABRT"));
  EXPECT_EQ(run_with(kCopyFile + " --target-option fail"), 2) << said_;
  EXPECT_THAT(said_, HasSubstr("FAILED: it returned 2 values for the outputs y"));
}

TEST_F(ReproRun, APythonFileMayWorkOnTorchTensors) {
  if (std::system("/usr/bin/python3 -c 'import torch' 2> /dev/null") != 0) GTEST_SKIP() << "no torch";
  use(of_python(FindingClass::kZeroSign));
  EXPECT_EQ(run_with(kCopyFile, "COPY_ARRAYS=torch"), 0) << said_;
  EXPECT_EQ(run_with(kCopyFile + " --target-option wrong", "COPY_ARRAYS=torch"), 1) << said_;
}

TEST_F(ReproRun, APythonFunctionIsWatchedAsALibraryIs) {
  Bundle unwritten = of_python(FindingClass::kUnwritten);
  unwritten.recording->calls[0][0].path = "skipping";
  use(unwritten);
  EXPECT_EQ(run_with(kCopyFile), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("y 4/16 bytes unwritten: 0..3"));
  use(of_python(FindingClass::kUnwritten));
  EXPECT_EQ(run_with(kCopyFile), 0) << said_;

  Bundle changed = of_python(FindingClass::kInputChanged);
  changed.finding.output = "x";
  use(changed);
  EXPECT_EQ(run_with(kCopyFile + " --target-option change"), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("x: 1 of 4 elements of the input changed; first at index 1"));
  EXPECT_EQ(run_with(kCopyFile), 0) << said_;

  use(of_python(FindingClass::kUndeclaredLimit));
  EXPECT_EQ(run_with(kCopyFile + " --target-option reject"), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("REJECTED: ValueError: no such copy (copy_target.py:"));
  EXPECT_EQ(run_with(kCopyFile), 0) << said_;

  use(of_python(FindingClass::kNondeterminism));
  EXPECT_EQ(run_with(kCopyFile + " --runs 5 --target-option other"), 1) << said_;
  EXPECT_EQ(run_with(kCopyFile + " --runs 5"), 0) << said_;

  use(of_python(FindingClass::kHang));
  EXPECT_EQ(run_with(kCopyFile + " --seconds 2 --target-option hang"), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("the call did not come back"));
}

TEST_F(ReproRun, APythonFunctionIsCalledByThreads) {
  Bundle crowded = of_python(FindingClass::kContamination);
  crowded.recording->experiment.kind = ExperimentKind::kThreads;
  crowded.recording->experiment.count = 4;
  crowded.recording->experiment.rounds = 2;
  use(crowded);
  EXPECT_EQ(run_with(kCopyFile + " --runs 4 --target-option crowded"), 1) << said_;
  EXPECT_EQ(run_with(kCopyFile + " --runs 4"), 0) << said_;
}

TEST_F(ReproRun, WhatIsNoTargetFileIsOneLine) {
  use(of_python(FindingClass::kZeroSign));
  write(folder_ / "broken.py", "import no_such_module\n");
  write(folder_ / "empty.py", "");
  EXPECT_EQ(run_with((folder_ / "broken.py").string()), 2) << said_;
  EXPECT_THAT(said_, HasSubstr("broken.py as a target: ModuleNotFoundError: No module named 'no_such_module'\n"));
  EXPECT_EQ(run_with((folder_ / "empty.py").string()), 2) << said_;
  EXPECT_THAT(said_, HasSubstr("empty.py as a target: AttributeError"));
  EXPECT_EQ(run_with(library("plain")), 2) << said_;
  EXPECT_THAT(said_, HasSubstr(": a Python file is needed here"));
}

// One library, opened in two ways.
Bundle opened_twice(FindingClass cls, Side accused, const std::string& target, const std::string& against) {
  Bundle bundle = bundle_of(cls, 4);
  bundle.finding.paths = {"fused", "fused"};
  bundle.finding.evidence.front().accused = accused;
  bundle.environment =
      R"({"target": {"file": "a.so", )" + target + R"(}, "against": {"file": "a.so", )" + against + "}}";
  return bundle;
}

TEST_F(ReproRun, SidesThatAreOpenedInTwoWaysHaveAProcessEach) {
  use(opened_twice(FindingClass::kZeroSign, Side::kTarget, R"("variables": ["COPY=wrong"])", R"("variables": [])"));
  EXPECT_EQ(run_with(library("plain")), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("opened with: --target-env COPY=wrong\n"));
  EXPECT_THAT(said_, HasSubstr("compared with the recorded outputs of mine (a.so), path fused (give AGAINST.so"));
  EXPECT_EQ(run_with(library("plain") + " --target-env COPY="), 0) << said_;
  const std::string both = library("plain") + " " + library("plain");
  EXPECT_EQ(run_with(both), 1) << said_;
  EXPECT_THAT(said_, Not(HasSubstr("recorded outputs of")));
  EXPECT_EQ(run_with(both + " --against-env COPY=wrong"), 0) << said_;
  EXPECT_EQ(run_with(both + " --against-env COPY=abort"), 2) << said_;
  EXPECT_THAT(said_, HasSubstr("there is nothing to compare"));
  EXPECT_EQ(run_with(both + " --against-env =wrong"), 2) << said_;
}

TEST_F(ReproRun, TheSideThatIsAccusedIsOpenedAsItWas) {
  use(opened_twice(FindingClass::kUndeclaredLimit, Side::kAgainst, R"("options": "")", R"("options": "reject")"));
  EXPECT_EQ(run_with(library("plain")), 1) << said_;
  EXPECT_THAT(said_, HasSubstr("opened with: --against-option reject\n"));
  EXPECT_EQ(run_with(library("plain") + " --against-option ''"), 0) << said_;
}

TEST_F(ReproRun, AnIsolatedLibraryGetsItsVariables) {
  Bundle bundle = bundle_of(FindingClass::kUndeclaredLimit, 4);
  bundle.environment = R"({"target": {"file": "a.so", "variables": ["COPY=reject"]},
                           "against": {"file": "a.so", "variables": ["COPY=reject"]}})";
  use(bundle);
  EXPECT_EQ(run_with(library("plain")), 1) << said_;
  EXPECT_EQ(run_with(library("plain") + " --target-env COPY="), 0) << said_;
}

}  // namespace
}  // namespace fusediff
