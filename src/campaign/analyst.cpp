#include "campaign/analyst.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "campaign/ask.h"
#include "campaign/captured.h"
#include "campaign/carried.h"
#include "campaign/death.h"
#include "campaign/environment.h"
#include "campaign/flaky.h"
#include "campaign/found.h"
#include "campaign/recorder.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr int kKillerTries = 3;
constexpr int kInterruptedExit = 72;  // libFuzzer's, after SIGINT and SIGTERM
constexpr std::size_t kMaxWaitingKillers = 64;
constexpr double kReplaySeconds = 10;  // for all replays of one finding after the first

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr double kFewestHangs = 3;  // runs that must fit into the time, else a hang is not minimised

// The command line of a child with another cap on one run.
std::vector<std::string> with_seconds(std::vector<std::string> arguments, double seconds) {
  for (std::string& argument : arguments) {
    if (argument.starts_with("--timeout=")) argument = "--timeout=" + std::to_string(seconds);
  }
  return arguments;
}

// Ends that say nothing of a case that runs well alone: somebody's signal (libFuzzer exits on the polite ones), or
// memory that grew over many cases.
bool is_from_outside(const Ended& ended) {
  if (ended.signal != 0) return ended.signal == SIGKILL || ended.signal == SIGTERM;
  return ended.exit_code == kMemoryExit || ended.exit_code == kInterruptedExit;
}

std::string list_line(const Bundle& bundle) {
  const Finding& f = bundle.finding;
  const nlohmann::ordered_json json = {{"signature", signature_of(f)},
                                       {"slug", slug_of(f)},
                                       {"op", f.op},
                                       {"class", name_of(f.cls)},
                                       {"output", f.output},
                                       {"dtype", f.dtype},
                                       {"stage", f.stage ? nlohmann::ordered_json(*f.stage) : nullptr},
                                       {"experiment", f.experiment},
                                       {"targets", f.targets},
                                       {"paths", f.paths},
                                       {"replay", {{"runs", bundle.replay->runs}, {"same", bundle.replay->same}}}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// A finding that was seen once and does not come back in a fresh process is the path's disagreement with itself.
void turn_into_nondeterminism(Bundle& bundle) {
  Finding& f = bundle.finding;
  if (f.cls == FindingClass::kNondeterminism) return;
  const std::string what = "seen once as " + std::string(name_of(f.cls)) + " in a process with a past; 0 of " +
                           std::to_string(bundle.replay->runs) + " replays in a fresh process show it";
  f.cls = FindingClass::kNondeterminism;
  f.evidence.insert(f.evidence.begin(), Evidence{f.cls, f.oracle, f.output, f.stage, {}, what});
}

// The calls as they were made with the tensors as they were read back.
Recording with_tensors_of(const Recording& calls, const Bundle& stored) {
  Recording both;
  both.calls = calls.calls;
  both.inputs = stored.recording->inputs;
  return both;
}

}  // namespace

Analyst::Analyst(AnalystOptions options)
    : options_(std::move(options)),
      environment_(environment_json(options_.sides)),
      known_(known_signatures(options_.out, false)) {
  options_.child.stop = &stop_;
  thread_ = std::thread([this] { loop(); });
}

Analyst::~Analyst() { stop(); }

void Analyst::stop() {
  stop_.store(true);
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Analyst::add_found(const fs::path& file) {
  const std::lock_guard lock(mutex_);
  if (!queued_files_.insert(file).second) return;
  jobs_.push_back({file, "", {}});
  wake_.notify_all();
}

void Analyst::add_killer(std::string case_text, const Ended& ended) {
  const std::lock_guard lock(mutex_);
  if (waiting_killers_ >= kMaxWaitingKillers) {
    ++unexplained_;
    return;
  }
  ++waiting_killers_;
  jobs_.push_back({"", std::move(case_text), ended});
  wake_.notify_all();
}

void Analyst::add_suspect(std::string case_text) {
  const std::lock_guard lock(mutex_);
  ++waiting_killers_;
  jobs_.push_back({"", std::move(case_text), std::nullopt});
  wake_.notify_all();
}

std::vector<News> Analyst::take_news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}
std::size_t Analyst::pending() const {
  const std::lock_guard lock(mutex_);
  return failure_ ? 0 : jobs_.size() + (busy_ ? 1 : 0);
}
std::size_t Analyst::unexplained() const {
  const std::lock_guard lock(mutex_);
  return unexplained_;
}
std::optional<Error> Analyst::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}
void Analyst::hurry(double seconds) {
  const std::lock_guard lock(mutex_);
  deadline_ = now() + seconds;
}

// Seconds that the finding at hand may take.
double Analyst::time_for_one() const {
  const std::lock_guard lock(mutex_);
  if (!deadline_) return options_.minimize_seconds;
  const double left = std::max(0.0, *deadline_ - now());
  return std::min(options_.minimize_seconds, left / static_cast<double>(jobs_.size() + 1));
}

void Analyst::loop() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(200), [&] { return stop_.load() || !jobs_.empty(); });
      if (stop_.load()) return;
      if (jobs_.empty()) continue;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      busy_ = true;
    }
    const Status done = work_on(job);
    const std::lock_guard lock(mutex_);
    busy_ = false;
    queued_files_.erase(job.found);
    if (job.found.empty()) --waiting_killers_;
    if (!done.ok() && !stop_.load()) {
      failure_ = done.error();
      return;
    }
  }
}

Status Analyst::work_on(const Job& job) { return job.found.empty() ? work_on_killer(job) : work_on_found(job.found); }

Status Analyst::work_on_found(const fs::path& file) {
  const Result<Found> found = read_found(file);
  if (found.ok() && !known_.contains(signature_of(found->finding))) {
    if (Status done = bundle_up(found->c, found->finding, false); !done.ok()) return done;
  }
  std::error_code code;
  if (!stop_.load()) fs::remove(file, code);
  return {};
}

Status Analyst::work_on_killer(const Job& job) {
  const Result<Case> c = parse_case(job.case_text, tensors_folder(options_.out));
  if (!c.ok()) return {};
  Child child(options_.child);
  for (int i = 0; i < (job.ended ? kKillerTries : 1); ++i) {
    child.end();
    const Result<Seen> seen = check_in_child(child, *c, options_.sides, options_.seconds, tensors_folder(options_.out));
    if (!seen.ok() || seen->stopped) return {};
    if (!seen->finding) continue;
    if (known_.contains(signature_of(*seen->finding))) return {};
    return bundle_up(*c, *seen->finding, seen->process_ended);
  }
  if (!job.ended) return {};
  if (is_from_outside(*job.ended)) {
    const std::lock_guard lock(mutex_);
    ++unexplained_;
    return {};
  }
  const Outcome death{Outcome::Kind::kDied, "", *job.ended};
  return bundle_up(*c, finding_of_death(*c, options_.sides, death, options_.seconds), true);
}

// Replaces smallest and finding by what the minimiser made of them. A child that dies of it leaves them as they are.
void Analyst::minimize_into(Bundle& bundle, const std::string& signature, bool kills) {
  Request request;
  request.kind = Request::Kind::kMinimize;
  request.case_text = write_case(bundle.original);
  request.folder = tensors_folder(options_.out);
  request.seconds = time_for_one();
  request.tries = tries_for(bundle.finding);
  // A hang is looked for with a shorter cap: what that finds small is asked again with the whole one.
  const bool hangs = bundle.finding.cls == FindingClass::kHang;
  request.apart_seconds = hangs ? std::min(options_.seconds, std::max(0.2, options_.seconds / 10)) : options_.seconds;
  if (kills || hangs) request.apart = with_seconds(options_.child.arguments, request.apart_seconds);
  const double each = kills ? answer_seconds(request.apart_seconds) : 2 * request.apart_seconds;
  if (hangs && request.seconds < kFewestHangs * each) {
    bundle.finding.notes.push_back("not minimised: there is no time for enough runs that do not come back");
    return;
  }
  if (request.seconds <= 0) {
    bundle.finding.notes.push_back("not minimised: the time of the campaign was up");
    return;
  }
  const Result<PassingFolder> folder = PassingFolder::make(findings_folder(options_.out), "minimize");
  if (!folder.ok()) {
    bundle.finding.notes.push_back("not minimised: " + folder.error().what);
    return;
  }
  request.into = folder->path();
  Child child(options_.child);
  const Result<Outcome> outcome =
      child.request(write_request(request), request.seconds + 3 * answer_seconds(options_.seconds));
  if (!outcome.ok() || outcome->kind == Outcome::Kind::kStopped) return;
  if (outcome->kind != Outcome::Kind::kReply) {
    bundle.finding.notes.push_back("not minimised: the process that tried ended");
    return;
  }
  Result<MinimizeAnswer> answer = parse_minimize_answer(outcome->reply, request.into);
  if (!answer.ok()) {
    bundle.finding.notes.push_back("not minimised: " + answer.error().what);
    return;
  }
  if (hangs && !comes_back_whole(*answer, request.into)) {
    bundle.finding.notes.push_back("not minimised: what was smaller only takes long");
    return;
  }
  const std::string other = signature_of(answer->finding);
  bundle.smallest = std::move(answer->smallest);
  bundle.finding = std::move(answer->finding);
  for (std::string& note : answer->notes) bundle.finding.notes.push_back(std::move(note));
  if (!answer->finished) bundle.finding.notes.push_back("not minimised to the end: the time cap came first");
  if (other != signature) bundle.finding.notes.push_back("first seen as: " + signature);
}

// With the whole cap: then its finding is the one that is told.
bool Analyst::comes_back_whole(MinimizeAnswer& answer, const fs::path& folder) {
  Child child(options_.child);
  Result<Seen> seen = check_in_child(child, answer.smallest, options_.sides, options_.seconds, folder);
  if (!seen.ok() || !seen->finding || signature_of(*seen->finding) != signature_of(answer.finding)) return false;
  answer.finding = *std::move(seen->finding);
  return true;
}

void Analyst::record(Bundle& bundle, bool kills) const {
  record_into(bundle, {options_.child, findings_folder(options_.out), options_.seconds}, kills);
}

// Where there is no room for its tensors a bundle is written without them.
Result<fs::path> Analyst::write(Bundle& bundle, bool documents) const {
  const auto made = [&] {
    return documents && options_.documents ? options_.documents(bundle) : std::vector<BundleFile>();
  };
  Result<fs::path> path = write_bundle(findings_folder(options_.out), bundle, made());
  if (path.ok() || !bundle.recording) return path;
  bundle.recording.reset();
  bundle.finding.notes.push_back("inputs and outputs are not kept: " + path.error().what);
  return write_bundle(findings_folder(options_.out), bundle, made());
}

// From the folder alone, as whoever gets it would. An error of a check is a run that does not show the finding: the
// reason stands in the bundle's notes, and so it does where another run gets other inputs than were recorded.
Replay Analyst::replay(const Bundle& stored, const fs::path& folder, const std::string& signature, Bundle& bundle) {
  std::vector<std::string>& notes = bundle.finding.notes;
  Replay replay;
  bool same_inputs = true;
  Child child(options_.child);
  const double until = now() + std::min(kReplaySeconds, time_for_one());
  do {
    child.end();
    const Result<Seen> seen = check_in_child(child, stored.smallest, options_.sides, options_.seconds, folder);
    if (seen.ok() && seen->stopped) break;
    ++replay.runs;
    if (!seen.ok()) {
      notes.push_back("a replay failed: " + seen.error().what);
      break;
    }
    if (!seen->finding || signature_of(*seen->finding) != signature) continue;
    ++replay.same;
    same_inputs = same_inputs && (!stored.recording || !bundle.recording ||
                                  has_recorded_inputs(*seen->finding, with_tensors_of(*bundle.recording, stored)));
  } while (replay.runs < options_.replays && now() < until);
  if (!same_inputs) notes.push_back("a replay had other inputs than those of inputs.safetensors");
  return replay;
}

Status Analyst::bundle_up(const Case& original, const Finding& seen, bool kills) {
  Bundle bundle;
  bundle.smallest = original;
  bundle.original = original;
  bundle.finding = seen;
  bundle.environment = environment_;
  minimize_into(bundle, signature_of(seen), kills);
  if (stop_.load() || known_.contains(signature_of(bundle.finding))) return {};
  record(bundle, kills);
  if (stop_.load()) return {};
  const Result<fs::path> first = write(bundle, false);
  if (!first.ok()) return first.error();

  Result<Bundle> stored = read_bundle(*first);
  if (!stored.ok()) return stored.error();
  bundle.replay = replay(*stored, *first, signature_of(bundle.finding), bundle);
  if (bundle.replay->same == 0 && !(bundle.smallest == original) && !stop_.load()) {
    bundle.smallest = original;
    bundle.finding = seen;
    record(bundle, kills);
    stored->smallest = original;
    stored->recording = bundle.recording;
    bundle.replay = replay(*stored, tensors_folder(options_.out), signature_of(seen), bundle);
  }
  if (stop_.load()) return {};
  // What calls do to each other may be rare; the bits that differed were compared all the same.
  const bool is_rare = bundle.finding.cls == FindingClass::kContamination;
  if (bundle.replay->same == 0 && !is_rare) turn_into_nondeterminism(bundle);
  if (slug_of(bundle.finding) != first->filename()) {
    std::error_code code;
    fs::remove_all(*first, code);
  }
  const bool listed = known_.contains(signature_of(bundle.finding));
  known_.insert(signature_of(seen));
  known_.insert(signature_of(bundle.finding));
  return listed ? Status() : finish(bundle);
}

// Documents are made of all the rest, so they come last.
Status Analyst::finish(Bundle& bundle) {
  const Result<fs::path> path = write(bundle, true);
  if (!path.ok()) return path.error();
  if (Status listed = append_line(findings_list(options_.out), list_line(bundle)); !listed.ok()) return listed;
  const std::lock_guard lock(mutex_);
  news_.push_back({bundle.finding, *path, *bundle.replay});
  return {};
}

}  // namespace fusediff
