#include "engine/unasked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> of(const std::string& record) {
  const toy::Toy made(record);
  return unasked(made.target.schema.operators.at(0));
}

TEST(Unasked, TwoPathsAndNothingElse) {
  EXPECT_THAT(of(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
                     "inputs": [{"name": "g", "shape": ["N"], "dtype": "f32", "role": "cotangent"}],
                     "outputs": [{"name": "y", "shape": ["N"], "dtype": "=g"}]})"),
              ElementsAre(HasSubstr("`stage`"), HasSubstr("`bound`"), HasSubstr("`rows`"), HasSubstr("`layout`"),
                          HasSubstr("`inplace`"), HasSubstr("`gradient`")));
}

TEST(Unasked, WhatStandsThereIsNotMissed) {
  EXPECT_THAT(of(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
                     "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32", "layout": "any"}],
                     "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32", "stage": 1,
                                  "bound": {"ulp": "1", "of": "element", "why": "one rounding"}}],
                     "rows": {"dim": "N", "inputs": ["x"], "outputs": "all"}, "inplace": [["y", "x"]]})"),
              IsEmpty());
}

}  // namespace
}  // namespace fusediff
