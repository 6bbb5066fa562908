#include "cli/case_check.h"

#include <utility>

#include "base/files.h"
#include "campaign/ask.h"
#include "campaign/captured.h"
#include "campaign/death.h"
#include "cli/command.h"
#include "model/case_json.h"

namespace fusediff {

Result<CaseFile> read_case_file(const std::filesystem::path& file) {
  Result<std::string> text = read_file(file, kMaxCaseBytes);
  if (!text.ok()) return text.error();
  std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  Result<Case> c = parse_case(*text, folder);
  if (const std::filesystem::path tensors = tensors_of_cases_in(folder); !c.ok() && tensors != folder) {
    if (Result<Case> again = parse_case(*text, tensors); again.ok()) {
      c = std::move(again);
      folder = tensors;
    }
  }
  if (!c.ok()) return Error{c.error().blame, file.string() + ": " + c.error().what};
  return CaseFile{*std::move(text), folder, *std::move(c)};
}

Result<Verdict> verdict_in_child(Child& child, const CaseFile& file, const OpenAnswer& sides, double seconds) {
  Request request;
  request.case_text = file.text;
  request.folder = file.folder;
  const Result<Outcome> outcome = child.request(write_request(request), answer_seconds(seconds));
  if (!outcome.ok()) return outcome.error();
  if (outcome->kind == Outcome::Kind::kStopped) return our_error("interrupted");
  if (outcome->kind != Outcome::Kind::kReply) {
    return Verdict{Verdict::Kind::kFinding, "", finding_of_death(file.c, sides, *outcome, seconds)};
  }
  Result<CheckAnswer> answer = parse_check_answer(outcome->reply);
  if (!answer.ok()) return answer.error();
  if (answer->tainted) child.end();
  return std::move(answer->verdict);
}

int exit_code_of(const Verdict& verdict) {
  if (verdict.kind == Verdict::Kind::kFinding) return kExitFindings;
  return verdict.kind == Verdict::Kind::kHarnessError ? kExitOurs : kExitClean;
}

}  // namespace fusediff
