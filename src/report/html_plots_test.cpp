#include "report/html_plots.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

namespace fusediff {
namespace {

namespace fs = std::filesystem;

template <typename T>
StoredTensor tensor(const std::string& name, DType dtype, std::vector<std::int64_t> shape,
                    const std::vector<T>& values) {
  StoredTensor made{name, dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

class Plots : public testing::Test {
 protected:
  void SetUp() override {
    bundle_ = fs::temp_directory_path() / ("fusediff_plots_" + std::to_string(::getpid()));
    fs::remove_all(bundle_);
    fs::create_directories(bundle_);
    finding_.output = "y";
  }
  void TearDown() override { fs::remove_all(bundle_); }

  void write(const char* name, const std::vector<StoredTensor>& tensors) const {
    std::ofstream(bundle_ / name, std::ios::binary) << write_safetensors(tensors);
  }

  fs::path bundle_;
  Finding finding_;
};

TEST_F(Plots, EveryElementWhereThereIsRoom) {
  const float nan = std::nanf("");
  write("outputs.safetensors", {tensor<float>("target/y", DType::kF32, {4}, {1.0f, 1.00000011920929f, 2.0f, nan}),
                                tensor<float>("against/y", DType::kF32, {4}, {1.0f, 1.0f, 2.0f, 3.0f})});
  const auto plots = ulp_plots(finding_, Tensors(bundle_), 4, 512);
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_EQ(plots[0].at("bucket"), 1);
  EXPECT_EQ(plots[0].at("ulp"), nlohmann::ordered_json({0, 1, 0, -1})) << "NaN against a number has no distance";
  EXPECT_EQ(plots[0].at("differing"), 2);
}

TEST_F(Plots, OfManyElementsTheLargestOfEachBucketAndWhereItIs) {
  std::vector<std::int32_t> a(1001, 7), b = a;
  a[500] = 9;
  a[501] = 107;
  write("outputs.safetensors",
        {tensor("target/y", DType::kI32, {1001}, a), tensor("against/y", DType::kI32, {1001}, b)});
  Difference d;
  d.output = "y";
  d.differing = 5;
  finding_.differences = {d};
  const auto plots = ulp_plots(finding_, Tensors(bundle_), 4, 100);
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_EQ(plots[0].at("bucket"), 11);
  EXPECT_EQ(plots[0].at("ulp").size(), 91u);
  EXPECT_EQ(plots[0].at("ulp")[500 / 11], 100);
  EXPECT_EQ(plots[0].at("at")[500 / 11], 501);
  EXPECT_EQ(plots[0].at("told"), 5) << "the recorded run differs in two";
}

TEST_F(Plots, OtherBitsOfTheSameValueAreNotEqual) {
  write("outputs.safetensors", {tensor<float>("target/y", DType::kF32, {3}, {1.0f, 0.0f, 0.0f}),
                                tensor<float>("against/y", DType::kF32, {3}, {1.0f, 0.0f, -0.0f})});
  const auto plots = ulp_plots(finding_, Tensors(bundle_), 4, 512);
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_EQ(plots[0].at("ulp"), nlohmann::ordered_json({0, 0, -2})) << "the sign of zero is no distance";
  EXPECT_EQ(plots[0].at("differing"), 1);
  EXPECT_EQ(plots[0].at("max_ulp"), 0);
}

TEST_F(Plots, WhatIsMissingOrDoesNotFitIsNoPlot) {
  EXPECT_NE(Tensors(bundle_).unread().find("holds no outputs.safetensors"), std::string::npos);
  EXPECT_TRUE(ulp_plots(finding_, Tensors(bundle_), 4, 512).empty());
  write("outputs.safetensors",
        {tensor<float>("target/y", DType::kF32, {2}, {1, 2}), tensor<float>("against/y", DType::kF32, {1}, {1})});
  EXPECT_TRUE(ulp_plots(finding_, Tensors(bundle_), 4, 512).empty());
  std::ofstream(bundle_ / "outputs.safetensors") << "no such file";
  EXPECT_TRUE(ulp_plots(finding_, Tensors(bundle_), 4, 512).empty());
}

Flip flip_of_report_a() {
  Flip flip;
  flip.pick = "idx";
  flip.by = "rank";
  flip.by_is_known = true;
  flip.row = 1;
  flip.slot = 1;
  flip.picked = {3, 1};
  flip.rows = 1;
  return flip;
}

TEST_F(Plots, TheTieOfARowOnBothSides) {
  const float tied = 0.5f, below = std::nextafter(0.5f, 0.0f);
  write("outputs.safetensors",
        {tensor<float>("target/rank", DType::kF32, {2, 4}, {0, 0, 0, 0, 0.75f, below, 0.25f, tied}),
         tensor<float>("against/rank", DType::kF32, {2, 4}, {0, 0, 0, 0, 0.75f, tied, 0.25f, tied}),
         tensor<std::int32_t>("target/idx", DType::kI32, {2, 2}, {0, 1, 0, 3}),
         tensor<std::int32_t>("against/idx", DType::kI32, {2, 2}, {0, 1, 0, 1})});
  finding_.flips = {flip_of_report_a()};
  const auto ties = tie_pictures(finding_, Tensors(bundle_));
  ASSERT_EQ(ties.size(), 1u);
  EXPECT_EQ(ties[0].at("order"), "largest");
  EXPECT_EQ(ties[0].at("hidden"), 0);
  const auto& candidates = ties[0].at("candidates");
  ASSERT_EQ(candidates.size(), 4u);
  EXPECT_EQ(candidates[0].at("index"), 1) << "the contested ones first";
  EXPECT_EQ(candidates[0].at("ulp"), nlohmann::ordered_json({-1, 0}));
  EXPECT_EQ(candidates[0].at("slot"), nlohmann::ordered_json({-1, 1}));
  EXPECT_EQ(candidates[1].at("index"), 3);
  EXPECT_EQ(candidates[1].at("ulp"), nlohmann::ordered_json({0, 0}));
  EXPECT_EQ(candidates[1].at("slot"), nlohmann::ordered_json({1, -1}));
}

TEST_F(Plots, WithoutTensorsTheTieOfTheFinding) {
  Flip flip = flip_of_report_a();
  flip.rank_bits = {{{0x3f000000, 0x3effffff}, {0x3f000000, 0x3f000000}}};
  finding_.flips = {flip};
  const auto ties = tie_pictures(finding_, Tensors(bundle_));
  ASSERT_EQ(ties[0].at("candidates").size(), 2u);
  EXPECT_EQ(ties[0]["candidates"][0].at("index"), 3);
  EXPECT_EQ(ties[0]["candidates"][1].at("ulp"), nlohmann::ordered_json({-1, 0}));
  EXPECT_EQ(ties[0].at("order"), "");
}

TEST_F(Plots, ARowOrPickThatIsNotThereIsNoPicture) {
  write("outputs.safetensors", {tensor<float>("target/rank", DType::kF32, {1, 2}, {0, 0}),
                                tensor<float>("against/rank", DType::kF32, {1, 2}, {0, 0})});
  Flip flip = flip_of_report_a();
  for (const auto& [row, pick] : {std::pair{1, 0}, {-1, 0}, {0, 2}, {0, -5}}) {
    flip.row = row;
    flip.picked = {pick, 0};
    flip.by_is_known = false;
    finding_.flips = {flip};
    EXPECT_TRUE(tie_pictures(finding_, Tensors(bundle_))[0].at("candidates").empty()) << row << " " << pick;
  }
}

}  // namespace
}  // namespace fusediff
