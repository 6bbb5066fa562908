// Targets with memory of their own, and the runner's memory over time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/rng.h"
#include "run/fake_target.h"
#include "run/runner.h"

namespace fusediff {
namespace {

using fake::behaviour;
using fake::Bench;
using fake::tensor;
using testing::HasSubstr;

// A device: blocks of its own, with a page that is not aligned to anything in particular.
struct Device {
  std::map<std::byte*, std::vector<std::byte>> blocks;
  int allocated = 0;
  int writes = 0;
  bool fail_alloc = false;
  bool fail_write = false;
  bool fail_read = false;
};
Device device;

void* device_alloc(void*, std::size_t bytes) {
  if (device.fail_alloc) return nullptr;
  ++device.allocated;
  std::vector<std::byte> block(bytes + 64, std::byte{0xEE});
  std::byte* at = block.data() + 16 * (device.allocated % 4);
  device.blocks[at] = std::move(block);
  return at;
}
void device_release(void*, void* memory) { EXPECT_EQ(device.blocks.erase(static_cast<std::byte*>(memory)), 1u); }
fusediff_status device_write(void*, void* memory, const void* host, std::size_t bytes) {
  EXPECT_TRUE(device.blocks.contains(static_cast<std::byte*>(memory)));
  ++device.writes;
  if (device.fail_write) return FUSEDIFF_FAILED;
  std::memcpy(memory, host, bytes);
  return FUSEDIFF_OK;
}
fusediff_status device_read(void*, void* host, const void* memory, std::size_t bytes) {
  if (device.fail_read) return FUSEDIFF_FAILED;
  std::memcpy(host, memory, bytes);
  return FUSEDIFF_OK;
}

fusediff_target_v1 device_table() {
  fusediff_target_v1 table = fake::table();
  table.alloc = device_alloc;
  table.release = device_release;
  table.write = device_write;
  table.read = device_read;
  return table;
}

class OwnMemory : public testing::Test {
 protected:
  OwnMemory() : bench({}, device_table()) {
    device = {};
    bench.add_input(tensor("x", {5, 6}));
    bench.add_output(tensor("y", {5, 6}));
    behaviour.run = fake::copy;
    behaviour.workspace = [](const fusediff_call&, std::size_t& bytes) {
      bytes = 100;
      return FUSEDIFF_OK;
    };
  }
  Bench bench;
};

TEST_F(OwnMemory, TensorsAndWorkspaceLieInIt) {
  bench.call.outputs[0].stride = {7, 1};
  std::vector<std::uintptr_t> seen;
  behaviour.run = [&](const fusediff_call& call) {
    for (const void* data : {call.inputs[0].data, call.outputs[0].data, call.workspace}) {
      const auto* at = static_cast<const std::byte*>(data);
      bool inside = false;
      for (const auto& [begin, block] : device.blocks) inside = inside || (at > begin && at < begin + block.size());
      EXPECT_TRUE(inside);
      seen.push_back(reinterpret_cast<std::uintptr_t>(data));
    }
    EXPECT_EQ(static_cast<const std::byte*>(call.workspace)[99], kFirstFills.workspace);
    EXPECT_EQ(static_cast<const std::byte*>(call.workspace)[100], kFirstFills.guard);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(call.workspace) % 64, 0u);
    return fake::copy(call);
  };
  bench.run();
  bench.request.bank = Bank::kSecond;
  const Execution& execution = bench.run();
  EXPECT_EQ(execution.ending, Ending::kOk) << execution.message;
  EXPECT_EQ(execution.outputs[0], bench.inputs[0]);
  EXPECT_TRUE(execution.overruns.empty());
  EXPECT_TRUE(device.blocks.empty());  // all given back before the context was closed
  ASSERT_EQ(seen.size(), 6u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(seen[i] % 4096, seen[i + 3] % 4096);
}

TEST_F(OwnMemory, IsGuardedOnBothSides) {
  for (const std::ptrdiff_t at : {-4096, -1, 120, 120 + 4095}) {
    behaviour.run = [&](const fusediff_call& call) {
      static_cast<std::byte*>(call.outputs[0].data)[at] = std::byte{0x99};
      return FUSEDIFF_OK;
    };
    const Execution& execution = bench.run();
    ASSERT_EQ(execution.overruns.size(), 1u) << at;
    EXPECT_EQ(execution.overruns[0].tensor, "y");
    EXPECT_EQ(execution.overruns[0].behind, at > 0);
    EXPECT_EQ(execution.overruns[0].distance, at > 0 ? at - 119 : -at);
  }
}

TEST_F(OwnMemory, ChangedInputsAndGapsAreSeen) {
  bench.call.inputs[0].stride = {8, 1};
  behaviour.run = [&](const fusediff_call& call) {
    static_cast<std::byte*>(call.inputs[0].data)[0] ^= std::byte{1};
    static_cast<std::byte*>(call.inputs[0].data)[24] ^= std::byte{1};
    return FUSEDIFF_OK;
  };
  const Execution& execution = bench.run();
  ASSERT_EQ(execution.changed_inputs.size(), 1u);
  EXPECT_EQ(execution.changed_inputs[0].elements, 1);
  ASSERT_EQ(execution.overruns.size(), 1u);
  EXPECT_TRUE(execution.overruns[0].gap);
  EXPECT_EQ(execution.outputs[0], std::vector<std::byte>(120, kFirstFills.output));
}

TEST_F(OwnMemory, FailuresAreNamed) {
  device.fail_alloc = true;
  EXPECT_EQ(bench.run().ending, Ending::kMemory);
  EXPECT_THAT(bench.execution.message, HasSubstr("bytes for x returned NULL"));
  device.fail_alloc = false;
  device.fail_write = true;
  EXPECT_EQ(bench.run().ending, Ending::kFailed);
  EXPECT_THAT(bench.execution.message, HasSubstr("write of x"));
  device.fail_write = false;
  device.fail_read = true;
  EXPECT_EQ(bench.run().ending, Ending::kFailed);
  EXPECT_THAT(bench.execution.message, HasSubstr("read of x"));
  EXPECT_TRUE(bench.execution.outputs[0].empty());
  device.fail_read = false;
  EXPECT_EQ(bench.run().ending, Ending::kOk);
  EXPECT_TRUE(device.blocks.empty());
  EXPECT_EQ(behaviour.opened, behaviour.closed);
}

TEST_F(OwnMemory, BlocksAreReusedWhileTheContextIsKept) {
  bench.request.keep_context = true;
  bench.run();
  const int allocated = device.allocated;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(bench.run().ending, Ending::kOk);
  EXPECT_EQ(device.allocated, allocated);
  EXPECT_EQ(bench.execution.outputs[0], bench.inputs[0]);
}

std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  in >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(RunnerMemory, StaysFlatOverManyRunsOfRandomSizes) {
  Bench bench;
  Rng rng(7);
  bench.add_input(tensor("x", {1}, DType::kU8));
  bench.add_output(tensor("y", {1}, DType::kU8));
  std::size_t requested = 0;
  const auto run_some = [&](int runs) {
    for (int i = 0; i < runs; ++i) {
      const auto size = static_cast<std::int64_t>(rng.below(std::uint64_t{1} << rng.between(1, i % 64 == 0 ? 22 : 13)));
      bench.call.inputs[0] = tensor("x", {size}, DType::kU8);
      bench.call.outputs[0] = tensor("y", {size}, DType::kU8);
      bench.inputs[0].assign(static_cast<std::size_t>(size), std::byte{5});
      bench.request.bank = i % 2 == 0 ? Bank::kFirst : Bank::kSecond;
      requested += static_cast<std::size_t>(size);
      ASSERT_EQ(bench.run().ending, Ending::kOk);
    }
  };
  run_some(10'000);
  const std::size_t before = resident_bytes();
  run_some(90'000);
  const std::size_t after = resident_bytes();
  RecordProperty("resident_before", static_cast<int>(before >> 10));
  RecordProperty("resident_after", static_cast<int>(after >> 10));
  EXPECT_GT(requested, std::size_t{256} << 20);  // so that a leak would show
  EXPECT_LT(after, before + (std::size_t{64} << 20));
}

}  // namespace
}  // namespace fusediff
