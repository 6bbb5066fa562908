#include "campaign/captured.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "model/case_json.h"
#include "model/safetensors.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

class Corpora : public testing::Test {
 protected:
  Corpora() : root_(fs::path(testing::TempDir()) / ("fusediff_captured_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "out");
  }
  ~Corpora() override { fs::remove_all(root_); }

  // A corpus with one case, whose x is `value` in a file beside it.
  fs::path corpus(const std::string& name, std::byte value) const {
    const fs::path folder = root_ / name / "op";
    fs::create_directories(folder);
    const std::vector<StoredTensor> tensors = {{"x", DType::kI8, {2}, {value, value}}};
    EXPECT_TRUE(write_file(folder / "step.safetensors", write_safetensors(tensors)).ok());
    EXPECT_TRUE(write_file(folder / "step.json", R"({"fusediff_case": 1, "op": "o", "dims": {},
      "inputs": {"x": {"fill": {"bits": "step.safetensors#x"}, "set": {"1": "0x1.8p+1"}}}})")
                    .ok());
    return root_ / name;
  }
  std::byte first_of(const fs::path& folder) const {
    const Result<std::string> text = read_file(folder / "op" / "step.json", kMaxCaseBytes);
    EXPECT_TRUE(text.ok());
    const Result<Case> c = parse_case(*text, tensors_folder(root_ / "out"));
    EXPECT_TRUE(c.ok()) << c.error().what;
    EXPECT_EQ(c->inputs.at("x").set.at(1).real, 3);
    return c->inputs.at("x").fill.bits->front();
  }

  const fs::path root_;
};

TEST_F(Corpora, FilesOfOneNameStayApartAndAreFoundInOneFolder) {
  const fs::path a = corpus("a", std::byte{1}), b = corpus("b", std::byte{2});
  const auto staged = stage_corpora(root_ / "out", {a, b});
  ASSERT_TRUE(staged.ok()) << staged.error().what;
  ASSERT_EQ(staged->size(), 2u);
  EXPECT_EQ(first_of((*staged)[0]), std::byte{1});
  EXPECT_EQ(first_of((*staged)[1]), std::byte{2});
  EXPECT_EQ(std::distance(fs::directory_iterator(tensors_folder(root_ / "out")), fs::directory_iterator()), 2);
  // Again, as a later campaign would.
  ASSERT_TRUE(stage_corpora(root_ / "out", {b}).ok());
  EXPECT_EQ(first_of(root_ / "out" / "seeds" / "0"), std::byte{2});
}

TEST_F(Corpora, OthersAreReadWhereTheyAre) {
  fs::create_directories(root_ / "plain");
  ASSERT_TRUE(write_file(root_ / "plain" / "a.json", "{}").ok());
  const auto staged = stage_corpora(root_ / "out", {root_ / "plain"});
  ASSERT_TRUE(staged.ok());
  EXPECT_EQ(*staged, std::vector<fs::path>{root_ / "plain"});
  EXPECT_FALSE(fs::exists(tensors_folder(root_ / "out")));
}

TEST_F(Corpora, LinksAndPathsOutOfTheFolderAreNotFollowed) {
  const fs::path a = corpus("a", std::byte{1});
  fs::rename(a / "op" / "step.safetensors", root_ / "away.safetensors");
  fs::create_symlink(root_ / "away.safetensors", a / "op" / "step.safetensors");
  ASSERT_TRUE(write_file(a / "op" / "other.safetensors", write_safetensors({})).ok());
  const auto staged = stage_corpora(root_ / "out", {a});
  ASSERT_TRUE(staged.ok());
  const Result<std::string> text = read_file((*staged)[0] / "op" / "step.json", kMaxCaseBytes);
  ASSERT_TRUE(text.ok());
  EXPECT_FALSE(parse_case(*text, tensors_folder(root_ / "out")).ok());
}

}  // namespace
}  // namespace fusediff
