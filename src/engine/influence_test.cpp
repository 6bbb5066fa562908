#include "engine/influence.h"

#include <cmath>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using namespace toy;

// y = gain * x + g * flip, where flip is +1 or -1.
constexpr const char* kOp = R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"N": {"range": [0, 64]}},
    "attrs": [{"name": "gain", "float": [0.5, 4.0], "default": 1.0}, {"name": "flip", "bool": true, "default": false},
              {"name": "unused", "int": [0, 3], "default": 0}],
    "inputs": [{"name": "x", "shape": ["N"], "dtype": ["f32"], "layout": "any"},
               {"name": "g", "shape": ["N"], "dtype": "=x", "role": "cotangent"},
               {"name": "at", "shape": ["N"], "dtype": "i32", "role": "index", "range": [0, "N - 1"]}],
    "outputs": [{"name": "y", "shape": ["N"], "dtype": "=x", "layout": "any"}]})";

struct Deaf {
  bool to_g = false, to_flip = false, to_at = false;
  double error = 0;
};

Path path(const Deaf& deaf) {
  return [deaf](const fusediff_call& call) {
    for (std::int64_t i = 0; i < count(out(call, "y")); ++i) {
      const std::int64_t from = deaf.to_at ? i : static_cast<std::int64_t>(get(in(call, "at"), i));
      const double g = deaf.to_g ? 0.25 : get(in(call, "g"), i);
      const double sign = !deaf.to_flip && attr(call, "flip") != 0 ? -1 : 1;
      set(out(call, "y"), i, attr(call, "gain") * get(in(call, "x"), from) + g * sign + deaf.error);
    }
    return FUSEDIFF_OK;
  };
}

Case plain(const std::string& members = "") {
  return case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"N": 6}, "dtypes": {"x": "f32"}, "attrs": {"flip": true},
      "inputs": {"x": {"fill": {"ramp": [1, 2]}}, "g": {"fill": {"uniform": [0.5, 1], "seed": 2}},
                 "at": {"fill": {"permutation": {}, "seed": 5}}})" +
                 members + "}");
}

std::vector<std::string> sentences(const Deaf& fused, const Deaf& unfused = {}, const Case& c = plain()) {
  Toy toy(kOp);
  toy.paths = {{"fused", path(fused)}, {"unfused", path(unfused)}};
  const Verdict verdict = check(toy, c);
  if (!verdict.finding) {
    ADD_FAILURE() << in_short(verdict) << verdict.reason;
    return {};
  }
  return verdict.finding->influence;
}

TEST(Influence, AnInputThatOneSideIgnoresIsNamed) {
  Deaf deaf;
  deaf.to_g = true;
  EXPECT_EQ(sentences(deaf),
            std::vector<std::string>{"fused does not follow g: changing it moves the outputs of unfused "
                                     "and not those of fused"});
  EXPECT_EQ(sentences({}, deaf).at(0).substr(0, 25), "unfused does not follow g");
}

TEST(Influence, AnAttributeThatIsDroppedIsNamed) {
  Deaf deaf;
  deaf.to_flip = true;
  const std::vector<std::string> said = sentences(deaf);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].substr(0, 26), "fused does not follow flip");
}

TEST(Influence, AnIndexThatIsIgnoredIsNamed) {
  Deaf deaf;
  deaf.to_at = true;
  const std::vector<std::string> said = sentences(deaf);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].substr(0, 24), "fused does not follow at");
}

TEST(Influence, AStrideThatIsIgnoredIsNamed) {
  Toy toy(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"M": {"range": [0, 8]}, "N": {"range": [0, 8]}},
      "inputs": [{"name": "x", "shape": ["M", "N"], "dtype": ["f32"], "layout": "any"}],
      "outputs": [{"name": "y", "shape": ["M", "N"], "dtype": "=x"}]})");
  toy.paths = {{"unfused", each([](double x) { return x; })},
               {"fused", [](const fusediff_call& call) {
                  for (std::int64_t i = 0; i < count(call.outputs[0]); ++i)
                    set(call.outputs[0], i, static_cast<double>(static_cast<const float*>(call.inputs[0].data)[i]));
                  return FUSEDIFF_OK;
                }}};
  const Verdict verdict = check(toy, case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"M": 2, "N": 3},
      "dtypes": {"x": "f32"}, "inputs": {"x": {"fill": {"ramp": [1, 6]}}}, "layout": {"x": {"stride": [1, 2]}}})"));
  ASSERT_EQ(in_short(verdict), "damage y");
  ASSERT_EQ(verdict.finding->influence.size(), 1u);
  EXPECT_EQ(verdict.finding->influence[0].substr(0, 39), "fused does not follow the strides of x:");
}

TEST(Influence, HonestPathsThatDifferAreNotAccused) {
  Deaf damaged;
  damaged.error = 0.5;
  EXPECT_TRUE(sentences(damaged).empty());
  EXPECT_TRUE(sentences(damaged, {}, plain(R"(, "layout": {"x": {"stride": [2]}})")).empty());
}

TEST(Influence, RoundingIsNotAskedWhatItFollows) {
  Deaf rounding;
  rounding.error = 0x1p-23;
  EXPECT_TRUE(sentences(rounding).empty());
}

}  // namespace
}  // namespace fusediff
