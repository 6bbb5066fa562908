#include "import/suite.h"

#include <gmock/gmock.h>

#include "import/made_test.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

using testing::Contains;
using testing::HasSubstr;

class Suites : public Imports {
 protected:
  Result<int> import(const std::filesystem::path& file) {
    TensorOptions options;
    options.out = folder_ / "out";
    const Result<std::string> text = read_file(file, 1 << 24);
    for (const SuiteFormat& format : suite_formats()) {
      if (text.ok() && format.is(*text))
        return import_suite(file, format, *schema_, options,
                            [this](const std::string& line) { said_.push_back(line); });
    }
    return user_error("no suite");
  }
  Case read(const std::string& name) const {
    const Result<std::string> text = read_file(folder_ / "out" / (name + ".json"), 1 << 20);
    EXPECT_TRUE(text.ok());
    const Result<Case> c = parse_case(text.ok() ? *text : "{}");
    EXPECT_TRUE(c.ok());
    return c.ok() ? *c : Case();
  }
  std::vector<std::string> said_;
};

const std::string kData = FUSEDIFF_SOURCE_DIR "/src/import/testdata/";

TEST_F(Suites, RowsOfAtkBecomeCasesOrSayWhyNot) {
  const Result<int> made = import(kData + "atk_two_ops.json");
  ASSERT_TRUE(made.ok()) << made.error().what;
  EXPECT_EQ(*made, 1);
  const Case c = read("aclnnMoeGatingTopK_0");
  EXPECT_EQ(c.dims, (std::map<std::string, std::int64_t>{{"E", 32}, {"G", 2}, {"K", 4}, {"KG", 1}, {"T", 2}}));
  EXPECT_EQ(c.attrs.at("norm_type"), AttrValue("softmax"));
  EXPECT_EQ(c.attrs.at("renorm"), AttrValue(std::int64_t{1}));
  EXPECT_EQ(c.inputs.at("x").fill.kind, FillKind::kNormal);
  EXPECT_EQ(c.inputs.at("x").fill.b, 0.5);
  EXPECT_EQ(c.inputs.at("bias").fill.kind, FillKind::kUniform);
  EXPECT_THAT(said_, Contains(HasSubstr("no case: aclnnMoeGatingTopK_1: \"bias\": f16, the operator takes f32")));
  EXPECT_THAT(said_, Contains(HasSubstr("\"aclnnSomethingElse\" is not an operator that is known")));
  EXPECT_THAT(said_, Contains(HasSubstr("no case: aclnnMoeGatingTopK_3: /dims: legal is \"K <= E / G * KG\"")));
  EXPECT_THAT(said_, Contains(HasSubstr("no case: aclnnMoeGatingTopK_4: expects an error")));
  EXPECT_THAT(said_, Contains(HasSubstr("no case: aclnnMoeGatingTopK_5: axis 0 of \"bias\" is 9")));
}

TEST_F(Suites, RowsOfTtkBecomeCasesOrSayWhyNot) {
  const Result<int> made = import(kData + "ttk_mhc.csv");
  ASSERT_TRUE(made.ok()) << made.error().what;
  EXPECT_EQ(*made, 2);
  const Case grad = read("small_grad"), plain = read("small_nograd");
  EXPECT_EQ(grad.dims, (std::map<std::string, std::int64_t>{{"B", 1}, {"C", 8}, {"I", 2}, {"N", 2}, {"S", 2}}));
  EXPECT_TRUE(grad.unwanted.empty());
  EXPECT_EQ(plain.unwanted, (std::vector<std::string>{"h_pre", "hc_before_norm", "inv_rms", "norm_out", "sum_out"}));
  EXPECT_EQ(grad.inputs.at("alpha").fill.kind, FillKind::kConstant);
  EXPECT_EQ(plain.inputs.at("x").fill.b, 65504);
  EXPECT_THAT(said_, Contains(HasSubstr("the range ends at 65504, the largest finite f16")));
  EXPECT_THAT(said_, Contains(HasSubstr("no case: other_format: the format \"NZ\"")));
  EXPECT_THAT(said_, Contains(HasSubstr("no case: wrong_streams: the attribute hcMult is 4")));
  EXPECT_THAT(said_, Contains(HasSubstr("no case: no_literal: attributes: character 12")));
}

TEST_F(Suites, WhatIsThereWithOtherContentIsKeptAndNothingIsWritten) {
  ASSERT_TRUE(import(kData + "ttk_mhc.csv").ok());
  ASSERT_TRUE(import(kData + "ttk_mhc.csv").ok());  // the same content
  std::filesystem::remove(folder_ / "out/small_grad.json");
  put("out/small_nograd.json", "mine");
  const Result<int> again = import(kData + "ttk_mhc.csv");
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().what, HasSubstr((folder_ / "out/small_nograd.json").string() + ": is there already"));
  EXPECT_EQ(*read_file(folder_ / "out/small_nograd.json", 100), "mine");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/small_grad.json"));
}

// The suites of others, where they stand beside the checkout.
TEST_F(Suites, PublicSuitesAreThirteenCases) {
  const std::filesystem::path real = FUSEDIFF_SOURCE_DIR "/../shared/data/ascend";
  if (!std::filesystem::exists(real)) GTEST_SKIP() << real << " is not here";
  const Result<int> gating = import(real / "atk_moe_gating_top_k.json"),
                    mhc = import(real / "ttk_aclnn_mhc_pre_sinkhorn.csv");
  ASSERT_TRUE(gating.ok() && mhc.ok());
  EXPECT_EQ(*gating, 6);
  EXPECT_EQ(*mhc, 7);
}

}  // namespace
}  // namespace fusediff
