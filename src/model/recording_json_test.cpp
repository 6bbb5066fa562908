#include "model/recording_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace fusediff {
namespace {

Recording sample() {
  Recording recording;
  recording.experiment.kind = ExperimentKind::kRelation;
  recording.experiment.relation = RelationKind::kBatchSplit;
  recording.experiment.row = 3;
  recording.experiment.seed = std::numeric_limits<std::uint64_t>::max();
  RecordedCall call;
  call.op = "add";
  call.path = "fused";
  call.attrs = {
      {"k", std::int64_t{-4}}, {"eps", -std::numeric_limits<double>::infinity()}, {"mode", std::string("a\"b")}};
  Tensor x;
  x.name = "x";
  x.dtype = DType::kBF16;
  x.shape = {2, 0};
  x.stride = {0, 1};
  x.align = 16;
  x.offset = 3;
  x.place = Place::kMiddle;
  Tensor y = x;
  y.name = "y";
  y.on = 0;
  Tensor unwanted = y;
  unwanted.present = false;
  call.inputs = {x};
  call.outputs = {y, unwanted};
  call.stored = {"calls/0/x"};
  call.pinned = true;
  recording.calls[0] = {call, call};
  recording.same = {{"y", {1, 0}, {}}, {"y", {0, 0}, {{{1, 2}, {0, 0}}}}};
  return recording;
}

TEST(RecordingJson, ReadsBackWhatItWrote) {
  const Recording before = sample();
  const Result<Recording> after = parse_recording(write_recording(before));
  ASSERT_TRUE(after.ok()) << after.error().what;
  EXPECT_EQ(after->experiment, before.experiment);
  ASSERT_EQ(after->calls[0].size(), 2u);
  EXPECT_TRUE(after->calls[1].empty());
  const RecordedCall &a = after->calls[0][1], &b = before.calls[0][1];
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.path, b.path);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.stored, b.stored);
  EXPECT_EQ(a.pinned, b.pinned);
  ASSERT_EQ(a.attrs.size(), b.attrs.size());
  for (std::size_t i = 0; i < a.attrs.size(); ++i) {
    EXPECT_EQ(a.attrs[i].name, b.attrs[i].name);
    EXPECT_EQ(a.attrs[i].value, b.attrs[i].value);
  }
  ASSERT_EQ(after->same.size(), 2u);
  EXPECT_EQ(after->same[1].call, before.same[1].call);
  EXPECT_EQ(after->same[1].elements, before.same[1].elements);
}

TEST(RecordingJson, RefusesWhatDoesNotFit) {
  for (const char* text : {"", "{}", R"({"experiment": {"kind": "pair"}})"}) EXPECT_FALSE(parse_recording(text).ok());
  Recording wrong = sample();
  wrong.same[0].call = {0, 7};
  EXPECT_FALSE(parse_recording(write_recording(wrong)).ok());
  wrong = sample();
  wrong.same[1].elements[0].pop_back();
  EXPECT_FALSE(parse_recording(write_recording(wrong)).ok());
  wrong = sample();
  wrong.calls[0][0].stored.clear();
  EXPECT_FALSE(parse_recording(write_recording(wrong)).ok());
}

}  // namespace
}  // namespace fusediff
