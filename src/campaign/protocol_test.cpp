#include "campaign/protocol.h"

#include <gtest/gtest.h>

namespace fusediff {
namespace {

TEST(Protocol, RequestsSurviveTheLine) {
  Request request;
  request.kind = Request::Kind::kMinimize;
  request.case_text = "{\"op\": \"add\",\n \"x\": \"\\u0001\"}";
  request.folder = "/a folder";
  request.seconds = 2.5;
  request.tries = 7;
  request.needed = 2;
  request.apart = {"serve", "--target=a b"};
  request.apart_seconds = 1.5;
  request.into = "/another";
  request.run = false;
  const std::string line = write_request(request);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Result<Request> read = parse_request(line);
  ASSERT_TRUE(read.ok()) << read.error().what;
  EXPECT_EQ(read->kind, request.kind);
  EXPECT_EQ(read->case_text, request.case_text);
  EXPECT_EQ(read->folder, request.folder);
  EXPECT_EQ(read->seconds, request.seconds);
  EXPECT_EQ(read->tries, request.tries);
  EXPECT_EQ(read->needed, request.needed);
  EXPECT_EQ(read->apart, request.apart);
  EXPECT_EQ(read->apart_seconds, request.apart_seconds);
  EXPECT_EQ(read->into, request.into);
  EXPECT_EQ(read->run, request.run);
}

TEST(Protocol, RequestsThatAreNoneAreErrors) {
  for (const char* line :
       {"", "{}", "[1]", R"({"do":"dance","case":"","folder":"","seconds":1,"tries":1,"needed":1})"}) {
    EXPECT_FALSE(parse_request(line).ok()) << line;
  }
}

TEST(Protocol, AnErrorArrivesWithItsBlame) {
  const Result<CheckAnswer> users = parse_check_answer(write_answer(user_error("/dims: no")));
  ASSERT_FALSE(users.ok());
  EXPECT_EQ(users.error().blame, Blame::kUser);
  EXPECT_EQ(users.error().what, "/dims: no");
  EXPECT_EQ(parse_open_answer(write_answer(our_error("x"))).error().blame, Blame::kOurs);
}

TEST(Protocol, AnswersArriveWhole) {
  CheckAnswer check;
  check.verdict = {Verdict::Kind::kSkip, "not here", {}};
  check.runs = 4;
  check.target_nanoseconds = 5;
  check.tainted = true;
  const Result<CheckAnswer> read = parse_check_answer(write_answer(check));
  ASSERT_TRUE(read.ok()) << read.error().what;
  EXPECT_EQ(read->verdict.kind, check.verdict.kind);
  EXPECT_EQ(read->verdict.reason, check.verdict.reason);
  EXPECT_EQ(read->runs, 4u);
  EXPECT_EQ(read->target_nanoseconds, 5u);
  EXPECT_TRUE(read->tainted);

  OpenAnswer open;
  open.targets = {"a", "b"};
  open.paths = {"fused", "unfused"};
  open.ops = {"add"};
  open.left_out = {"sub"};
  open.options = {"isa=avx2", ""};
  open.isolated = {true, false};
  open.variables = {{{"A=1", "B=x=y"}, {}}};
  const Result<OpenAnswer> sides = parse_open_answer(write_answer(open));
  ASSERT_TRUE(sides.ok());
  EXPECT_EQ(sides->targets, open.targets);
  EXPECT_EQ(sides->paths, open.paths);
  EXPECT_EQ(sides->ops, open.ops);
  EXPECT_EQ(sides->left_out, open.left_out);
  EXPECT_EQ(sides->options, open.options);
  EXPECT_EQ(sides->isolated, open.isolated);
  EXPECT_EQ(sides->variables, open.variables);
}

TEST(Protocol, ARecordingArrivesWithoutItsTensors) {
  RecordAnswer answer;
  answer.recording.calls[0].push_back({"add", "fused", {}, {}, {}, {}, true});
  answer.recording.same = {{"y", {0, 0}, {{{1}, {0}}}}};
  answer.recording.inputs = {{"x", DType::kU8, {1}, {std::byte{7}}}};
  answer.notes = {"outputs are not kept"};
  answer.tainted = true;
  const Result<RecordAnswer> read = parse_record_answer(write_answer(answer));
  ASSERT_TRUE(read.ok()) << read.error().what;
  ASSERT_EQ(read->recording.calls[0].size(), 1u);
  EXPECT_TRUE(read->recording.calls[0][0].pinned);
  EXPECT_EQ(read->recording.same[0].elements, answer.recording.same[0].elements);
  EXPECT_TRUE(read->recording.inputs.empty());
  EXPECT_EQ(read->notes, answer.notes);
  EXPECT_TRUE(read->tainted);
  EXPECT_EQ(parse_record_answer(write_answer(user_error("x"))).error().what, "x");
}

TEST(Protocol, ProgressIsNoAnswer) {
  const auto progress = parse_progress(write_progress({"dims", 12}));
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->step, "dims");
  EXPECT_EQ(progress->checks, 12);
  EXPECT_EQ(progress->case_text, "");
  EXPECT_EQ(parse_progress(write_progress({"", 0, "{}"}))->case_text, "{}");
  for (const std::string& line : {write_answer(CheckAnswer{}), write_answer(user_error("x")), std::string("{")}) {
    EXPECT_FALSE(parse_progress(line)) << line;
  }
}

TEST(Protocol, ACaseWithAFileArrivesWhole) {
  MinimizeAnswer answer;
  answer.smallest.op = "add";
  Fill& fill = answer.smallest.inputs["x"].fill;
  fill.kind = FillKind::kBits;
  fill.bits = std::make_shared<const std::vector<std::byte>>(4, std::byte{7});
  fill.bits_file = "in.safetensors#x";
  answer.finding.experiment = "pair";
  const Result<MinimizeAnswer> read = parse_minimize_answer(write_answer(answer));
  ASSERT_TRUE(read.ok()) << read.error().what;
  EXPECT_EQ(*read->smallest.inputs.at("x").fill.bits, *fill.bits);
}

TEST(Protocol, AnotherAnswerIsOurError) {
  const Result<CheckAnswer> read = parse_check_answer(write_answer(OpenAnswer{}));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().blame, Blame::kOurs);
}

}  // namespace
}  // namespace fusediff
