#include "engine/bundle.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "base/files.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::array kDTypes = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3FN, DType::kF8E5M2,
                                DType::kI64, DType::kI32, DType::kI16, DType::kI8,   DType::kU8,       DType::kBool};

// A 2 x 3 tensor whose byte i is i, of a bool 0 and 1 in turn.
StoredTensor counting(const std::string& name, DType dtype) {
  StoredTensor tensor{name, dtype, {2, 3}, {}};
  for (std::size_t i = 0; i < 6 * size_of(dtype); ++i)
    tensor.bytes.push_back(static_cast<std::byte>(dtype == DType::kBool ? i % 2 : i));
  return tensor;
}

Bundle sample() {
  Bundle bundle;
  bundle.smallest.op = "add";
  bundle.smallest.experiment.kind = ExperimentKind::kRepeat;
  bundle.smallest.experiment.count = 3;
  bundle.original = bundle.smallest;
  bundle.finding.experiment = "pair";
  bundle.finding.op = "add";
  bundle.finding.output = "y";
  bundle.finding.evidence = {{FindingClass::kDamage, "pair", "y", {}, {}, "y differs"}};
  bundle.replay = Replay{10, 7};
  bundle.environment = "{}\n";
  bundle.recording.emplace();
  for (const DType dtype : kDTypes) bundle.recording->inputs.push_back(counting(std::string(name_of(dtype)), dtype));
  bundle.recording->inputs.push_back({"calls/0/\"x\"", DType::kF32, {0, 4}, {}});
  bundle.recording->outputs = {counting("target/y", DType::kBF16), counting("truth/y", DType::kF64)};
  return bundle;
}

class BundleFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fusediff_bundle_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const Bundle& bundle, std::span<const BundleFile> documents = {}) {
    const Result<fs::path> path = write_bundle(folder_, bundle, documents);
    EXPECT_TRUE(path.ok()) << (path.ok() ? "" : path.error().what);
    return path.ok() ? *path : fs::path();
  }
  static std::string error_of(const fs::path& path) {
    const Result<Bundle> read = read_bundle(path);
    return read.ok() ? "" : read.error().what;
  }
  fs::path folder_;
};

void expect_same(const std::vector<StoredTensor>& a, const std::vector<StoredTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].dtype, b[i].dtype) << a[i].name;
    EXPECT_EQ(a[i].shape, b[i].shape) << a[i].name;
    EXPECT_EQ(a[i].bytes, b[i].bytes) << a[i].name;
  }
}

TEST_F(BundleFolder, ReadsBackWhatItWrote) {
  const Bundle before = sample();
  const std::array documents = {BundleFile{"ISSUE.md", "# add\n"}, BundleFile{"repro.py", "print(1)\n"}};
  const fs::path path = write(before, documents);
  for (const char* name : {"case.json", "original.json", "finding.json", "inputs.safetensors", "outputs.safetensors",
                           "environment.json", "ISSUE.md", "repro.py"}) {
    EXPECT_TRUE(fs::is_regular_file(path / name)) << name;
  }
  EXPECT_EQ(*read_file(path / "ISSUE.md", 100), "# add\n");
  const Result<Bundle> after = read_bundle(path);
  ASSERT_TRUE(after.ok()) << after.error().what;
  EXPECT_EQ(after->smallest, before.smallest);
  EXPECT_EQ(after->replay->same, 7);
  ASSERT_TRUE(after->recording);
  expect_same(after->recording->inputs, before.recording->inputs);
  expect_same(after->recording->outputs, before.recording->outputs);
  EXPECT_EQ(after->recording->experiment, before.smallest.experiment);
  const Result<Bundle> light = read_bundle(path, BundleTensors::kLeft);
  ASSERT_TRUE(light.ok());
  EXPECT_FALSE(light->recording);
}

TEST_F(BundleFolder, OfTheFirstVersionHasNoTensors) {
  Bundle before = sample();
  before.recording.reset();
  const fs::path path = write(before);
  EXPECT_FALSE(fs::exists(path / "inputs.safetensors"));
  const Result<Bundle> after = read_bundle(path);
  ASSERT_TRUE(after.ok()) << after.error().what;
  EXPECT_FALSE(after->recording);
}

TEST_F(BundleFolder, WrittenAgainReplacesAll) {
  const std::array documents = {BundleFile{"ISSUE.md", "old\n"}};
  const fs::path path = write(sample(), documents);
  Bundle second = sample();
  second.recording.reset();
  EXPECT_EQ(write(second), path);
  EXPECT_FALSE(fs::exists(path / "ISSUE.md"));
  EXPECT_FALSE(fs::exists(path / "inputs.safetensors"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(BundleFolder, DamagedTensorsAreOneLineThatNamesTheFile) {
  const fs::path path = write(sample());
  const fs::path file = path / "outputs.safetensors";
  const std::string whole = *read_file(file, 1 << 20);
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{20}, whole.size() - 1}) {
    ASSERT_TRUE(write_file(file, whole.substr(0, length)).ok());
    EXPECT_NE(error_of(path).find("outputs.safetensors"), std::string::npos) << length << ": " << error_of(path);
  }
  std::string huge = whole;
  huge[5] = '\x7f';
  ASSERT_TRUE(write_file(file, huge).ok());
  EXPECT_NE(error_of(path).find("header"), std::string::npos) << error_of(path);
  fs::remove(file);
  std::error_code code;
  fs::create_symlink(path / "inputs.safetensors", file, code);
  ASSERT_FALSE(code);
  EXPECT_NE(error_of(path).find("regular"), std::string::npos) << error_of(path);
}

// The format's own names, and every byte where numpy expects it.
TEST_F(BundleFolder, IsReadByNumpy) {
  const fs::path path = write(sample());
  const fs::path script = folder_ / "read.py";
  std::ofstream(script) << R"(import json, sys
try:
    import numpy as np
except ImportError:
    sys.exit(77)
names = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "F8_E4M3": "u1", "F8_E5M2": "u1", "I64": "<i8",
         "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}
data = open(sys.argv[1], "rb").read()
length = int.from_bytes(data[:8], "little")
header = json.loads(data[8:8 + length])
end = 0
for name, entry in header.items():
    begin, stop = entry["data_offsets"]
    assert begin == end, name
    end = stop
    array = np.frombuffer(data[8 + length + begin:8 + length + stop], names[entry["dtype"]]).reshape(entry["shape"])
    if name.startswith("calls/"):
        assert array.shape == (0, 4)
        continue
    raw = array.tobytes()
    assert raw == bytes(i % 2 if entry["dtype"] == "BOOL" else i for i in range(len(raw))), name
    assert array.shape == (2, 3), name
assert 8 + length + end == len(data) and len(header) == 13
)";
  std::ofstream(folder_ / "library.py") << R"(import sys
try:
    from safetensors import safe_open
    with safe_open(sys.argv[1], framework="numpy") as f:
        names = set(f.keys())
except ImportError:
    sys.exit(0)
assert len(names) == 13, names
)";
  const auto run = [&](const fs::path& program) {
    const std::string command =
        "/usr/bin/python3 " + program.string() + " " + (path / "inputs.safetensors").string() + " 2>&1";
    FILE* const out = ::popen(command.c_str(), "r");
    std::string said;
    std::array<char, 256> part{};
    while (out != nullptr && std::fgets(part.data(), part.size(), out) != nullptr) said += part.data();
    const int status = out == nullptr ? -1 : ::pclose(out);
    return std::pair(WIFEXITED(status) ? WEXITSTATUS(status) : -1, said);
  };
  const auto [code, said] = run(script);
  if (code == 77 || code == 127) GTEST_SKIP() << "no numpy here";
  EXPECT_EQ(code, 0) << said;
  const auto [library_code, library_said] = run(folder_ / "library.py");
  EXPECT_EQ(library_code, 0) << library_said;
}

}  // namespace
}  // namespace fusediff
