#include "run/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <csignal>
#include <cstring>
#include <set>
#include <stdexcept>

#include "run/fake_target.h"

namespace fusediff {
namespace {

using fake::behaviour;
using fake::Bench;
using fake::tensor;

std::vector<std::byte> repeated(std::byte value, std::size_t bytes) { return std::vector<std::byte>(bytes, value); }

std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

TEST(Runner, PassesTheCallAsTheHeaderSays) {
  Bench bench;
  bench.target.options = "device=3";
  bench.add_input(tensor("x", {2, 3}));
  Tensor absent = tensor("bias", {3}, DType::kBF16);
  absent.present = false;
  bench.add_input(absent);
  bench.add_output(tensor("y", {2, 3}));
  Tensor unwanted = tensor("rank", {2});
  unwanted.present = false;
  bench.add_output(unwanted);
  bench.add_output(tensor("scalar", {}, DType::kF64));
  bench.call.attrs = {
      {"k", std::int64_t{7}}, {"eps", 0.5}, {"norm", std::string("softmax")}, {"renorm", std::int64_t{1}}};
  std::string options;
  behaviour.open = [&](const char* given, void** context) {
    options = given;
    *context = &options;
    return FUSEDIFF_OK;
  };
  bool looked = false;
  behaviour.run = [&](const fusediff_call& call) {
    looked = true;
    EXPECT_EQ(call.struct_size, sizeof(fusediff_call));
    EXPECT_STREQ(call.op, "fake_op");
    EXPECT_STREQ(call.path, "fused");
    EXPECT_EQ(call.attr_count, 4u);
    EXPECT_STREQ(call.attrs[0].name, "k");
    EXPECT_EQ(call.attrs[0].kind, FUSEDIFF_INT);
    EXPECT_EQ(call.attrs[0].i, 7);
    EXPECT_EQ(call.attrs[1].kind, FUSEDIFF_FLOAT);
    EXPECT_EQ(call.attrs[1].f, 0.5);
    EXPECT_EQ(call.attrs[2].kind, FUSEDIFF_STRING);
    EXPECT_STREQ(call.attrs[2].s, "softmax");
    EXPECT_EQ(call.attrs[3].kind, FUSEDIFF_INT);
    EXPECT_EQ(call.input_count, 2u);
    EXPECT_STREQ(call.inputs[0].name, "x");
    EXPECT_EQ(call.inputs[0].rank, 2);
    EXPECT_EQ(call.inputs[0].shape[1], 3);
    EXPECT_EQ(call.inputs[0].stride[0], 3);
    EXPECT_EQ(call.inputs[0].dtype, FUSEDIFF_F32);
    EXPECT_NE(call.inputs[0].data, nullptr);
    EXPECT_EQ(call.inputs[1].data, nullptr);
    EXPECT_EQ(call.inputs[1].dtype, FUSEDIFF_BF16);
    EXPECT_EQ(call.inputs[1].shape[0], 3);
    EXPECT_EQ(call.output_count, 3u);
    EXPECT_EQ(call.outputs[1].data, nullptr);
    EXPECT_EQ(call.outputs[2].rank, 0);
    EXPECT_NE(call.outputs[2].data, nullptr);
    EXPECT_EQ(call.workspace, nullptr);
    EXPECT_EQ(call.workspace_size, 0u);
    return fake::copy(call);
  };
  const Execution& execution = bench.run();
  EXPECT_TRUE(looked);
  EXPECT_EQ(options, "device=3");
  EXPECT_EQ(execution.ending, Ending::kOk);
  EXPECT_EQ(execution.outputs[0], bench.inputs[0]);
  EXPECT_TRUE(execution.outputs[1].empty());
  EXPECT_EQ(execution.outputs[2], repeated(kFirstFills.output, 8));  // unwritten keeps the fill
  EXPECT_TRUE(execution.overruns.empty());
  EXPECT_TRUE(execution.changed_inputs.empty());
  EXPECT_GT(execution.nanoseconds, 0u);
  EXPECT_FALSE(bench.runner.tainted());
}

TEST(Runner, EveryPlaceAndOffsetGivesTheSameBytes) {
  for (const Place place : {Place::kEnd, Place::kStart, Place::kMiddle}) {
    for (std::int64_t offset = 0; offset < (place == Place::kEnd ? 1 : 20); ++offset) {
      Bench bench;
      Tensor x = tensor("x", {5, 7}, DType::kI16);
      Tensor y = tensor("y", {5, 7}, DType::kI16);
      x.place = y.place = place;
      x.offset = y.offset = offset;
      bench.add_input(x);
      bench.add_output(y);
      std::uintptr_t at = 0;
      behaviour.run = [&](const fusediff_call& call) {
        at = address(call.inputs[0].data);
        return fake::copy(call);
      };
      const Execution& execution = bench.run();
      ASSERT_EQ(execution.ending, Ending::kOk) << execution.message;
      EXPECT_EQ(execution.outputs[0], bench.inputs[0]);
      EXPECT_TRUE(execution.overruns.empty());
      const std::uintptr_t bytes = 5 * 7 * 2;
      if (place == Place::kEnd) {
        EXPECT_EQ((at + bytes) % 4096, 0u);
      }
      if (place == Place::kStart) {
        EXPECT_EQ(at % 4096, static_cast<std::uintptr_t>(offset * 2));
      }
      if (place == Place::kMiddle && offset == 0) {
        EXPECT_NE(at % 64, 0u);
      }
    }
  }
}

TEST(Runner, StridedTensorsLieWhereTheirStridesSay) {
  Bench bench;
  Tensor x = tensor("x", {3, 4}, DType::kF32);
  x.stride = {9, 2};
  Tensor y = tensor("y", {3, 4}, DType::kF32);
  y.stride = {1, 5};  // transposed, with a gap
  bench.add_input(x);
  bench.add_output(y);
  behaviour.run = fake::copy;
  const Execution& execution = bench.run();
  EXPECT_EQ(execution.ending, Ending::kOk);
  EXPECT_EQ(execution.outputs[0], bench.inputs[0]);
  EXPECT_TRUE(execution.overruns.empty());
  EXPECT_TRUE(execution.changed_inputs.empty());
}

TEST(Runner, StrideZeroStoresOneElement) {
  Bench bench;
  Tensor x = tensor("x", {3, 4}, DType::kF32);
  x.stride = {0, 1};
  bench.add_input(x);
  bench.add_output(tensor("y", {3, 4}));
  ASSERT_EQ(bench.inputs[0].size(), 16u);
  behaviour.run = fake::copy;
  const Execution& execution = bench.run();
  ASSERT_EQ(execution.outputs[0].size(), 48u);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(std::memcmp(execution.outputs[0].data() + row * 16, bench.inputs[0].data(), 16), 0);
  }
  EXPECT_TRUE(execution.changed_inputs.empty());
  EXPECT_TRUE(execution.overruns.empty());
}

TEST(Runner, EmptyTensorsAreNull) {
  Bench bench;
  bench.add_input(tensor("x", {0, 4}));
  bench.add_output(tensor("y", {0, 4}));
  bench.add_output(tensor("sum", {4}));
  behaviour.run = [](const fusediff_call& call) {
    EXPECT_EQ(call.inputs[0].data, nullptr);
    EXPECT_EQ(call.outputs[0].data, nullptr);
    EXPECT_NE(call.outputs[1].data, nullptr);
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  EXPECT_EQ(execution.ending, Ending::kOk);
  EXPECT_TRUE(execution.outputs[0].empty());
  EXPECT_EQ(execution.outputs[1], repeated(kFirstFills.output, 16));
}

TEST(Runner, BothBanksGiveTheSameAddressModulo4096) {
  Bench bench;
  bench.add_input(tensor("x", {700}));
  bench.add_input(tensor("b", {3}, DType::kU8));
  bench.add_output(tensor("y", {700}));
  bench.call.outputs[0].place = Place::kMiddle;
  behaviour.workspace = [](const fusediff_call&, std::size_t& bytes) {
    bytes = 1000;
    return FUSEDIFF_OK;
  };
  std::vector<std::uintptr_t> seen;
  behaviour.run = [&](const fusediff_call& call) {
    for (const void* data : {call.inputs[0].data, call.inputs[1].data, call.outputs[0].data, call.workspace}) {
      seen.push_back(address(data));
    }
    return FUSEDIFF_OK;
  };
  bench.run();
  bench.request.bank = Bank::kSecond;
  bench.request.fills = kSecondFills;
  bench.run();
  ASSERT_EQ(seen.size(), 8u);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 8u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(seen[i] % 4096, seen[i + 4] % 4096);
}

TEST(Runner, FillsAreWhatTheRequestSays) {
  Bench bench;
  bench.add_output(tensor("y", {8}));
  behaviour.workspace = [](const fusediff_call&, std::size_t& bytes) {
    bytes = 100;
    return FUSEDIFF_OK;
  };
  std::vector<std::byte> workspace;
  std::vector<std::byte> around;
  behaviour.run = [&](const fusediff_call& call) {
    EXPECT_EQ(address(call.workspace) % 64, 0u);
    EXPECT_EQ(call.workspace_size, 100u);
    const auto* bytes = static_cast<const std::byte*>(call.workspace);
    workspace.assign(bytes, bytes + 100);
    around.assign(bytes + 100, bytes + 128);  // up to the guard page
    around.insert(around.end(), bytes - 500, bytes);
    return FUSEDIFF_OK;
  };
  for (const Fills fills : {kFirstFills, kSecondFills, Fills{std::byte{1}, std::byte{2}, std::byte{3}}}) {
    bench.request.fills = fills;
    const Execution& execution = bench.run();
    EXPECT_EQ(execution.fills, fills);
    EXPECT_EQ(execution.workspace_bytes, 100u);
    EXPECT_EQ(execution.outputs[0], repeated(fills.output, 32));
    EXPECT_EQ(workspace, repeated(fills.workspace, 100));
    EXPECT_EQ(around, repeated(fills.guard, 528));
    EXPECT_TRUE(execution.overruns.empty());
  }
}

TEST(Runner, AnOutputCanLieOnItsInput) {
  Bench bench;
  bench.add_input(tensor("x", {10}));
  bench.add_input(tensor("z", {10}));
  Tensor y = tensor("y", {10});
  y.on = 0;
  bench.add_output(y);
  behaviour.run = [](const fusediff_call& call) {
    EXPECT_EQ(call.outputs[0].data, call.inputs[0].data);
    auto* data = static_cast<std::byte*>(call.outputs[0].data);
    for (std::size_t i = 0; i < 40; ++i) data[i] ^= std::byte{0xFF};
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  EXPECT_TRUE(execution.changed_inputs.empty());
  ASSERT_EQ(execution.outputs[0].size(), 40u);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(execution.outputs[0][i], bench.inputs[0][i] ^ std::byte{0xFF});
}

TEST(Runner, StatusesAreReportedWithTheirReason) {
  Bench bench;
  bench.add_output(tensor("y", {2}));
  const std::pair<int, Ending> expected[] = {{1, Ending::kUnsupported},
                                             {2, Ending::kRejected},
                                             {3, Ending::kFailed},
                                             {17, Ending::kBadStatus},
                                             {-1, Ending::kBadStatus}};
  behaviour.last_error = "because";
  for (const auto& [status, ending] : expected) {
    behaviour.run = [code = status](const fusediff_call&) { return static_cast<fusediff_status>(code); };
    const Execution& execution = bench.run();
    EXPECT_EQ(execution.ending, ending);
    EXPECT_EQ(execution.status, status);
    EXPECT_EQ(execution.phase, Phase::kRun);
    EXPECT_THAT(execution.message, testing::HasSubstr("because"));
  }
  behaviour.open = [](const char*, void**) { return FUSEDIFF_REJECTED; };
  EXPECT_EQ(bench.run().phase, Phase::kOpen);
  EXPECT_EQ(bench.execution.ending, Ending::kRejected);
  behaviour.open = nullptr;
  behaviour.workspace = [](const fusediff_call&, std::size_t&) { return FUSEDIFF_FAILED; };
  EXPECT_EQ(bench.run().phase, Phase::kWorkspace);
  EXPECT_EQ(bench.execution.ending, Ending::kFailed);
  EXPECT_EQ(behaviour.opened - 1, behaviour.closed);  // all but the one that was refused
  EXPECT_FALSE(bench.runner.tainted());
}

TEST(Runner, ContextsAreFreshUnlessKept) {
  Bench bench;
  bench.add_output(tensor("y", {2}));
  for (int i = 0; i < 3; ++i) bench.run();
  EXPECT_EQ(behaviour.opened, 3);
  EXPECT_EQ(behaviour.closed, 3);
  bench.request.keep_context = true;
  for (int i = 0; i < 3; ++i) bench.run();
  EXPECT_EQ(behaviour.opened, 4);
  EXPECT_EQ(behaviour.closed, 3);
  bench.request.bank = Bank::kSecond;
  bench.run();
  EXPECT_EQ(behaviour.opened, 5);
}

TEST(Runner, KeptContextsAreClosedAtTheEnd) {
  static int closed = 0;
  {
    Bench bench;
    behaviour.close = [](void*) { ++closed; };
    bench.add_output(tensor("y", {2}));
    bench.request.keep_context = true;
    bench.run();
    bench.run();
    EXPECT_EQ(closed, 0);
    // The behaviour must outlive the runner here, so the runner goes first.
    bench.runner.~Runner();
    EXPECT_EQ(closed, 1);
    new (&bench.runner) Runner(RunLimits{});
  }
}

TEST(Runner, APinnedRunHasOneCpu) {
  Bench bench;
  bench.add_output(tensor("y", {2}));
  int cpus = 0;
  behaviour.run = [&](const fusediff_call&) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    cpus = CPU_COUNT(&set);
    return FUSEDIFF_OK;
  };
  bench.run();
  const int all = cpus;
  bench.request.pinned = true;
  bench.run();
  EXPECT_EQ(cpus, 1);
  bench.request.pinned = false;
  bench.run();
  EXPECT_EQ(cpus, all);
}

TEST(Runner, TheRoundingOfATargetStaysItsOwn) {
  Bench bench;
  bench.add_output(tensor("y", {2}));
  for (const bool leaves : {true, false}) {
    behaviour.run = [&](const fusediff_call&) -> fusediff_status {
      std::fesetround(FE_TOWARDZERO);
      if (!leaves) throw std::runtime_error("left");
      return FUSEDIFF_OK;
    };
    bench.run();
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  }
  behaviour.run = [](const fusediff_call&) {
    std::fesetround(FE_UPWARD);
    raise(SIGILL);
    return FUSEDIFF_OK;
  };
  EXPECT_EQ(bench.run().ending, Ending::kSignal);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(Runner, WrongInputBytesAreAnErrorOfTheCaller) {
  Bench bench;
  bench.add_input(tensor("x", {10}));
  bench.inputs[0].pop_back();
  EXPECT_EQ(bench.run().ending, Ending::kFailed);
  EXPECT_THAT(bench.execution.message, testing::HasSubstr("39 bytes for x, which stores 40"));
}

}  // namespace
}  // namespace fusediff
