#include "campaign/worker_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"

namespace fusediff {
namespace {

class WorkerStateTest : public testing::Test {
 protected:
  WorkerStateTest() : path_(testing::TempDir() + "fusediff_worker_state_" + std::to_string(::getpid())) {}
  ~WorkerStateTest() override { std::filesystem::remove(path_); }
  WorkerState create() { return *WorkerState::create(path_); }
  WorkerState open() { return *WorkerState::open(path_); }

  const std::string path_;
};

TEST_F(WorkerStateTest, ShowsCountsToAnotherMapping) {
  WorkerState worker = create();
  const WorkerState supervisor = open();
  worker.count("check/add/pass");
  worker.count("check/add/pass");
  worker.count("class/flip");
  worker.count_check(500);
  const Counts counts = supervisor.counts();
  EXPECT_EQ(counts.checks, 1u);
  EXPECT_EQ(counts.target_nanoseconds, 500u);
  EXPECT_EQ(counts.by_key.at("check/add/pass"), 2u);
  EXPECT_EQ(counts.of_kind("class"), (std::map<std::string, std::uint64_t>{{"flip", 1}}));
}

TEST_F(WorkerStateTest, ARestartedWorkerGoesOnCounting) {
  { create().count("skip/why"); }
  open().count("skip/why");
  EXPECT_EQ(open().counts().by_key.at("skip/why"), 2u);
}

TEST_F(WorkerStateTest, MoreKeysThanThereIsRoomForAreCountedTogether) {
  WorkerState state = create();
  constexpr std::uint64_t kMany = 5000;
  for (std::uint64_t i = 0; i < kMany; ++i) state.count("skip/" + std::to_string(i));
  std::uint64_t sum = 0;
  for (const auto& [key, count] : state.counts().of_kind("skip")) sum += count;
  EXPECT_EQ(sum, kMany);
  EXPECT_GT(state.counts().by_key.at("skip/other"), 1u);
}

TEST_F(WorkerStateTest, HoldsTheCaseOnlyWhileItRuns) {
  WorkerState worker = create();
  const WorkerState supervisor = open();
  EXPECT_FALSE(supervisor.case_under_way());
  worker.begin("{\"op\":1}");
  EXPECT_EQ(supervisor.case_under_way(), "{\"op\":1}");
  worker.end();
  EXPECT_FALSE(supervisor.case_under_way());
}

TEST_F(WorkerStateTest, StopsWhenAskedOrWhenTheChecksAreUsedUp) {
  WorkerState supervisor = create();
  WorkerState worker = open();
  EXPECT_FALSE(worker.stop_wanted());
  supervisor.allow(2);
  worker.count_check(0);
  EXPECT_FALSE(worker.stop_wanted());
  worker.count_check(0);
  EXPECT_TRUE(worker.stop_wanted());
  supervisor.allow(0);
  EXPECT_FALSE(worker.stop_wanted());
  supervisor.ask_to_stop();
  EXPECT_TRUE(worker.stop_wanted());
}

TEST_F(WorkerStateTest, SaysWhyAWorkerLeft) {
  WorkerState worker = create();
  WorkerState supervisor = open();
  worker.leave(Leaving::kDiskFull, "no space");
  EXPECT_EQ(supervisor.leaving(), Leaving::kDiskFull);
  EXPECT_EQ(supervisor.message(), "no space");
  supervisor.forget_leaving();
  EXPECT_EQ(worker.leaving(), Leaving::kNotSaid);
}

TEST_F(WorkerStateTest, AnotherFileIsRefused) {
  ASSERT_TRUE(write_file(path_, "short").ok());
  EXPECT_FALSE(WorkerState::open(path_).ok());
  EXPECT_FALSE(WorkerState::open(path_ + "_missing").ok());
}

}  // namespace
}  // namespace fusediff
