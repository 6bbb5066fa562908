#include "engine/not_offered.h"

#include "engine/finding_of.h"

namespace fusediff {
namespace {

Verdict skip(std::string reason) { return {Verdict::Kind::kSkip, std::move(reason), {}}; }

std::string with_message(std::string text, const Execution& execution) {
  return execution.message.empty() ? text : std::move(text) + ": " + execution.message;
}

}  // namespace

std::optional<Verdict> not_in_record(const PathOf& path, const std::string& op) {
  const Operator* record = path.target->schema.find(op);
  if (record == nullptr) return skip(path.target->name + " does not offer " + op);
  if (!record->has_path(path.path)) return skip(path.target->name + " offers no path " + path.path + " of " + op);
  return std::nullopt;
}

std::optional<Verdict> will_not_open(const PathOf& path, const Execution& execution) {
  const bool by_status = execution.ending == Ending::kUnsupported || execution.ending == Ending::kRejected ||
                         execution.ending == Ending::kFailed;
  if (execution.phase != Phase::kOpen || !by_status) return std::nullopt;
  return Verdict{Verdict::Kind::kHarnessError, with_message(name_of_side(path) + " will not open", execution), {}};
}

std::optional<Verdict> unsupported(const PathOf& path, const Execution& execution) {
  if (execution.ending != Ending::kUnsupported) return std::nullopt;
  return skip(with_message(name_of_side(path) + ": unsupported", execution));
}

}  // namespace fusediff
