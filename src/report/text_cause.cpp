#include "report/text_cause.h"

#include <algorithm>

#include "report/wrapped.h"

namespace fusediff {
namespace {

std::string counted(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string calls_text(const std::vector<Case>& calls) {
  std::string text;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    text += i == 0 ? "" : i + 1 == calls.size() ? " and " : ", ";
    text += calls[i].op + " (";
    bool first = true;
    for (const auto& [dim, size] : calls[i].dims) {
      text += (first ? "" : " ") + dim + "=" + std::to_string(size);
      first = false;
    }
    text += ")";
  }
  return text;
}

}  // namespace

std::string experiment_text(const Experiment& e) {
  const std::string calls = calls_text(e.calls);
  switch (e.kind) {
    case ExperimentKind::kPair:
      return "";
    case ExperimentKind::kRepeat:
      return "repeat: " + counted(e.count, "run") + " on one context" +
             (calls.empty() ? "" : ", between them " + calls);
    case ExperimentKind::kThreads:
      return "threads: " + std::to_string(e.count) + " with " + counted(e.rounds, "call") + " each" +
             (calls.empty() ? "" : ", beside " + calls);
    case ExperimentKind::kRelation:
      return "relation: " + std::string(name_of(e.relation)) +
             (e.relation == RelationKind::kRowAlone || e.relation == RelationKind::kBatchSplit
                  ? ", row " + std::to_string(e.row)
                  : "");
    case ExperimentKind::kGradient:
      return "gradient: against difference quotients of the forward";
    case ExperimentKind::kHistory:
      return "history: after " + (calls.empty() ? "nothing" : calls);
  }
  return "";
}

std::string shown_line(const Finding& f) {
  if (f.rates[1].runs == 0) return "";
  std::string text = "  shown by " + std::to_string(f.rates[0].differing) + " of " + counted(f.rates[0].runs, "run") +
                     " of the experiment; alone, on fresh contexts, the call gave the same ";
  return text + std::to_string(f.rates[1].runs - f.rates[1].differing) + " of " + std::to_string(f.rates[1].runs) +
         " times\n";
}

std::string cause_lines(const Finding& f) {
  if (f.causes.empty()) return "";
  std::string text = f.conclusion.empty() ? "" : wrapped("cause: " + f.conclusion, 2);
  std::size_t width = 0;
  for (const CauseRun& cause : f.causes) width = std::max(width, cause.what.size());
  for (const CauseRun& cause : f.causes) {
    text += "    " + cause.what + std::string(width - cause.what.size(), ' ') + "  " + std::to_string(cause.differing) +
            " of " + counted(cause.calls, "call") + " differ";
    if (cause.differing == 1) text.pop_back(), text += "rs";
    if (cause.differing > 1)
      text += cause.digests == 1 ? ", always alike" : ", in at least " + std::to_string(cause.digests) + " ways";
    text += "\n";
  }
  return text;
}

}  // namespace fusediff
