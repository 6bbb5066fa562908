#include "oracle/status.h"

#include <cctype>
#include <csignal>
#include <cstring>
#include <string>

namespace fusediff {
namespace {

std::string phase_name(Phase phase) {
  switch (phase) {
    case Phase::kOpen:
      return "open()";
    case Phase::kWorkspace:
      return "workspace_bytes()";
    case Phase::kRun:
      return "run()";
    case Phase::kClose:
      return "close()";
  }
  return "";
}

std::string with_message(std::string what, const std::string& message) {
  if (!message.empty()) what += ": " + message;
  return what;
}

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : "SIG" + std::string(name);
}

Evidence guard_page(const Execution& execution) {
  const GuardHit& hit = *execution.guard_hit;
  if (hit.tensor.empty()) {
    return {FindingClass::kCrash,
            "status",
            "",
            {},
            {},
            signal_text(execution.signal) + " in a guard page that belongs to no tensor"};
  }
  const bool read = hit.access == Access::kRead;
  std::string what = read ? "read " : hit.access == Access::kWrite ? "wrote " : "touched ";
  what += std::to_string(hit.distance) + (hit.distance == 1 ? " byte " : " bytes ") +
          (hit.behind ? "behind " : "before ") + hit.tensor;
  return {read ? FindingClass::kOverread : FindingClass::kOverrun, "guard", hit.tensor, {}, {}, what + " (guard page)"};
}

// The words of a message without its numbers: two limits that a target refuses by different words are two findings.
std::string words_of(const std::string& message) {
  constexpr std::size_t kMaxWords = 8;
  std::string words, word;
  std::size_t count = 0;
  for (const char c : message + " ") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else if (!word.empty() && count < kMaxWords) {
      words += (words.empty() ? "" : "_") + word;
      ++count;
      word.clear();
    }
  }
  return words;
}

Evidence limit(std::string what, const std::string& message) {
  Evidence evidence{FindingClass::kUndeclaredLimit, "status", "", {}, {}, with_message(std::move(what), message)};
  evidence.relation = words_of(message);
  return evidence;
}

Evidence ended(FindingClass cls, std::string what) { return {cls, "status", "", {}, {}, std::move(what)}; }

std::optional<Evidence> judge(const Execution& e, bool outside) {
  const std::string where = phase_name(e.phase);
  switch (e.ending) {
    case Ending::kUnsupported:
      return std::nullopt;
    case Ending::kOk:
      if (!outside) return std::nullopt;
      return ended(FindingClass::kAcceptedIllegal, "accepts a call that the schema's where forbids");
    case Ending::kRejected:
      if (outside) return std::nullopt;
      return limit("rejects a call that the schema allows", e.message);
    case Ending::kFailed:
      if (outside) {
        return ended(
            FindingClass::kAcceptedIllegal,
            with_message("returns FAILED, not REJECTED, for a call that the schema's where forbids", e.message));
      }
      return limit("fails on a call that the schema allows", e.message);
    case Ending::kBadStatus:
      return ended(FindingClass::kCrash,
                   where + " returned " + std::to_string(e.status) + ", which is no fusediff_status");
    case Ending::kGuardHit:
      return guard_page(e);
    case Ending::kSignal:
      return ended(FindingClass::kCrash, with_message(signal_text(e.signal) + " in " + where,
                                                      e.message == signal_text(e.signal) ? "" : e.message));
    case Ending::kExit:
      return ended(FindingClass::kCrash, with_message("the process ended in " + where, e.message));
    case Ending::kException:
      return ended(FindingClass::kCrash, with_message("a C++ exception left " + where, e.message));
    case Ending::kHang:
      return ended(FindingClass::kHang, with_message(where + " did not return within the time cap", e.message));
    case Ending::kMemory:
      return ended(FindingClass::kMemory, with_message(where + " passed the memory cap", e.message));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Evidence> judge_ending(const Execution& execution, Side side, bool outside) {
  std::optional<Evidence> evidence = judge(execution, outside);
  if (evidence) evidence->accused = side;
  return evidence;
}

}  // namespace fusediff
