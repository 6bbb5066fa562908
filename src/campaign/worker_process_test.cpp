#include "campaign/worker_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "campaign/found.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

// Time is what the test says: start() and poll() are told.
class WorkerProcessTest : public testing::Test {
 protected:
  WorkerProcessTest() : out_(fs::path(testing::TempDir()) / ("fusediff_worker_process_" + std::to_string(::getpid()))) {
    fs::remove_all(out_);
    fs::create_directories(workers_folder(out_));
    plan_.out = out_;
    plan_.case_seconds = 100;
  }
  ~WorkerProcessTest() override { fs::remove_all(out_); }

  void program(const std::string& script) {
    plan_.program = (out_ / "program").string();
    std::ofstream(plan_.program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(plan_.program.c_str(), 0755);
  }
  WorkerProcess make(std::uint64_t allowed = 0) { return *WorkerProcess::make(plan_, 0, allowed); }
  WorkerState state() { return *WorkerState::open(workers_folder(out_) / "0.state"); }
  WorkerProcess::Death wait(WorkerProcess& worker, double now) {
    for (;;) {
      if (auto death = worker.poll(plan_, now)) return *death;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  const fs::path out_;
  WorkerPlan plan_;
};

TEST_F(WorkerProcessTest, OneThatIsStuckInACaseIsKilledAndTheCaseIsTold) {
  program("exec sleep 1000");
  WorkerProcess worker = make();
  ASSERT_TRUE(worker.start(plan_, 1000).ok());
  state().begin("{}");
  EXPECT_FALSE(worker.poll(plan_, 1001));
  EXPECT_FALSE(worker.poll(plan_, 1100));
  const auto death = worker.poll(plan_, 1200);
  ASSERT_TRUE(death);
  EXPECT_EQ(death->ended, (Ended{SIGKILL, 0}));
  EXPECT_EQ(death->culprit, "{}");
}

TEST_F(WorkerProcessTest, OneThatGoesFromCaseToCaseOrRunsNoneIsNotStuck) {
  program("exec sleep 1000");
  WorkerProcess worker = make();
  ASSERT_TRUE(worker.start(plan_, 1000).ok());
  WorkerState shared = state();
  for (double now = 1000; now < 2000; now += 100) {
    shared.begin("{}");
    EXPECT_FALSE(worker.poll(plan_, now));
  }
  shared.end();
  EXPECT_FALSE(worker.poll(plan_, 5000));
}

TEST_F(WorkerProcessTest, ADeathInACaseIsACheckOfItsOperator) {
  program("exit 3");
  WorkerProcess worker = make();
  ASSERT_TRUE(worker.start(plan_, 0).ok());
  Case c;
  c.op = "add";
  state().begin(write_case(c));
  const auto death = wait(worker, 0);
  EXPECT_EQ(death.ended, (Ended{0, 3}));
  EXPECT_EQ(worker.counts().checks, 1u);
  EXPECT_EQ(worker.counts().by_key.at("check/add/died"), 1u);
}

TEST_F(WorkerProcessTest, PausesGrowAfterDeathsWithoutACheck) {
  program("exit 3");
  WorkerProcess worker = make();
  double now = 0;
  ASSERT_TRUE(worker.start(plan_, now).ok());
  double last_pause = 0;
  for (int i = 1; i <= 4; ++i) {
    wait(worker, now);
    EXPECT_EQ(worker.quick_deaths(), i);
    const double died = now;
    while (!worker.runs()) {
      ASSERT_LT(now, died + 100);
      now += 0.05;
      ASSERT_TRUE(worker.start(plan_, now).ok());
    }
    EXPECT_GT(now - died, last_pause);
    last_pause = now - died;
  }
}

TEST_F(WorkerProcessTest, OneWhoseChecksAreUsedUpIsNotStartedAgain) {
  program("exit 0");
  WorkerProcess worker = make(2);
  ASSERT_TRUE(worker.start(plan_, 0).ok());
  state().count_check(0);
  state().count_check(0);
  wait(worker, 0);
  EXPECT_TRUE(worker.used_up());
  ASSERT_TRUE(worker.start(plan_, 100).ok());
  EXPECT_FALSE(worker.runs());
}

TEST_F(WorkerProcessTest, TheSeedDependsOnTheWorkerAndTheStart) {
  program("echo \"$@\" >> \"$(dirname \"$0\")/seen\"");
  for (int i = 0; i < 2; ++i) {
    WorkerProcess worker = *WorkerProcess::make(plan_, i, 0);
    for (double now = 0; now < 200; now += 100) {
      ASSERT_TRUE(worker.start(plan_, now).ok());
      if (!worker.runs()) {
        ASSERT_TRUE(worker.start(plan_, now + 50).ok());
      }
      wait(worker, now);
    }
  }
  std::ifstream seen(out_ / "seen");
  std::set<std::string> seeds;
  for (std::string word; seen >> word;) {
    if (word.starts_with("-seed=")) seeds.insert(word);
  }
  EXPECT_EQ(seeds.size(), 4u);
}

}  // namespace
}  // namespace fusediff
