#include "campaign/death.h"

#include <csignal>
#include <set>
#include <tuple>

#include "campaign/ask.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

// "f32", or "x=f32,y=bf16" where the case chose several that differ.
std::string chosen_dtype(const Case& c) {
  std::set<std::string_view> names;
  std::string all;
  for (const auto& [tensor, dtype] : c.dtypes) {
    names.insert(name_of(dtype));
    all += (all.empty() ? "" : ",") + tensor + "=" + std::string(name_of(dtype));
  }
  return names.size() == 1 ? std::string(*names.begin()) : all;
}

std::pair<FindingClass, std::string> meaning(const Outcome& outcome, double seconds) {
  if (outcome.kind == Outcome::Kind::kTimedOut) {
    return {FindingClass::kHang, "the process did not answer within " +
                                     std::to_string(static_cast<long>(answer_seconds(seconds))) + " s and was killed"};
  }
  if (outcome.kind == Outcome::Kind::kGarbled) {
    return {FindingClass::kCrash, "the process broke its own channel of answers: " + outcome.reply};
  }
  const Ended& ended = outcome.ended;
  if (ended.signal == SIGKILL) return {FindingClass::kMemory, "the system killed the process: it ran out of memory"};
  if (ended.signal == 0 && ended.exit_code == kMemoryExit) {
    return {FindingClass::kMemory, "the process passed its memory cap"};
  }
  return {FindingClass::kCrash, "the case ended the process: " + describe(ended)};
}

}  // namespace

Finding finding_of_death(const Case& c, const OpenAnswer& sides, const Outcome& outcome, double seconds) {
  Finding finding;
  finding.experiment = name_of(c.experiment.kind);
  finding.oracle = "status";
  finding.op = c.op;
  finding.targets = sides.targets;
  finding.paths = sides.paths;
  finding.dtype = chosen_dtype(c);
  std::string what;
  std::tie(finding.cls, what) = meaning(outcome, seconds);
  finding.evidence = {{finding.cls, finding.oracle, "", {}, {}, what}};
  return finding;
}

Result<Seen> check_in_child(Child& child, const Case& c, const OpenAnswer& sides, double seconds,
                            const std::filesystem::path& folder) {
  Request request;
  request.case_text = write_case(c);
  request.folder = folder;
  const Result<Outcome> outcome = child.request(write_request(request), answer_seconds(seconds));
  if (!outcome.ok()) return outcome.error();
  if (outcome->kind == Outcome::Kind::kStopped) return Seen{std::nullopt, false, true};
  if (outcome->kind != Outcome::Kind::kReply) {
    return Seen{finding_of_death(c, sides, *outcome, seconds), true, false};
  }
  Result<CheckAnswer> answer = parse_check_answer(outcome->reply);
  if (!answer.ok()) return answer.error();
  if (answer->tainted) child.end();
  return Seen{std::move(answer->verdict.finding), false, false};
}

}  // namespace fusediff
