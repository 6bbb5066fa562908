// What is recorded of planted faults is enough to make the runs again: through the C header, from the recorded bytes.
#include "engine/record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/files.h"
#include "engine/check.h"
#include "engine/recorded_run.h"
#include "model/case_json.h"
#include "model/recording_json.h"
#include "target/target.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = fs::path(FUSEDIFF_SOURCE_DIR) / "src/targets/planted/cases";

class Record : public testing::Test {
 protected:
  const Target* load(const std::string& name) {
    const Result<const Target*> loaded = loader_.load(name);
    EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().what);
    return loaded.ok() ? *loaded : nullptr;
  }

  Case read(const std::string& name) {
    const Result<std::string> text = read_file(kCases / (name + ".json"), kMaxCaseBytes);
    EXPECT_TRUE(text.ok());
    Result<Case> c = parse_case(*text);
    EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().what);
    return *c;
  }

  // The target's fused path against what `fusediff check` would take.
  Comparison comparison(const Target* target, const std::string& op) {
    const Target* builtin = load("builtin");
    const bool own = target->schema.find(op)->has_path("unfused");
    return {{PathOf{target, "fused"}, PathOf{own ? target : builtin, "unfused"}}, builtin};
  }

  Recording record(const std::string& target, const Case& c, bool run = true) {
    Engine engine(comparison(load("planted_" + target), c.op), {});
    Result<Recording> recording = engine.record(c, run);
    EXPECT_TRUE(recording.ok()) << (recording.ok() ? "" : recording.error().what);
    return recording.ok() ? *std::move(recording) : Recording();
  }

  static bool holds(const Recording& recording, const std::vector<RecordedOutputs>& made) {
    bool all = true;
    for (const SameBits& same : recording.same) {
      const RecordedCall& call = recording.calls[0][static_cast<std::size_t>(same.call[0])];
      std::size_t size = 1;
      for (const Tensor& output : call.outputs) size = output.name == same.output ? size_of(output.dtype) : size;
      const std::vector<std::byte>& a = made[static_cast<std::size_t>(same.call[0])].at(same.output);
      const std::vector<std::byte>& b = made[static_cast<std::size_t>(same.call[1])].at(same.output);
      if (same.elements[0].empty()) all = all && a == b;
      for (std::size_t i = 0; i < same.elements[0].size(); ++i) {
        const auto at = [&](std::size_t w) { return static_cast<std::size_t>(same.elements[w][i]) * size; };
        all = all && std::memcmp(a.data() + at(0), b.data() + at(1), size) == 0;
      }
    }
    return all;
  }

  // Each recorded run of the target side, made again on a target.
  static std::vector<RecordedOutputs> runs_on(const Target* target, const Recording& recording) {
    std::vector<RecordedOutputs> made;
    for (const RecordedCall& call : recording.calls[0]) made.push_back(run_recorded(call, recording, *target->abi));
    return made;
  }

  TargetLoader loader_{{fs::path(FUSEDIFF_BIN_DIR) / "targets"}};
};

// Both sides' calls give again what was recorded, and not the same.
void expect_outputs(const Recording& recording, const Comparison& comparison, bool differs = true) {
  bool any_differs = false;
  ASSERT_EQ(recording.calls[0].size(), 1u);
  ASSERT_EQ(recording.calls[1].size(), 1u);
  for (const Side side : kSides) {
    const std::string prefix = side == Side::kTarget ? "target/" : "against/";
    const RecordedOutputs made =
        run_recorded(recording.calls[index_of(side)][0], recording, *comparison.sides[index_of(side)].target->abi);
    for (const auto& [name, bytes] : made) {
      const StoredTensor* stored = find_stored(recording.outputs, prefix + name);
      if (stored == nullptr) continue;  // the other record's own
      EXPECT_EQ(stored->bytes, bytes) << prefix << name;
      const StoredTensor* other = find_stored(recording.outputs, "against/" + name);
      any_differs = any_differs || (other != nullptr && other->bytes != bytes);
    }
    EXPECT_FALSE(made.empty());
  }
  EXPECT_EQ(any_differs, differs);
}

TEST_F(Record, BothSidesOfAPair) {
  for (const char* name : {"aiter_2586", "flaggems_4988", "vllm_44692"}) {
    SCOPED_TRACE(name);
    const Case c = read(name);
    const Recording recording = record(name, c);
    expect_outputs(recording, comparison(load(std::string("planted_") + name), c.op));
    std::set<std::string> truths;
    for (const StoredTensor& output : recording.outputs) {
      if (output.name.starts_with("truth/")) {
        truths.insert(output.name);
        EXPECT_EQ(output.dtype, DType::kF64);
        EXPECT_EQ(output.shape, find_stored(recording.outputs, "target/" + output.name.substr(6))->shape);
      }
    }
    const std::vector<Tensor>& outputs = recording.calls[0][0].outputs;
    const auto wanted = std::count_if(outputs.begin(), outputs.end(), [](const Tensor& t) { return t.present; });
    EXPECT_EQ(truths.size(), static_cast<std::size_t>(wanted));
    EXPECT_TRUE(recording.same.empty());
  }
}

TEST_F(Record, BackwardWithItsSavedTensors) {
  const Case c = read("report_b1");
  const Recording recording = record("report_b1", c);
  for (const char* saved : {"h_pre", "hc_before_norm", "inv_rms", "sum_out", "norm_out"})
    EXPECT_NE(find_stored(recording.inputs, saved), nullptr) << saved;
  EXPECT_NE(find_stored(recording.outputs, "truth/grad_bias"), nullptr);
  expect_outputs(recording, comparison(load("planted_report_b1"), c.op));
}

// The tie of report A, with the stages that were not asked for.
TEST_F(Record, StagesThatTheCaseDoesNotAskFor) {
  const char* text = R"({"fusediff_case": 1, "op": "moe_gating_topk", "dims": {"T": 1, "E": 8, "K": 2, "G": 1, "KG": 1},
    "dtypes": {"x": "f32"}, "unwanted": ["rank"],
    "inputs": {"x": {"fill": {"normal": {"mean": 0, "std": 1}, "seed": 1}},
               "bias": {"fill": {"constant": 0}}}})";
  const Result<Case> c = parse_case(text);
  ASSERT_TRUE(c.ok()) << c.error().what;
  const Recording recording = record("report_a", *c);
  for (const RecordedCall& call : {recording.calls[0].at(0), recording.calls[1].at(0)}) {
    for (const Tensor& output : call.outputs) EXPECT_EQ(output.present, output.name != "rank") << output.name;
  }
  for (const char* name : {"target/rank", "against/rank", "truth/rank", "target/norm_out", "target/expert_idx"})
    EXPECT_NE(find_stored(recording.outputs, name), nullptr) << name;
}

// An output whose `if` does not hold is not asked for, whatever the case says of it: nobody would write it.
TEST_F(Record, OutputsThatTheCallDoesNotHaveAreNotAskedFor) {
  Case c = read("aiter_2586");
  c.attrs.erase("add_residual");
  c.inputs.erase("residual");
  c.unwanted = {"residual_out", "rstd"};
  const Recording recording = record("aiter_2586", c);
  for (const char* side : {"target/", "against/"}) {
    EXPECT_EQ(find_stored(recording.outputs, side + std::string("residual_out")), nullptr);
    EXPECT_NE(find_stored(recording.outputs, side + std::string("rstd")), nullptr);
  }
  Engine engine(comparison(load("planted_row_position"), "rms_norm"), {});
  const Result<Case> odd = parse_case(
      R"({"fusediff_case":1,"op":"rms_norm","dims":{"C":5,"R":4},"dtypes":{"x":"f32"},"inputs":{
      "gamma":{"fill":{"constant":0.0},"set":{"2":"0x1p+0"}},"x":{"fill":{"constant":0.0},"set":{"5":"0x1.a0aaaap+12",
      "7":"0x1.a0aaaap+11","8":"0x1.388p+12","9":"0x1.388p+12"}}},"unwanted":["rstd","residual_out"]})");
  ASSERT_TRUE(odd.ok()) << odd.error().what;
  const Result<CheckResult> result = engine.check(*odd);
  ASSERT_TRUE(result.ok());
  ASSERT_TRUE(result->verdict.finding);
  EXPECT_EQ(result->verdict.finding->cls, FindingClass::kRounding);
}

TEST_F(Record, OneRunOfEachRelationIsBrokenOnTheFaultAndHoldsOnItsTwin) {
  for (const char* name : {"address_modulo", "unsloth_10617", "inplace_overlap", "pytorch_48235", "row_position"}) {
    SCOPED_TRACE(name);
    const Recording recording = record(name, read(name));
    ASSERT_FALSE(recording.same.empty());
    EXPECT_TRUE(recording.calls[1].empty());
    EXPECT_FALSE(holds(recording, runs_on(load(std::string("planted_") + name), recording)));
    EXPECT_TRUE(holds(recording, runs_on(load(std::string("planted_") + name + "_clean"), recording)));
    ASSERT_NE(find_stored(recording.outputs, "target/y") == nullptr, std::string(name) != "unsloth_10617");
  }
}

TEST_F(Record, RelationsOfRowsInOtherWays) {
  for (const RelationKind kind : {RelationKind::kRowsPermuted, RelationKind::kBatchSplit, RelationKind::kRowAlone}) {
    SCOPED_TRACE(name_of(kind));
    Case c = read("row_position");
    c.experiment.relation = kind;
    c.experiment.row = kind == RelationKind::kRowAlone ? 2 : 1;
    const Recording recording = record("row_position", c);
    ASSERT_FALSE(recording.same.empty());
    EXPECT_EQ(recording.calls[0].size(), kind == RelationKind::kBatchSplit ? 3u : 2u);
    EXPECT_FALSE(holds(recording, runs_on(load("planted_row_position"), recording)));
    EXPECT_TRUE(holds(recording, runs_on(load("planted_row_position_clean"), recording)));
  }
}

TEST_F(Record, OneCpuIsTwoRunsOfTheSameCall) {
  Case c = read("row_position");
  c.experiment.relation = RelationKind::kOneCpu;
  c.experiment.row = 0;
  const Recording recording = record("row_position", c);
  ASSERT_EQ(recording.calls[0].size(), 2u);
  EXPECT_FALSE(recording.calls[0][0].pinned);
  EXPECT_TRUE(recording.calls[0][1].pinned);
  for (const SameBits& same : recording.same) {
    EXPECT_EQ(same.call, (std::array<int, 2>{1, 0}));
    EXPECT_TRUE(same.elements[0].empty());
  }
  EXPECT_EQ(recording.calls[0][0].stored, recording.calls[0][1].stored);
  EXPECT_TRUE(holds(recording, runs_on(load("planted_row_position"), recording)));
}

// After the recorded calls of its experiment the case gives other bits than recorded; alone it gives these.
TEST_F(Record, CallsThatShareAContext) {
  for (const char* name : {"history_stale_table", "repeat_first_call"}) {
    SCOPED_TRACE(name);
    const Recording recording = record(name, read(name));
    const Target* target = load(std::string("planted_") + name);
    const std::vector<RecordedCall>& calls = recording.calls[0];
    const RecordedOutputs alone = run_recorded(calls[0], recording, *target->abi);
    EXPECT_EQ(alone.at("y"), find_stored(recording.outputs, "target/y")->bytes);
    for (const bool clean : {false, true}) {
      const Target* tried = load(std::string("planted_") + name + (clean ? "_clean" : ""));
      void* context = nullptr;
      ASSERT_EQ(tried->abi->open("", &context), FUSEDIFF_OK);
      for (std::size_t i = 1; i < calls.size(); ++i) {
        RecordedRun before(calls[i], recording);
        EXPECT_EQ(before.run(*tried->abi, context), FUSEDIFF_OK);
      }
      for (std::size_t i = 1; calls.size() == 1 && i < 2; ++i) {
        RecordedRun before(calls[0], recording);
        EXPECT_EQ(before.run(*tried->abi, context), FUSEDIFF_OK);
      }
      RecordedRun last(calls[0], recording);
      EXPECT_EQ(last.run(*tried->abi, context), FUSEDIFF_OK);
      tried->abi->close(context);
      EXPECT_EQ(last.outputs().at("y") == run_recorded(calls[0], recording, *tried->abi).at("y"), clean);
    }
  }
}

TEST_F(Record, EveryCallOfAThreadsExperimentHasItsOwnTensors) {
  for (const char* name : {"flashinfer_4476", "report_b3"}) {
    SCOPED_TRACE(name);
    const Case c = read(name);
    const Recording recording = record(name, c);
    ASSERT_EQ(recording.calls[0].size(), 1 + c.experiment.calls.size());
    EXPECT_EQ(recording.experiment.count, c.experiment.count);
    EXPECT_EQ(recording.experiment.seed, c.experiment.seed);
    const Target* target = load(std::string("planted_") + name);
    for (std::size_t k = 0; k < recording.calls[0].size(); ++k) {
      const std::string prefix = k == 0 ? "" : "calls/" + std::to_string(k - 1) + "/";
      for (const auto& [output, bytes] : run_recorded(recording.calls[0][k], recording, *target->abi)) {
        const StoredTensor* stored = find_stored(recording.outputs, "target/" + prefix + output);
        ASSERT_NE(stored, nullptr) << prefix << output;
        EXPECT_EQ(stored->bytes, bytes) << prefix << output;
      }
    }
  }
}

TEST_F(Record, WithoutARunTheInputsAreWhole) {
  for (const char* name : {"aiter_2586", "report_b3", "address_modulo", "row_position", "report_b1", "pytorch_48235"}) {
    SCOPED_TRACE(name);
    const Recording run = record(name, read(name));
    const Recording none = record(name, read(name), false);
    EXPECT_TRUE(none.outputs.empty());
    ASSERT_GE(none.calls[0].size(), run.calls[0].size());
    EXPECT_EQ(none.calls[1].size(), run.calls[1].size());
    ASSERT_EQ(none.inputs.size(), run.inputs.size());
    for (std::size_t i = 0; i < run.inputs.size(); ++i) EXPECT_EQ(none.inputs[i].bytes, run.inputs[i].bytes);
    for (const RecordedCall& call : none.calls[0]) {
      for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        EXPECT_EQ(find_stored(none.inputs, call.stored[i]) != nullptr, call.inputs[i].present);
      }
    }
    const Result<Recording> again = parse_recording(write_recording(none));
    ASSERT_TRUE(again.ok()) << again.error().what;
    EXPECT_EQ(again->calls[0].size(), none.calls[0].size());
  }
}

TEST_F(Record, NothingToRecordIsAnError) {
  Case c = read("row_position");
  c.dims["R"] = 1;
  c.experiment.row = 0;
  Engine engine(comparison(load("planted_row_position"), c.op), {});
  const Result<Recording> recording = engine.record(c, true);
  ASSERT_FALSE(recording.ok());
  EXPECT_NE(recording.error().what.find("fewer than two rows"), std::string::npos) << recording.error().what;
}

}  // namespace
}  // namespace fusediff
