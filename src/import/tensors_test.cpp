#include "import/tensors.h"

#include <gmock/gmock.h>

#include "import/made_test.h"
#include "model/case_json.h"
#include "model/safetensors.h"

namespace fusediff {
namespace {

using testing::Contains;
using testing::HasSubstr;

class Tensors : public Imports {
 protected:
  Result<int> import(const std::filesystem::path& file, const std::string& op) {
    options_.out = folder_ / "out";
    std::vector<CapturedFile> files = {{file, nullptr}};
    for (const CaptureFormat& format : capture_formats()) {
      if (file.extension() == format.ending) files[0].format = &format;
    }
    return import_tensors(files, *schema_->find(op), options_,
                          [this](const std::string& line) { said_.push_back(line); });
  }
  Case read(const std::string& name) const {
    const Result<std::string> text = read_file(folder_ / "out" / (name + ".json"), 1 << 20);
    EXPECT_TRUE(text.ok());
    const Result<Case> c = parse_case(text.ok() ? *text : "{}", folder_ / "out");
    EXPECT_TRUE(c.ok()) << c.error().what;
    return c.ok() ? *c : Case();
  }
  template <typename T>
  std::vector<T> values(const Case& c, const std::string& input) const {
    const auto& bits = c.inputs.at(input).fill.bits;
    std::vector<T> out(bits->size() / sizeof(T));
    std::memcpy(out.data(), bits->data(), bits->size());
    return out;
  }

  TensorOptions options_;
  std::vector<std::string> said_;
};

const std::vector<float> kScores = {1, 2, 3, 4, 5, 6, 7, 8};
const std::vector<float> kBias = {0.5f, 0.25f, 0, -1};

TEST_F(Tensors, ShapesGiveTheSizesAndEveryBitArrives) {
  for (const bool deflated : {false, true}) {
    const auto file = folder_ / (deflated ? "packed.npz" : "plain.npz");
    write_zip(file,
              {{"x.npy", npy_of("<f4", "(2, 4)", bytes_of(kScores))},
               {"bias.npy", npy_of("<f4", "(4,)", bytes_of(kBias))},
               {"left.npy", npy_of("<f8", "(1,)", std::string(8, '\0'))}},
              deflated);
    options_.attrs["k"] = "2";
    const Result<int> made = import(file, "moe_gating_topk");
    ASSERT_TRUE(made.ok()) << made.error().what;
    EXPECT_EQ(*made, 1);
    const Case c = read(file.stem().string());
    EXPECT_EQ(c.dims, (std::map<std::string, std::int64_t>{{"E", 4}, {"G", 1}, {"K", 2}, {"KG", 1}, {"T", 2}}));
    EXPECT_EQ(c.dtypes.at("x"), DType::kF32);
    EXPECT_EQ(values<float>(c, "x"), kScores);
    EXPECT_EQ(values<float>(c, "bias"), kBias);
    EXPECT_THAT(said_, Contains(HasSubstr("not used: \"left\"")));
  }
}

TEST_F(Tensors, NamesThatDifferAreMappedAndLeadingAxesJoined) {
  const auto file = folder_ / "step.npz";
  write_zip(file, {{"gate_logits.npy", npy_of("<f4", "(1, 2, 4)", bytes_of(kScores))}}, true);
  options_.names["x"] = "gate_logits";
  ASSERT_TRUE(import(file, "moe_gating_topk").ok());
  EXPECT_EQ(read("step").dims.at("T"), 2);
  EXPECT_FALSE(read("step").inputs.contains("bias"));
  EXPECT_THAT(said_, Contains(HasSubstr("[1, 2, 4] is taken as [2, 4]")));
}

TEST_F(Tensors, WhatIsThereWithOtherContentIsKeptAndNothingIsWritten) {
  const auto scores = [](float last) { return npy_of("<f4", "(2, 4)", bytes_of<float>({1, 2, 3, 4, 5, 6, 7, last})); };
  const auto steps = [&](const char* name, float last) {
    const auto file = folder_ / name / "x.npz";
    std::filesystem::create_directories(file.parent_path());
    write_zip(file, {{"a/x.npy", npy_of("<f4", "(2, 4)", bytes_of(kScores))}, {"b/x.npy", scores(last)}}, false);
    return file;
  };
  options_.attrs["k"] = "2";
  ASSERT_TRUE(import(steps("p", 8), "moe_gating_topk").ok());
  ASSERT_TRUE(import(steps("again", 8), "moe_gating_topk").ok());
  std::filesystem::remove(folder_ / "out/x_a.json");
  std::filesystem::remove(folder_ / "out/x_a.safetensors");
  const Result<int> other = import(steps("q", 9), "moe_gating_topk");
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().what, HasSubstr((folder_ / "out/x_b.safetensors").string() + ": is there already"));
  EXPECT_EQ(values<float>(read("x_b"), "x"), kScores);
  std::size_t left = 0;
  for (const auto& one : std::filesystem::directory_iterator(folder_ / "out")) left += one.exists() ? 1 : 0;
  EXPECT_EQ(left, 2u);  // x_a is not there, and no file that was begun
}

TEST_F(Tensors, OneCaseAGroupAndWhatHasNoneBelongsToAll) {
  const auto file = folder_ / "steps.npz";
  Members members = {{"bias.npy", npy_of("<f4", "(4,)", bytes_of(kBias))}};
  for (const char* step : {"step1", "step2"})
    members.push_back({std::string(step) + "/x.npy", npy_of("<f4", "(2, 4)", bytes_of(kScores))});
  members.push_back({"step3/x.npy", npy_of("<f4", "(2, 5)", std::string(40, '\0'))});
  write_zip(file, members, false);
  const Result<int> made = import(file, "moe_gating_topk");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*made, 2);
  EXPECT_EQ(values<float>(read("steps_step2"), "bias"), kBias);
  EXPECT_THAT(said_, Contains(HasSubstr("no case: steps_step3: axis 0 of \"bias\" is 4")));
}

TEST_F(Tensors, OrderAndByteOrderOfTheFileDoNotMatter) {
  std::string swapped;
  for (const float value : {1.f, 5.f, 2.f, 6.f, 3.f, 7.f, 4.f, 8.f}) {  // column by column
    const std::string bytes = bytes_of(std::vector<float>{value});
    swapped.append(bytes.rbegin(), bytes.rend());
  }
  ASSERT_TRUE(import(put("x.npy", npy_of(">f4", "(2, 4)", swapped, true)), "moe_gating_topk").ok());
  EXPECT_EQ(values<float>(read("x"), "x"), kScores);
}

TEST_F(Tensors, RawBitsAreWhatTheUserSaysAndOthersAreRounded) {
  const std::vector<std::uint16_t> bf16 = {0x3F80, 0x4000, 0x4040, 0x4080};
  ASSERT_TRUE(import(put("x.npy", npy_of("|V2", "(1, 4)", bytes_of(bf16))), "moe_gating_topk").ok());
  EXPECT_EQ(read("x").dtypes.at("x"), DType::kBF16);
  EXPECT_EQ(values<std::uint16_t>(read("x"), "x"), bf16);

  const auto other = put("x.npy", npy_of("<u2", "(1, 4)", bytes_of(bf16)));
  EXPECT_THAT(import(other, "moe_gating_topk").error().what, HasSubstr("--dtype x=DTYPE"));
  options_.dtypes["x"] = DType::kF16;
  options_.name = "half";
  ASSERT_TRUE(import(other, "moe_gating_topk").ok());
  EXPECT_EQ(read("half").dtypes.at("x"), DType::kF16);

  said_.clear();
  options_.dtypes["x"] = DType::kBF16;
  options_.name = "rounded";
  const std::vector<float> fine = {1, 1.0009765625f, 2, 3};
  ASSERT_TRUE(import(put("x.npy", npy_of("<f4", "(1, 4)", bytes_of(fine))), "moe_gating_topk").ok());
  EXPECT_EQ(values<std::uint16_t>(read("rounded"), "x"), (std::vector<std::uint16_t>{0x3F80, 0x3F80, 0x4000, 0x4040}));
  EXPECT_THAT(said_, Contains(HasSubstr("1 of 4 values rounded")));
}

TEST_F(Tensors, RowsCutAndTheMemoryCapSaysHowMany) {
  const auto file = put("x.npy", npy_of("<f4", "(2, 4)", bytes_of(kScores)));
  options_.rows = {1, 2};
  ASSERT_TRUE(import(file, "moe_gating_topk").ok());
  EXPECT_EQ(values<float>(read("x"), "x"), (std::vector<float>{5, 6, 7, 8}));
  options_.rows = {1, 3};
  EXPECT_THAT(import(file, "moe_gating_topk").error().what, HasSubstr("there are 2 rows"));
  options_.rows.reset();
  options_.max_bytes = 80;
  EXPECT_THAT(import(file, "moe_gating_topk").error().what, HasSubstr("--rows 0:1"));
}

TEST_F(Tensors, AllOfASafetensorsFileAndWhatItLacks) {
  std::vector<std::byte> half(2 * 3 * 2);
  const std::string text = write_safetensors(
      std::vector<StoredTensor>{{"w", DType::kF16, {3, 2}, half}, {"b", DType::kF16, {2}, std::vector<std::byte>(4)}});
  options_.names = {{"bias", "b"}};
  const auto file = put("layer.safetensors", text);
  ASSERT_TRUE(import(file, "matmul").ok()) << import(file, "matmul").error().what;
  EXPECT_THAT(said_, Contains(HasSubstr("is not in the file: it is drawn")));
}

TEST_F(Tensors, ValuesThatARoleForbidsMakeNoCase) {
  const auto file = folder_ / "route.npz";
  write_zip(file,
            {{"tokens.npy", npy_of("<f4", "(2, 2)", std::string(16, '\0'))},
             {"indices.npy", npy_of("<i4", "(2, 2)", bytes_of(std::vector<std::int32_t>{0, 1, 5, 5}))}},
            false);
  const Result<int> made = import(file, "moe_permute");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().what, HasSubstr("/inputs/indices"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "out"));
}

TEST_F(Tensors, NamesThatNobodyHasAreNamed) {
  const auto file = put("logits.npy", npy_of("<f4", "(2, 4)", bytes_of(kScores)));
  EXPECT_THAT(import(file, "moe_gating_topk").error().what, HasSubstr("there are logits; --map INPUT=NAME"));
  options_.names["x"] = "logit";
  EXPECT_THAT(import(file, "moe_gating_topk").error().what, HasSubstr("did you mean \"logits\""));
  options_.dims["1 +"] = 2;
  EXPECT_THAT(import(file, "moe_gating_topk").error().what, HasSubstr("\"1 +\" is not a dim of moe_gating_topk"));
  options_.dims.clear();
  options_.names = {{"y", "logits"}};
  EXPECT_THAT(import(file, "moe_gating_topk").error().what, HasSubstr("is not an input of moe_gating_topk"));
}

}  // namespace
}  // namespace fusediff
