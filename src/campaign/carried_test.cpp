#include "campaign/carried.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/files.h"
#include "campaign/captured.h"
#include "model/case_json.h"
#include "model/inline_bits.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

// Bits as they are after a file was read or a tensor was cut: the dtype is known.
Fill bits(std::size_t bytes, std::byte value, const std::string& file = {}) {
  Fill fill;
  fill.kind = FillKind::kBits;
  fill.bits = std::make_shared<const std::vector<std::byte>>(bytes, value);
  fill.bits_file = file;
  fill.bits_dtype = DType::kF32;
  return fill;
}

Case with(const Fill& x, const Fill& w) {
  Case c;
  c.op = "o";
  c.inputs["x"].fill = x;
  c.inputs["w"].fill = w;
  return c;
}

class Carried : public testing::Test {
 protected:
  Carried() : root_(fs::path(testing::TempDir()) / ("fusediff_carried_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~Carried() override { fs::remove_all(root_); }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }
  // As another process reads it.
  Case arrived(const Case& c) const {
    const std::string text = write_case(c);
    EXPECT_LE(text.size(), kMaxCaseBytes);
    const Result<Case> read = parse_case(text, root_);
    EXPECT_TRUE(read.ok()) << read.error().what;
    return read.ok() ? *read : Case();
  }
  static void expect_same_bits(const Case& a, const Case& b) {
    for (const char* name : {"x", "w"}) EXPECT_EQ(*a.inputs.at(name).fill.bits, *b.inputs.at(name).fill.bits) << name;
  }

  const fs::path root_;
};

TEST_F(Carried, SmallBitsNeedNoFile) {
  const Case c = with(bits(64, std::byte{1}, "step.safetensors#x"), bits(kMostInlineBytes - 64, std::byte{2}));
  const Result<Case> out = carried(c, {}, "c.safetensors");
  ASSERT_TRUE(out.ok()) << out.error().what;
  EXPECT_EQ(files(), 0u);
  expect_same_bits(arrived(*out), c);
}

// One that was cut from a captured tensor has no name of its own, and needs one where it is large.
TEST_F(Carried, LargeBitsGoToOneFileWhateverNamedThemBefore) {
  const Case c = with(bits(kMostInlineBytes, std::byte{1}), bits(64, std::byte{2}, "step.safetensors#w"));
  EXPECT_FALSE(carried(c, {}, "c.safetensors").ok());
  const Result<Case> out = carried(c, root_, "c.safetensors");
  ASSERT_TRUE(out.ok()) << out.error().what;
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(arrived(*out).inputs.at("w").fill.bits_dtype, DType::kF32);
  expect_same_bits(arrived(*out), c);
}

TEST_F(Carried, CasesThatShareATensorShareItsFile) {
  const Fill x = bits(kMostInlineBytes, std::byte{1}, "a.safetensors#x");
  const Result<Case> one = carried_by_content(with(x, bits(8, std::byte{2})), root_);
  ASSERT_TRUE(one.ok()) << one.error().what;
  EXPECT_EQ(files(), 2u);
  const Fill same = bits(kMostInlineBytes, std::byte{1}, "b.safetensors#gate");
  const Result<Case> two = carried_by_content(with(same, bits(8, std::byte{3})), root_);
  ASSERT_TRUE(two.ok()) << two.error().what;
  EXPECT_EQ(files(), 3u);
  expect_same_bits(arrived(*two), with(same, bits(8, std::byte{3})));
  EXPECT_EQ(write_case(*carried_by_content(*two, root_)), write_case(*two));
}

TEST_F(Carried, APassingFolderGoesWithAllInIt) {
  {
    const Result<PassingFolder> folder = PassingFolder::make(root_ / "new", "x");
    ASSERT_TRUE(folder.ok()) << folder.error().what;
    EXPECT_TRUE(write_file(folder->path() / "a", "b").ok());
  }
  EXPECT_TRUE(fs::is_empty(root_ / "new"));
  EXPECT_FALSE(PassingFolder::make("/dev/null/x", "x").ok());
}

// What a campaign leaves starts another one: its corpus/ names files of its tensors/.
TEST_F(Carried, ACorpusOfARunBringsItsTensors) {
  const fs::path run = root_ / "run";
  fs::create_directories(run / "corpus");
  fs::create_directories(tensors_folder(run));
  EXPECT_EQ(tensors_of_cases_in(run / "corpus"), tensors_folder(run));
  EXPECT_EQ(tensors_of_cases_in(run / "corpus" / ""), tensors_folder(run));
  EXPECT_EQ(tensors_of_cases_in(run), run);
  const Case c = with(bits(kMostInlineBytes, std::byte{1}), bits(8, std::byte{2}));
  const Result<Case> kept = carried_by_content(c, tensors_folder(run));
  ASSERT_TRUE(kept.ok());
  ASSERT_TRUE(write_file(run / "corpus" / "one", write_case(*kept)).ok());
  for (const fs::path& corpus : {run / "corpus", run}) {
    const fs::path out = root_ / ("out" + corpus.filename().string());
    const Result<std::vector<fs::path>> staged = stage_corpora(out, std::vector{corpus});
    ASSERT_TRUE(staged.ok()) << staged.error().what;
    const fs::path file = staged->front() / (corpus == run ? "corpus/one" : "one");
    const Result<std::string> text = read_file(file, kMaxCaseBytes);
    ASSERT_TRUE(text.ok()) << text.error().what;
    const Result<Case> read = parse_case(*text, tensors_folder(out));
    ASSERT_TRUE(read.ok()) << read.error().what;
    expect_same_bits(*read, c);
  }
}

}  // namespace
}  // namespace fusediff
