#include "campaign/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"

namespace fusediff {
namespace {

constexpr double kPlenty = 60;

ChildOptions fixture() {
  ChildOptions options;
  options.program = FUSEDIFF_BIN_DIR "/child_fixture";
  return options;
}

Outcome ask(Child& child, const std::string& line, double seconds = kPlenty) {
  const Result<Outcome> outcome = child.request(line, seconds);
  EXPECT_TRUE(outcome.ok());
  return outcome.ok() ? *outcome : Outcome{};
}

int pid_of(const Outcome& outcome) { return nlohmann::json::parse(outcome.reply).at("pid"); }

TEST(Child, AnswersManyRequestsFromOneProcess) {
  Child child(fixture());
  const Outcome first = ask(child, "answer");
  ASSERT_EQ(first.kind, Outcome::Kind::kReply);
  EXPECT_EQ(pid_of(ask(child, "answer")), pid_of(first));
}

TEST(Child, EndGivesAFreshProcess) {
  Child child(fixture());
  const int first = pid_of(ask(child, "answer"));
  child.end();
  EXPECT_NE(::kill(first, 0), 0);
  EXPECT_NE(pid_of(ask(child, "answer")), first);
}

TEST(Child, TakesARequestLargerThanTheSocketHolds) {
  Child child(fixture());
  const std::string line = "echo " + std::string(3 << 20, 'x');
  const Outcome outcome = ask(child, line);
  ASSERT_EQ(outcome.kind, Outcome::Kind::kReply);
  EXPECT_EQ(nlohmann::json::parse(outcome.reply).at("bytes"), line.size());
}

struct Death {
  const char* request;
  Ended ended;
};
class ChildDeath : public testing::TestWithParam<Death> {};

TEST_P(ChildDeath, IsToldAndTheNextRequestIsServed) {
  Child child(fixture());
  const Outcome outcome = ask(child, GetParam().request);
  EXPECT_EQ(outcome.kind, Outcome::Kind::kDied);
  EXPECT_EQ(outcome.ended, GetParam().ended);
  EXPECT_EQ(ask(child, "answer").kind, Outcome::Kind::kReply);
}
INSTANTIATE_TEST_SUITE_P(All, ChildDeath,
                         testing::Values(Death{"exit", {0, 3}}, Death{"signal", {SIGUSR1, 0}},
                                         Death{"kill", {SIGKILL, 0}}, Death{"half", {0, 0}}, Death{"orphan", {0, 5}}));

class ChildGarbage : public testing::TestWithParam<const char*> {};

TEST_P(ChildGarbage, EndsTheProcessAndTheNextRequestIsServed) {
  Child child(fixture());
  EXPECT_EQ(ask(child, GetParam()).kind, Outcome::Kind::kGarbled);
  EXPECT_EQ(ask(child, "answer").kind, Outcome::Kind::kReply);
}
INSTANTIATE_TEST_SUITE_P(All, ChildGarbage, testing::Values("garbage", "two", "close"));

TEST(Child, WhatComesAheadOfTheAnswerGoesAside) {
  Child child(fixture());
  int lines = 0;
  const auto first_only = [&](std::string_view line) { return line == "{}" && ++lines == 1; };
  const Result<Outcome> outcome = child.request("two", kPlenty, first_only);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->kind, Outcome::Kind::kReply);
  EXPECT_EQ(outcome->reply, "{}");
  EXPECT_EQ(lines, 2);
}

TEST(Child, KillsOneThatDoesNotAnswer) {
  Child child(fixture());
  const int first = pid_of(ask(child, "answer"));
  EXPECT_EQ(ask(child, "hang", 0.2).kind, Outcome::Kind::kTimedOut);
  EXPECT_NE(::kill(first, 0), 0);
  EXPECT_NE(pid_of(ask(child, "answer")), first);
}

TEST(Child, StopFromAnotherThreadEndsARequest) {
  std::atomic<bool> stop{false};
  ChildOptions options = fixture();
  options.stop = &stop;
  Child child(options);
  ASSERT_EQ(ask(child, "answer").kind, Outcome::Kind::kReply);
  std::thread other([&] { stop.store(true); });
  EXPECT_EQ(ask(child, "hang").kind, Outcome::Kind::kStopped);
  other.join();
}

TEST(Child, WhatItPrintsGoesToTheFile) {
  const std::string file = testing::TempDir() + "fusediff_child_output_" + std::to_string(::getpid());
  std::filesystem::remove(file);
  ChildOptions options = fixture();
  options.output_file = file;
  {
    Child child(options);
    ASSERT_EQ(ask(child, "print").kind, Outcome::Kind::kReply);
    ASSERT_EQ(ask(child, "answer").kind, Outcome::Kind::kReply);  // so the print has happened
  }
  const Result<std::string> text = read_file(file, 100);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "noise\n");
}

TEST(Child, AProgramThatIsNotThereIsAnError) {
  ChildOptions options;
  options.program = "/nonexistent/program";
  Child child(options);
  const Result<Outcome> outcome = child.request("answer", kPlenty);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().what.find("/nonexistent/program"), std::string::npos);
}

}  // namespace
}  // namespace fusediff
