#include "engine/history.h"

namespace fusediff {

Turns HistoryCheck::turns() const {
  Turns turns(1);
  for (std::size_t m = 1; m < company().members().size(); ++m) turns[0].push_back(m);
  turns[0].push_back(0);
  return turns;
}

std::string HistoryCheck::circumstance() const {
  const std::size_t calls = company().members().size() - 1;
  return "after " + std::to_string(calls) + (calls == 1 ? " earlier call" : " earlier calls") + " on its context";
}

void HistoryCheck::explain_cause(Finding& finding) {
  CauseRun seen_run = seen();
  seen_run.what = circumstance();
  finding.causes.push_back(seen_run);
  std::string enough;
  for (std::size_t m = 1; m < company().members().size(); ++m) {
    const std::string& op = company().members()[m].c->op;
    const CauseRun one = try_cause("after call " + std::to_string(m) + " (" + op + ") only", {{m, 0}}, false, 0);
    if (one.differing > 0 && enough.empty()) enough = "call " + std::to_string(m) + " (" + op + ")";
    finding.causes.push_back(one);
  }
  const CauseRun itself = try_cause("after the same call", {{0, 0}}, false, 0);
  finding.causes.push_back(itself);
  finding.conclusion =
      enough.empty() ? "no single one of the earlier calls is enough" : enough + " before it is enough";
  finding.conclusion += itself.differing > 0 ? "; so is the same call" : "; after the same call it is clean";
}

}  // namespace fusediff
