#include "engine/company.h"

#include <utility>
#include <variant>

namespace fusediff {
namespace {

// REQUIRES: it has its own; again after it was moved.
void point_to_own(Companion& member) {
  member.prepared = &*member.own;
  member.inputs = member.own->views();
}

}  // namespace

std::optional<Verdict> Company::gather() {
  const PathOf& side = subject_.comparison.sides[0];
  const Operator& op = *subject_.prepared.call.op;
  const auto skip = [](std::string why) { return Verdict{Verdict::Kind::kSkip, std::move(why), {}}; };
  if (!op.has_path(side.path)) return skip(side.target->name + " offers no path " + side.path + " of " + op.name);
  Companion& first = members_.emplace_back();
  first.c = &subject_.c;
  first.prepared = &subject_.prepared;
  first.path = side.path;
  first.inputs = subject_.prepared.views();
  std::size_t not_offered = 0;
  for (const Case& call : subject_.c.experiment.calls) {
    std::optional<Companion> made = prepared(call);
    if (!made) {
      ++not_offered;
      continue;
    }
    point_to_own(members_.emplace_back(*std::move(made)));
  }
  if (not_offered > 0 && members_.size() == 1)
    return skip(side.target->name + " does not offer any of the calls of the experiment");
  return std::nullopt;
}

std::optional<Companion> Company::prepared(const Case& c) {
  const PathOf& side = subject_.comparison.sides[0];
  const Operator* op = side.target->schema.find(c.op);
  if (op == nullptr || op->paths.empty()) return std::nullopt;
  std::variant<Prepared, Unprepared> made =
      prepare(c, *op, subject_.comparison, subject_.options, subject_.runner, subject_.draws);
  if (std::holds_alternative<Unprepared>(made)) return std::nullopt;
  if (!std::get<Prepared>(made).call.broken.empty()) return std::nullopt;
  Companion member;
  member.c = &c;
  member.own = std::get<Prepared>(std::move(made));
  member.path = op->has_path(side.path) ? side.path : op->paths.front();
  return member;
}

RunRequest Company::request(const Companion& member) const {
  RunRequest request;
  request.target = &target();
  request.path = member.path;
  request.call = &member.call();
  request.inputs = member.inputs;
  return request;
}

void Company::run_alone(Companion& member, Budget& budget) {
  subject_.runner.run(request(member), member.alone);
  budget.count(member.alone);
}

void Company::run_alone(Budget& budget) {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    run_alone(members_[m], budget);
    if (!subject_.runner.tainted()) continue;
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(m + 1), members_.end());  // nothing is known of them
  }
  for (std::size_t m = members_.size(); m-- > 1;) {
    if (members_[m].alone.ending != Ending::kOk) members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(m));
  }
  mates_ = members_.size() - 1;
  for (Companion& member : members_) {  // erasing has moved them
    if (member.own) point_to_own(member);
  }
}

bool Company::add(const Case& c, Budget& budget) {
  std::optional<Companion> made = prepared(c);
  if (!made) return false;
  Companion& member = members_.emplace_back(*std::move(made));
  point_to_own(member);
  run_alone(member, budget);
  if (member.alone.ending == Ending::kOk) return true;
  members_.pop_back();
  return false;
}

std::vector<RunRequest> Company::requests() const {
  std::vector<RunRequest> requests;
  for (const Companion& member : members_) requests.push_back(request(member));
  return requests;
}

std::vector<std::uint64_t> Company::nanoseconds() const {
  std::vector<std::uint64_t> times;
  for (const Companion& member : members_) times.push_back(member.alone.nanoseconds);
  return times;
}

}  // namespace fusediff
