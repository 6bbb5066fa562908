#include "engine/threads.h"

#include <algorithm>

#include "base/rng.h"
#include "mutate/mutate.h"

namespace fusediff {
namespace {

constexpr std::uint64_t kControlBytes = 4096;  // of the tensors of a control call
constexpr std::uint64_t kSteps = 0x9E3779B97F4A7C15u;

std::uint64_t bytes_of(const Call& call) {
  std::uint64_t bytes = 0;
  for (const std::vector<Tensor>* tensors : {&call.inputs, &call.outputs}) {
    for (const Tensor& tensor : *tensors) {
      if (tensor.present) bytes += static_cast<std::uint64_t>(element_count(tensor)) * size_of(tensor.dtype);
    }
  }
  return bytes;
}

bool is_same_shape(const Call& a, const Call& b) { return a.op == b.op && a.dims == b.dims; }

}  // namespace

bool ThreadsCheck::context_each() const { return !company().members().front().call().op->shared_context; }

// As many threads as the memory cap allows, at least two; the case in half of the turns, mates in the others.
Turns ThreadsCheck::mixed(std::size_t case_member) const {
  const Experiment& experiment = subject().c.experiment;
  std::uint64_t largest = 1;
  for (const Companion& member : company().members()) largest = std::max(largest, bytes_of(member.call()));
  const std::uint64_t room = subject().options.max_bytes / largest;
  const auto threads = std::min<std::uint64_t>(static_cast<std::uint64_t>(experiment.count), room);
  if (threads < 2) return {};
  const std::size_t mates = company().mates();
  Turns turns(threads);
  for (std::size_t t = 0; t < threads; ++t) {
    Rng rng((experiment.seed + t) * kSteps);
    for (std::int64_t r = 0; r < experiment.rounds; ++r) {
      const bool is_case = mates == 0 || (static_cast<std::size_t>(r) + t + rng.below(2)) % 2 == 0;
      turns[t].push_back(is_case ? case_member : 1 + rng.below(mates));
    }
  }
  return turns;
}

Turns ThreadsCheck::turns() const { return mixed(0); }

Turns ThreadsCheck::alone_in_threads() const {
  Turns turns = mixed(0);
  for (std::vector<std::size_t>& of_thread : turns) std::fill(of_thread.begin(), of_thread.end(), accused());
  return turns;
}

Turns ThreadsCheck::one_after_another() const {
  const Turns turns = mixed(0);
  Turns serial(1);
  for (std::size_t r = 0; r < turns[0].size(); ++r) {
    for (const std::vector<std::size_t>& of_thread : turns) serial[0].push_back(of_thread[r]);
  }
  return serial;
}

std::string ThreadsCheck::circumstance() const {
  const std::string threads = std::to_string(turns().size()) + " threads";
  return context_each() ? "in " + threads + " with a context each" : "in " + threads + " on one context";
}

// A call of the smallest other operator, or of one among the mates.
std::optional<std::size_t> ThreadsCheck::control() {
  const std::string& accused_op = company().members()[accused()].c->op;
  const std::string& path = subject().comparison.sides[0].path;
  const Operator* smallest = nullptr;
  const auto size = [](const Operator& op) { return op.inputs.size() + op.outputs.size(); };
  for (const Operator& op : company().target().schema.operators) {
    const bool fits = op.name != accused_op && op.has_path(path);
    if (fits && (smallest == nullptr || size(op) < size(*smallest))) smallest = &op;
  }
  if (smallest == nullptr) return std::nullopt;
  Rng rng(subject().c.experiment.seed);
  const Probe none;
  MutateContext context{*smallest, rng, kControlBytes, none};
  std::optional<Case> made = random_case(context);
  if (!made) return std::nullopt;
  made->experiment = {};
  control_ = std::move(*made);
  if (!company().add(control_, spend())) return std::nullopt;
  return company().members().size() - 1;
}

std::string ThreadsCheck::mates_words() const {
  const Companion& accused_one = company().members()[accused()];
  bool other_op = false, other_shape = false;
  for (std::size_t m = 0; m <= company().mates(); ++m) {
    const Companion& member = company().members()[m];
    other_op = other_op || member.c->op != accused_one.c->op;
    other_shape = other_shape || !is_same_shape(member.call(), accused_one.call());
  }
  if (other_shape && !other_op) return "at least two different shapes";
  if (other_op) return "another call, of a different operator or shape,";
  return "another call of the same shape";
}

void ThreadsCheck::explain_cause(Finding& finding) {
  const std::string n = std::to_string(turns().size());
  const std::size_t member = accused();
  const bool has_mates = company().mates() > 0;
  CauseRun seen_run = seen();
  seen_run.what = std::string(has_mates ? "the mix" : "the case") + " " + circumstance();
  finding.causes.push_back(seen_run);
  const CauseRun equal =
      try_cause("equal calls in " + n + " threads on one context", alone_in_threads(), false, member);
  const CauseRun own = try_cause("the mix with a context for each thread", turns(), true, member);
  const CauseRun serial = try_cause("the mix one after another on one context", one_after_another(), false, member);
  for (const CauseRun* cause : {&equal, &own, &serial}) finding.causes.push_back(*cause);
  std::string control_words;
  if (const std::optional<std::size_t> control_member = control()) {
    Turns load = turns();
    for (std::vector<std::size_t>& of_thread : load)
      std::replace(of_thread.begin(), of_thread.end(), member, *control_member);
    const std::string& op = company().members()[*control_member].c->op;
    const CauseRun cause = try_cause(op + " in its place", load, context_each(), *control_member);
    finding.causes.push_back(cause);
    control_words =
        "; " + op + (cause.differing > 0 ? " shows it as well under the same load" : " is clean under the same load");
  }
  std::string& words = finding.conclusion;
  std::vector<std::string> clean;
  if (serial.differing > 0) {
    words = "calls one after another are enough: it is what an earlier call leaves behind";
  } else if (equal.differing > 0) {
    words = "equal calls in flight at once are enough";
  } else {
    words = "needs " + mates_words() + " in flight" + (own.differing > 0 ? "" : " on one context");
    clean.push_back("equal calls alone");
  }
  if (serial.differing > 0) {
    // A thread's own calls come after one another too: its own context says nothing more.
  } else if (own.differing > 0) {
    words += "; contexts of their own do not help: what the calls share lies outside the context";
  } else {
    clean.push_back("with own contexts");
  }
  if (serial.differing == 0) clean.push_back("one after another");
  for (std::size_t i = 0; i < clean.size(); ++i)
    words += (i == 0 ? "; " : i + 1 == clean.size() ? " and " : ", ") + clean[i];
  if (!clean.empty()) words += " it is clean";
  words += control_words;
  if (seen_run.differing > 1)
    words += seen_run.digests == 1 ? "; the wrong result is the same each time" : "; the wrong results vary";
}

}  // namespace fusediff
