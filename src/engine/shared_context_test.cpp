// repeat and history: what an earlier call leaves behind on a context, and what only looks so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using testing::HasSubstr;
using toy::check;
using toy::in_short;
using toy::ones;
using toy::Toy;

const std::string kTwo = toy::one_to_one() + R"(, {"name": "other", "paths": ["fused", "unfused"],
  "dims": {"N": {"range": [0, 64]}}, "inputs": [{"name": "x", "shape": ["N"], "dtype": "f32"}],
  "outputs": [{"name": "y", "shape": ["N"], "dtype": "f32"}]})";

std::string call_of(const std::string& op, int n) {
  return R"({"op": ")" + op + R"(", "dims": {"N": )" + std::to_string(n) +
         R"(}, "inputs": {"x": {"fill": {"constant": 2}}})" + (op == "op" ? R"(, "dtypes": {"x": "f32"}})" : "}");
}
Case repeated(int count, const std::string& calls = "") {
  return ones(8, R"({"constant": 1})",
              R"(, "experiment": {"repeat": {"count": )" + std::to_string(count) + R"(, "calls": [)" + calls + "]}}");
}
Case after(const std::string& calls) {
  return ones(8, R"({"constant": 1})", R"(, "experiment": {"history": {"calls": [)" + calls + "]}}");
}

// A context that counts its calls, by operator.
class SharedContext : public testing::Test {
 protected:
  SharedContext() : toy_(kTwo) {
    toy_.open = [this] {
      calls_ = others_ = largest_ = 0;
      return FUSEDIFF_OK;
    };
    toy_.paths["other:fused"] = [this](const fusediff_call& call) {
      ++others_;
      return toy::each([](double x) { return x; })(call);
    };
    clean_ = toy::each([](double x) { return 2 * x; });
    toy_.paths["unfused"] = clean_;
  }
  // y is off by one where `wrong` holds at the time of the call.
  void wrong_where(std::function<bool()> wrong) {
    toy_.paths["op:fused"] = [this, wrong](const fusediff_call& call) {
      ++calls_;
      const bool is_wrong = wrong();
      largest_ = std::max(largest_, static_cast<int>(toy::count(call.inputs[0])));
      const fusediff_status status = clean_(call);
      if (is_wrong) toy::set(call.outputs[0], 0, 7);
      return status;
    };
  }

  Toy toy_;
  toy::Path clean_;
  int calls_ = 0, others_ = 0, largest_ = 0;
};

TEST_F(SharedContext, ACleanPathPasses) {
  wrong_where([] { return false; });
  EXPECT_EQ(in_short(check(toy_, repeated(20, call_of("other", 4)))), "pass");
  EXPECT_EQ(in_short(check(toy_, after(call_of("other", 4) + "," + call_of("op", 16)))), "pass");
}

TEST_F(SharedContext, RepeatSeesThatOnlyTheFirstCallDiffers) {
  wrong_where([this] { return calls_ > 1; });
  const Verdict verdict = check(toy_, repeated(5));
  ASSERT_EQ(in_short(verdict), "contamination y");
  const Finding& f = *verdict.finding;
  EXPECT_EQ(f.experiment, "repeat");
  EXPECT_EQ(f.paths[0], "fused");
  EXPECT_EQ(f.paths[1], "fused");
  EXPECT_THAT(f.conclusion, HasSubstr("the second call on a context already differs from the first"));
  EXPECT_EQ(f.causes[0].differing * 5, f.causes[0].calls * 4);
  EXPECT_EQ(f.causes[0].digests, 1);
  EXPECT_GE(f.rates[1].runs, 16);
  EXPECT_EQ(f.rates[1].differing, 0);
}

TEST_F(SharedContext, RepeatSeesTheEighthCall) {
  wrong_where([this] { return calls_ == 8; });
  EXPECT_EQ(in_short(check(toy_, repeated(7))), "pass");
  const Verdict verdict = check(toy_, repeated(9));
  ASSERT_EQ(in_short(verdict), "contamination y");
  EXPECT_THAT(verdict.finding->conclusion, HasSubstr("needs more than two calls on one context"));
}

TEST_F(SharedContext, RepeatSaysThatItTakesAnotherCallBetween) {
  wrong_where([this] { return others_ > 0; });
  EXPECT_EQ(in_short(check(toy_, repeated(9))), "pass");
  const Verdict verdict = check(toy_, repeated(3, call_of("other", 4)));
  ASSERT_EQ(in_short(verdict), "contamination y");
  EXPECT_THAT(verdict.finding->conclusion, HasSubstr("needs another call between"));
}

TEST_F(SharedContext, HistoryNamesTheCallThatIsEnough) {
  wrong_where([this] { return largest_ > 8; });
  EXPECT_EQ(in_short(check(toy_, after(call_of("other", 4) + "," + call_of("op", 4)))), "pass");
  const Verdict verdict = check(toy_, after(call_of("other", 4) + "," + call_of("op", 16)));
  ASSERT_EQ(in_short(verdict), "contamination y");
  EXPECT_EQ(verdict.finding->experiment, "history");
  EXPECT_EQ(verdict.finding->conclusion, "call 2 (op) before it is enough; after the same call it is clean");
}

TEST_F(SharedContext, AStatusThatOnlyAnEarlierCallBringsIsContamination) {
  toy_.paths["op:fused"] = [this](const fusediff_call& call) {
    if (++calls_ > 1) return FUSEDIFF_FAILED;
    return clean_(call);
  };
  const Verdict verdict = check(toy_, repeated(2));
  ASSERT_EQ(in_short(verdict), "contamination");
  EXPECT_THAT(verdict.finding->evidence[0].what, HasSubstr("ends in FAILED"));
}

// Chance is not taken for the context.
TEST_F(SharedContext, APathThatDiffersByItselfIsNondeterminism) {
  int all = 0;
  wrong_where([&] { return ++all % 3 == 0; });
  EXPECT_EQ(in_short(check(toy_, repeated(9))), "nondeterminism y");
}

TEST_F(SharedContext, WhatTheFillsOfMemoryExplainIsNotTheContext) {
  // Leaves y[0] unwritten from its second call on: it keeps its fill, and the note says so.
  toy_.paths["op:fused"] = [this](const fusediff_call& call) {
    const bool again = ++calls_ > 1;
    for (std::int64_t i = again ? 1 : 0; i < toy::count(call.outputs[0]); ++i)
      toy::set(call.outputs[0], i, 2 * toy::get(call.inputs[0], i));
    return FUSEDIFF_OK;
  };
  const Verdict verdict = check(toy_, repeated(4));
  ASSERT_EQ(in_short(verdict), "contamination y");
  ASSERT_FALSE(verdict.finding->notes.empty());
  EXPECT_THAT(verdict.finding->notes[0], HasSubstr("y: 1 of 8 elements hold what the memory held before the call"));
}

TEST_F(SharedContext, AnOverrunOfALaterCallIsAnOverrun) {
  toy_.paths["op:fused"] = [this](const fusediff_call& call) {
    clean_(call);
    if (++calls_ > 1) static_cast<float*>(call.outputs[0].data)[-1] = 1;
    return FUSEDIFF_OK;
  };
  EXPECT_EQ(in_short(check(toy_, repeated(4))), "overrun y");
}

TEST_F(SharedContext, WhatIsNotOfferedIsASkip) {
  wrong_where([] { return false; });
  const Verdict verdict = check(toy_, after(call_of("nowhere", 4)));
  EXPECT_EQ(verdict.kind, Verdict::Kind::kSkip);
  EXPECT_THAT(verdict.reason, HasSubstr("does not offer nowhere, a call of the experiment"));
}

}  // namespace
}  // namespace fusediff
