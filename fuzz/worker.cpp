#include "worker.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <utility>

#include "campaign/found.h"
#include "campaign/protocol.h"
#include "engine/unasked.h"
#include "feedback.h"
#include "model/call.h"
#include "model/case_json.h"
#include "mutate/experiments.h"
#include "near_ties.h"
#include "report/text.h"

namespace fusediff {
namespace {

constexpr int kTaintedExit = 77;              // libFuzzer's own for a crash
constexpr std::uint64_t kNewCaseOnceIn = 16;  // mutations: however good the corpus, something else is tried
constexpr std::uint64_t kOutsideOnceIn = 2;   // mutations, where calls that the schema forbids are asked for
constexpr int kMostOps = 8;                   // tries to make a case from nothing
constexpr std::uint64_t kLeastBudget = 1 << 14;
// Tensors of a case that is made here take at most this part of the cap: the rest is for workspace and for the truth,
// whose elements are up to eight times as large.
constexpr std::uint64_t kPartOfMemory = 8;

std::uint64_t bytes_of(const std::vector<Tensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    if (!tensor.present) continue;
    std::uint64_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= static_cast<std::uint64_t>(size);
    bytes += elements * size_of(tensor.dtype);
  }
  return bytes;
}

// Bytes of all tensors of a case, and of the calls in its experiment; nothing where it is not legal.
std::optional<std::uint64_t> tensor_bytes(const Case& c, const Schema& schema, const Setup& setup) {
  const Operator* op = schema.find(c.op);
  if (op == nullptr) return std::nullopt;
  const Result<Call> call = bind(c, *op, setup.memory, setup.outside);
  if (!call.ok()) return std::nullopt;
  std::uint64_t bytes = bytes_of(call->inputs) + bytes_of(call->outputs) + bytes_of(call->givens);
  for (const Case& inner : c.experiment.calls) bytes += tensor_bytes(inner, schema, setup).value_or(0);
  return bytes;
}

// What such a check costs, from its runs and not from a clock: the same seed must make the same cases.
double about_seconds(const Experiment& experiment, const CheckResult& result) {
  constexpr double kRun = 5e-6, kByte = 2e-9, kThread = 2e-4;
  const bool alone = experiment.kind == ExperimentKind::kRepeat || experiment.kind == ExperimentKind::kHistory;
  const double threads = experiment.kind == ExperimentKind::kThreads ? static_cast<double>(experiment.count)
                         : alone                                     ? 1.0
                                                                     : 0.0;
  return static_cast<double>(result.runs) * (kRun + kByte * static_cast<double>(result.bytes)) + threads * kThread;
}

// A reason without this case's own numbers and what stands in brackets, so that like ones are counted together.
std::string in_general(std::string_view reason) {
  std::string text;
  bool in_word = false, in_number = false;
  for (const char c : reason.substr(0, reason.find(" ("))) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !in_word && !in_number) text += 'N';
    in_number = digit && !in_word;
    in_word =
        in_word ? std::isalnum(static_cast<unsigned char>(c)) != 0 : std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (!in_number) text += c;
  }
  return text;
}

// How many bytes of tensors a new case may have: small ones are many in the time of a large one, and show nearly
// everything; every power of two up to the cap is as likely as any other.
std::uint64_t draw_budget(Rng& rng, const Setup& setup) {
  const std::uint64_t cap = std::max<std::uint64_t>(1, setup.memory / kPartOfMemory);
  const std::uint64_t steps = cap <= kLeastBudget ? 1 : static_cast<std::uint64_t>(std::bit_width(cap / kLeastBudget));
  return std::min(cap, kLeastBudget << rng.below(steps));
}

// The run that broke the process has ended: a hang may still hold what the next run waits for.
bool is_over(const Verdict& verdict) { return !verdict.finding || verdict.finding->cls != FindingClass::kHang; }

}  // namespace

Result<std::unique_ptr<Worker>> Worker::make(WorkerOptions options, WorkerState state) {
  Result<OpenedSetup> opened = open_setup(options.setup);
  if (!opened.ok()) {
    state.leave(Leaving::kSetup, opened.error().what);
    return opened.error();
  }
  return std::unique_ptr<Worker>(new Worker(std::move(options), std::move(state), *std::move(opened)));
}

Worker::Worker(WorkerOptions options, WorkerState state, OpenedSetup opened)
    : options_(std::move(options)), state_(std::move(state)), opened_(std::move(opened)), cache_(options_.tensors) {
  const std::vector<ExperimentKind>& wanted = options_.setup.experiments;
  for (std::size_t k = 0; k < allowed_.size(); ++k) {
    const auto kind = static_cast<ExperimentKind>(k);
    allowed_[k] = wanted.empty() || std::find(wanted.begin(), wanted.end(), kind) != wanted.end();
  }
  for (const Operator* op : opened_.ops) {
    if (state_.checks() > 0) break;  // said by an earlier process of this worker
    for (const std::string& sentence : unasked(*op)) state_.count("unasked/" + op->name + ": " + sentence);
  }
  if (options_.out.empty()) return;
  killers_ = killers(options_.out);
  listed_ = known_signatures(options_.out, false);
}

Engine& Worker::engine() {
  if (engine_) return *engine_;
  CheckOptions options = check_options(options_.setup);
  options.feedback = true;
  options.is_known = [this](const std::string& signature) {
    return listed_.contains(signature) || stored_.contains(signature);
  };
  // In a merge every finding is explained: what a known one looked like is another case's.
  if (options_.merging) options.is_known = nullptr;
  engine_ = std::make_unique<Engine>(opened_.comparison, std::move(options));
  probe_ = make_probe(
      *engine_, [this](const Case& c) { state_.begin(write_case(c)); },
      [this] {
        // A probe has no verdict. The supervisor gets one: it checks what was under way when a worker ended.
        if (engine_->tainted()) leave(Leaving::kNotSaid, "", kTaintedExit);
        state_.end();
      });
  return *engine_;
}

void Worker::leave(Leaving why, std::string_view message, int exit_code) {
  state_.leave(why, message);
  std::_Exit(exit_code);
}

std::size_t Worker::position_of(std::string_view op) const {
  const auto at =
      std::find_if(opened_.ops.begin(), opened_.ops.end(), [&](const Operator* o) { return o->name == op; });
  return static_cast<std::size_t>(at - opened_.ops.begin());
}

void Worker::check(std::string_view bytes) {
  if (state_.stop_wanted()) leave(Leaving::kDone, "", 0);
  const CaseCache::Entry& entry = cache_.find(bytes);
  if (!entry.c) {
    report_nothing();
    if (bytes.size() > 1) state_.count("not_checked/not a case");
    return;
  }
  const Case& c = *entry.c;
  const std::size_t op = position_of(c.op);
  // libFuzzer ends where no file of a corpus gives it a feature: what is not checked gives it the same one.
  if (op == opened_.ops.size()) {
    report_nothing();
    return state_.count("not_checked/another operator");
  }
  if (!killers_.empty() && killers_.contains(entry.hash.hex()))
    return state_.count("not_checked/ended a worker before");

  if (!allowed_[static_cast<std::size_t>(c.experiment.kind)]) {
    report_nothing();
    return state_.count("not_checked/another experiment");
  }

  state_.begin(bytes);
  try {
    const auto began = std::chrono::steady_clock::now();
    Result<CheckResult> result = engine().check(c);
    if (!result.ok()) {
      state_.end();
      report_nothing();
      return state_.count("not_checked/not legal here");
    }
    state_.count_check(result->target_nanoseconds);
    count(c, result->verdict);
    account(c.experiment, std::chrono::steady_clock::now() - began, *result, report_features(op, c, *result));
    ask_for_truth(c, result->verdict);
    if (result->verdict.finding && !options_.merging) keep(c, *result->verdict.finding, bytes.size());
    // A merge that loses its process loses what the case showed. A signal leaves nothing worse than a leak, as a rule.
    const bool may_go_on = options_.merging && is_over(result->verdict);
    if (engine().tainted() && !may_go_on) leave(Leaving::kTainted, "", kTaintedExit);
  } catch (const std::bad_alloc&) {
    leave(Leaving::kMemory, "", kMemoryExit);
  }
  state_.end();
}

// Once for each operator, on the first case that shows that both sides work.
void Worker::ask_for_truth(const Case& c, const Verdict& verdict) {
  const bool is_first = verdict.kind == Verdict::Kind::kPass && c.experiment.kind == ExperimentKind::kPair &&
                        asked_for_truth_.insert(c.op).second;
  if (is_first && !engine().has_truth(c)) state_.count("unasked/" + c.op + ": " + kNoTruth);
}

void Worker::account(const Experiment& experiment, std::chrono::steady_clock::duration time, const CheckResult& result,
                     std::size_t new_features) {
  schedule_.spent(experiment.kind, about_seconds(experiment, result), new_features);
  const std::string name(name_of(experiment.kind));
  state_.count("experiment/" + name);
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  state_.count("time/" + name, static_cast<std::uint64_t>(std::max<std::int64_t>(nanoseconds, 0)));
}

void Worker::count(const Case& c, const Verdict& verdict) {
  const std::string kind(name_of(verdict.kind));
  state_.count("check/" + c.op + "/" + kind);
  const std::string asked = c.op + "/" + std::string(name_of(c.experiment.kind));
  state_.count("asked/" + asked);
  if (verdict.kind == Verdict::Kind::kPass) state_.count("passed/" + asked);
  if (verdict.finding) {
    const std::string cls(name_of(verdict.finding->cls));
    state_.count("class/" + cls);
    state_.count("signature/" + cls + "/" + slug_of(*verdict.finding));
  } else if (verdict.kind != Verdict::Kind::kPass) {
    state_.count(kind + "/" + c.op + ": " + in_general(verdict.reason));
  }
}

// A finding goes to disk before anything else happens; one that is there already only when this case is smaller.
void Worker::keep(const Case& c, const Finding& finding, std::size_t json_bytes) {
  if (options_.out.empty()) {
    std::cerr << describe({Verdict::Kind::kFinding, "", finding}, c) << std::flush;
    std::abort();
  }
  const std::string signature = signature_of(finding);
  if (listed_.contains(signature)) return;
  const std::pair<std::uint64_t, std::size_t> cost = {tensor_bytes(c, engine().schema(), options_.setup).value_or(0),
                                                      json_bytes};
  Finding whole = finding;
  const auto stored = stored_.find(signature);
  if (stored != stored_.end()) {
    // An eighth smaller at least: so the number of writes is bounded by the logarithm of the first size.
    const auto [tensors, json] = stored->second;
    const bool smaller = cost.first < tensors - tensors / 8 || (cost.first == tensors && cost.second < json - json / 8);
    if (!smaller) return;
    // What is known comes back as another case showed it: the smaller one is to speak for itself.
    const Result<CheckResult> anew = engine().check(c, /*anew=*/true);
    if (!anew.ok() || !anew->verdict.finding || signature_of(*anew->verdict.finding) != signature) return;
    whole = *anew->verdict.finding;
  }
  const Status written = write_found(options_.out, options_.name, {c, whole});
  if (!written.ok()) leave(Leaving::kDiskFull, written.error().what, 2);
  stored_[signature] = cost;
}

// Calls in an experiment are of the operators that are compared.
MutateContext Worker::mutate_context(const Operator& op, Rng& rng, std::uint64_t max_bytes) const {
  MutateContext context{op, rng, max_bytes, probe_, opened_.ops};
  for (std::size_t k = 0; k < allowed_.size(); ++k) {
    if (!allowed_[k]) context.experiment_weights[k] = 0;
  }
  return context;
}

// A kind of experiment that had more than its share of the time gives way to the one that is farthest behind, of those
// that the operator can answer.
void Worker::steer(Case& c, Rng& rng) {
  const Operator* op = engine().find(c.op);
  if (op == nullptr) return;
  ByExperiment<bool> possible = allowed_;
  for (std::size_t k = 0; k < possible.size(); ++k)
    possible[k] = possible[k] && answers(*op, static_cast<ExperimentKind>(k));
  if (!schedule_.is_ahead(c.experiment.kind, possible)) return;
  const ExperimentKind kind = schedule_.next(possible);
  if (c.experiment.kind == kind) return;
  const std::uint64_t budget = options_.setup.memory / kPartOfMemory;
  MutateContext context = mutate_context(*op, rng, budget);
  context.experiment_weights = {};
  context.experiment_weights[static_cast<std::size_t>(kind)] = 1;
  const Case before = c;
  if (!draw_experiment(c, context)) c = before;
}

std::optional<Case> Worker::new_case(Rng& rng) {
  for (int i = 0; i < kMostOps; ++i) {
    MutateContext context = mutate_context(*rng.pick(opened_.ops), rng, draw_budget(rng, options_.setup));
    if (std::optional<Case> c = random_case(context)) return c;
  }
  return std::nullopt;
}

bool Worker::change(Case& c, Rng& rng) {
  const std::optional<std::uint64_t> bytes = tensor_bytes(c, engine().schema(), options_.setup);
  const std::uint64_t budget = std::max(draw_budget(rng, options_.setup), bytes.value_or(0));
  MutateContext context = mutate_context(*engine().find(c.op), rng, budget);
  return fusediff::mutate(c, context);
}

void Worker::leave_where(Case& c, Rng& rng) {
  MutateContext context = mutate_context(*engine().find(c.op), rng, options_.setup.memory);
  (void)break_where(c, context);  // an operator may have no rule to break
}

std::size_t Worker::write(const Case& c, char* data, std::size_t capacity) {
  const std::string text = write_case(c);
  if (text.size() > capacity) return 0;
  std::memcpy(data, text.data(), text.size());
  cache_.put(text, c);
  return text.size();
}

std::size_t Worker::mutate(char* data, std::size_t bytes, std::size_t capacity, unsigned seed) {
  Rng rng(seed);
  engine();
  const CaseCache::Entry& entry = cache_.find({data, bytes});
  std::optional<Case> c = entry.c;
  if (c && position_of(c->op) == opened_.ops.size()) c.reset();
  if (!c || rng.one_in(kNewCaseOnceIn) || !change(*c, rng)) c = new_case(rng);
  if (!c) return bytes;
  steer(*c, rng);
  if (options_.setup.outside && rng.one_in(kOutsideOnceIn)) leave_where(*c, rng);
  const std::size_t written = write(*c, data, capacity);
  return written == 0 ? bytes : written;
}

std::size_t Worker::cross(std::string_view a, std::string_view b, char* out, std::size_t capacity, unsigned seed) {
  Rng rng(seed);
  engine();
  std::optional<Case> first = cache_.find(a).c;
  const std::optional<Case> second = cache_.find(b).c;
  if (!first || position_of(first->op) == opened_.ops.size()) return 0;
  if (!second || position_of(second->op) == opened_.ops.size()) return 0;
  const std::uint64_t budget = options_.setup.memory / kPartOfMemory;
  MutateContext context = mutate_context(*engine().find(first->op), rng, budget);
  if (!crossover(*first, *second, context)) return 0;
  return write(*first, out, capacity);
}

}  // namespace fusediff
