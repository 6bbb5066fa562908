#include "campaign/ask.h"

#include <string>

namespace fusediff {
namespace {

Result<std::string> ask(Child& child, Request::Kind kind, double seconds) {
  Request request;
  request.kind = kind;
  Result<Outcome> outcome = child.request(write_request(request), answer_seconds(seconds));
  if (!outcome.ok()) return outcome.error();
  switch (outcome->kind) {
    case Outcome::Kind::kReply:
      return std::move(outcome->reply);
    case Outcome::Kind::kDied:
      return user_error("a target cannot be opened: it ends the process (" + describe(outcome->ended) + ")");
    case Outcome::Kind::kTimedOut:
      return user_error("a target cannot be opened: it does not come back");
    case Outcome::Kind::kGarbled:
      return user_error("a target cannot be opened: it writes to a descriptor that is not its own");
    case Outcome::Kind::kStopped:
      break;
  }
  return our_error("stopped while a target was opened");
}

}  // namespace

double answer_seconds(double seconds) { return 6 * seconds + 10; }

Result<OpenAnswer> open_in_child(Child& child, double seconds) {
  const Result<std::string> reply = ask(child, Request::Kind::kOpen, seconds);
  if (!reply.ok()) return reply.error();
  return parse_open_answer(*reply);
}

Result<ListAnswer> list_in_child(Child& child, double seconds) {
  const Result<std::string> reply = ask(child, Request::Kind::kList, seconds);
  if (!reply.ok()) return reply.error();
  return parse_list_answer(*reply);
}

}  // namespace fusediff
