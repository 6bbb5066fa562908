#include "campaign/supervisor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <thread>

#include "base/files.h"
#include "campaign/ask.h"
#include "campaign/captured.h"
#include "campaign/found.h"
#include "campaign/series.h"
#include "campaign/worker_process.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr auto kTick = std::chrono::milliseconds(50);
constexpr double kScanEvery = 0.2;  // seconds between looks into found/
constexpr double kStatsEvery = 1;
constexpr double kStopPatience = 3;  // for workers that were asked to stop
constexpr int kMostQuickDeaths = 8;  // in a row, of one worker

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

std::size_t count_entries(const fs::path& folder) {
  std::size_t count = 0;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) ++count;
  return count;
}

// libFuzzer writes corpus files in place: a worker that was killed may have left a part of one.
void sweep(const fs::path& out) {
  sweep_bundles(findings_folder(out));
  std::error_code code;
  for (const fs::path& file : entries(found_folder(out))) {
    if (file.extension() != ".json") fs::remove(file, code);
  }
  for (const fs::path& file : entries(corpus_folder(out))) {
    const Result<std::string> text = read_file(file, kMaxCaseBytes);
    if (text.ok() && !nlohmann::json::accept(*text)) fs::remove(file, code);
  }
}

// A snapshot that is replaced every second: whole at any moment, but not worth waiting for the disk, nor a word when
// the disk is full, which is met, and told, where a finding is written.
void replace_snapshot(const fs::path& file, const std::string& text) {
  const fs::path made = file.string() + ".tmp";
  std::ofstream stream(made, std::ios::trunc);
  stream << text;
  stream.close();
  std::error_code code;
  if (stream) fs::rename(made, file, code);
}

// Held while a campaign runs in the folder.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& out) {
    descriptor_ = ::open((out / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    held_ = descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool held() const { return held_; }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

class Campaign {
 public:
  Campaign(const FuzzOptions& options, const std::atomic<bool>& interrupted, const FuzzHooks& hooks)
      : options_(options), interrupted_(interrupted), hooks_(hooks), began_(now()) {}

  Status prepare() {
    for (const fs::path& folder : {options_.out, found_folder(options_.out), corpus_folder(options_.out),
                                   workers_folder(options_.out), findings_folder(options_.out)}) {
      if (Status made = make_directories(folder); !made.ok()) return made;
    }
    lock_.emplace(options_.out);
    if (!lock_->held()) {
      return user_error("--out: " + options_.out.string() +
                        ": another fusediff fuzz runs in this folder; name another or end that one");
    }
    sweep(options_.out);
    series_.emplace(options_.out);
    if (Status opened = open_sides(); !opened.ok()) return opened;
    return make_workers();
  }

  Result<FuzzResult> run() {
    AnalystOptions analysis;
    analysis.child = options_.child;
    analysis.out = options_.out;
    analysis.sides = result_.sides;
    analysis.seconds = options_.setup.seconds;
    analysis.minimize_seconds = options_.minimize_seconds;
    analysis.documents = options_.documents;
    Analyst analyst(std::move(analysis));
    const Status worked = look(analyst);
    stop_workers(analyst);
    if (worked.ok() && !interrupted_.load()) finish(analyst);
    analyst.stop();
    take_news(analyst);
    result_.interrupted = interrupted_.load();
    result_.status = status(analyst);
    if (hooks_.status) hooks_.status(result_.status);
    append_to_series();
    replace_snapshot(options_.out / "stats.json", status_json(result_.status));
    const Status written = write_file(options_.out / "summary.json", status_json(result_.status));
    if (!worked.ok()) return worked.error();
    if (const auto failure = analyst.failure()) return *failure;
    if (!written.ok()) return written.error();
    return std::move(result_);
  }

 private:
  // Asks a child, so that a target that cannot be opened is one line, whatever it does to its process.
  Status open_sides() {
    Child child(options_.child);
    Result<OpenAnswer> sides = open_in_child(child, options_.setup.seconds);
    if (!sides.ok()) return sides.error();
    result_.sides = *std::move(sides);
    return {};
  }

  Status make_workers() {
    plan_.program = options_.worker_program;
    plan_.out = options_.out;
    Result<std::vector<fs::path>> corpora = stage_corpora(options_.out, options_.corpora);
    if (!corpora.ok()) return corpora.error();
    plan_.corpora = *std::move(corpora);
    plan_.target_arguments = options_.target_arguments;
    plan_.seed = options_.seed;
    plan_.jobs = options_.jobs;
    if (options_.runs)
      plan_.jobs = static_cast<int>(std::min<std::uint64_t>(*options_.runs, std::uint64_t(plan_.jobs)));
    plan_.process_megabytes = static_cast<int>(process_bytes(options_.setup) >> 20);
    plan_.case_seconds = static_cast<int>(std::ceil(answer_seconds(options_.setup.seconds)));
    for (int i = 0; i < plan_.jobs; ++i) {
      std::uint64_t allowed = 0;
      if (options_.runs) {
        const auto jobs = static_cast<std::uint64_t>(plan_.jobs);
        allowed = *options_.runs / jobs + (static_cast<std::uint64_t>(i) < *options_.runs % jobs ? 1 : 0);
      }
      Result<WorkerProcess> worker = WorkerProcess::make(plan_, i, allowed);
      if (!worker.ok()) return worker.error();
      workers_.push_back(*std::move(worker));
    }
    return {};
  }

  // Until something says stop. An error is why it could not go on.
  Status look(Analyst& analyst) {
    while (!interrupted_.load()) {
      if (options_.seconds && now() - began_ >= *options_.seconds) return {};
      bool any = false;
      for (WorkerProcess& worker : workers_) {
        if (Status tended = tend(worker, analyst); !tended.ok()) return tended;
        if (Status started = worker.start(plan_, now()); !started.ok()) return started;
        any = any || worker.runs() || !worker.used_up();
      }
      if (!any) return {};
      if (analyst.failure()) return *analyst.failure();
      tick(analyst);
    }
    return {};
  }

  Status tend(WorkerProcess& worker, Analyst& analyst) {
    const auto death = worker.poll(plan_, now());
    if (!death) return {};
    switch (death->leaving) {
      case Leaving::kSetup:
      case Leaving::kDiskFull:
        return user_error(death->message);
      case Leaving::kDone:
      case Leaving::kTainted:
        return {};
      case Leaving::kNotSaid:
      case Leaving::kMemory:
        break;
    }
    if (death->culprit) {
      if (Status kept = write_killer(options_.out, *death->culprit); !kept.ok()) return kept;
      analyst.add_killer(*death->culprit, death->ended);
    }
    if (!death->culprit && worker.quick_deaths() >= kMostQuickDeaths) {
      return our_error("a worker ends again and again before its first check (" + describe(death->ended) + "): see " +
                       worker.log().string());
    }
    return {};
  }

  void tick(Analyst& analyst) {
    std::this_thread::sleep_for(kTick);
    const double at = now();
    if (at >= next_scan_) {
      next_scan_ = at + kScanEvery;
      scan(analyst);
      take_news(analyst);
      result_.status = status(analyst);
      if (hooks_.status) hooks_.status(result_.status);
    }
    if (at >= next_stats_) {
      next_stats_ = at + kStatsEvery;
      corpus_ = count_entries(corpus_folder(options_.out));
      replace_snapshot(options_.out / "stats.json", status_json(result_.status));
      if (series_->due(result_.status.seconds)) append_to_series();
    }
  }

  void append_to_series() {
    const FuzzStatus& s = result_.status;
    SeriesPoint point{s.seconds,
                      s.counts.checks,
                      static_cast<double>(s.counts.target_nanoseconds) * 1e-9,
                      s.corpus,
                      0,
                      distinct_findings(s.counts)};
    for (int i = 0; i < plan_.jobs; ++i) {
      const fs::path log = workers_folder(options_.out) / (std::to_string(i) + ".log");
      point.features = std::max(point.features, features_in_log(log));
    }
    series_->append(point);
  }

  void scan(Analyst& analyst) {
    for (const fs::path& file : entries(found_folder(options_.out))) {
      if (file.extension() == ".json") analyst.add_found(file);
    }
  }

  void take_news(Analyst& analyst) {
    for (News& news : analyst.take_news()) {
      if (hooks_.finding) hooks_.finding(news);
      result_.news.push_back(std::move(news));
    }
  }

  void stop_workers(Analyst& analyst) {
    for (WorkerProcess& worker : workers_) worker.ask_to_stop();
    const double until = now() + kStopPatience;
    const auto any = [&] {
      return std::any_of(workers_.begin(), workers_.end(), [](const auto& w) { return w.runs(); });
    };
    while (any() && now() < until) {
      for (WorkerProcess& worker : workers_) {
        if (const auto death = worker.poll(plan_, now());
            death && death->leaving == Leaving::kNotSaid && death->culprit) {
          if (write_killer(options_.out, *death->culprit).ok()) analyst.add_killer(*death->culprit, death->ended);
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    // Who does not stop in time sits in a call that does not come back, or in a long one: a child finds out which.
    for (const WorkerProcess& worker : workers_) {
      if (const auto stuck = worker.case_under_way()) analyst.add_suspect(*stuck);
    }
    for (const WorkerProcess& worker : workers_) {
      final_counts_.add(worker.counts());
      restarts_ += worker.restarts();
    }
    workers_.clear();
    stopped_ = now();
    corpus_ = count_entries(corpus_folder(options_.out));
  }

  // Bundles what is left.
  void finish(Analyst& analyst) {
    scan(analyst);
    if (analyst.pending() == 0) return;
    if (hooks_.note) {
      hooks_.note("the search is over; minimising " + std::to_string(analyst.pending()) + " more, for at most " +
                  std::to_string(static_cast<int>(options_.finish_seconds)) + " s");
    }
    analyst.hurry(options_.finish_seconds);
    while (analyst.pending() > 0 && !interrupted_.load()) tick(analyst);
  }

  FuzzStatus status(const Analyst& analyst) const {
    FuzzStatus s;
    s.seconds = (stopped_ == 0 ? now() : stopped_) - began_;
    s.counts = final_counts_;
    s.restarts = restarts_;
    for (const WorkerProcess& worker : workers_) {
      s.counts.add(worker.counts());
      s.restarts += worker.restarts();
    }
    s.corpus = corpus_;
    s.pending = analyst.pending();
    s.unexplained = analyst.unexplained();
    s.jobs = plan_.jobs;
    s.target = options_.setup.target;
    s.against = options_.setup.against;
    for (const auto& [cls, slug] : distinct_findings(s.counts)) ++s.classes[cls];
    return s;
  }

  // Signatures of this run.
  std::set<ClassAndSlug> distinct_findings(const Counts& counts) const {
    std::set<ClassAndSlug> distinct;
    for (const auto& [key, count] : counts.of_kind("signature")) {
      const std::size_t slash = key.find('/');
      if (slash != std::string::npos) distinct.insert({key.substr(0, slash), key.substr(slash + 1)});
    }
    for (const News& news : result_.news) {
      distinct.insert({std::string(name_of(news.finding.cls)), slug_of(news.finding)});
    }
    return distinct;
  }

  const FuzzOptions& options_;
  const std::atomic<bool>& interrupted_;
  const FuzzHooks& hooks_;
  std::optional<FolderLock> lock_;
  std::optional<Series> series_;  // from prepare() on
  WorkerPlan plan_;
  std::vector<WorkerProcess> workers_;
  FuzzResult result_;
  Counts final_counts_;
  int restarts_ = 0;
  std::size_t corpus_ = 0;
  double began_;
  double stopped_ = 0;
  double next_scan_ = 0;
  double next_stats_ = 0;
};

}  // namespace

std::string status_json(const FuzzStatus& status) {
  nlohmann::ordered_json json;
  const Counts& counts = status.counts;
  json["fusediff_summary"] = 1;
  json["seconds"] = status.seconds;
  json["checks"] = counts.checks;
  json["checks_per_second"] = status.seconds > 0 ? static_cast<double>(counts.checks) / status.seconds : 0.0;
  json["target_seconds"] = static_cast<double>(counts.target_nanoseconds) * 1e-9;
  json["jobs"] = status.jobs;
  json["target"] = status.target;
  json["against"] = status.against;
  json["restarts"] = status.restarts;
  json["unexplained_deaths"] = status.unexplained;
  json["corpus"] = status.corpus;
  json["findings"] = status.classes;
  json["pending"] = status.pending;
  nlohmann::ordered_json operators = nlohmann::ordered_json::object();
  for (const auto& [key, count] : counts.of_kind("check")) {
    const std::size_t slash = key.rfind('/');
    if (slash != std::string::npos) operators[key.substr(0, slash)][key.substr(slash + 1)] = count;
  }
  json["checks_by_operator"] = operators;
  nlohmann::ordered_json asked = nlohmann::ordered_json::object();
  for (const auto& [kind, name] : {std::pair("asked", "checks"), std::pair("passed", "pass")}) {
    for (const auto& [key, count] : counts.of_kind(kind)) {
      const std::size_t slash = key.rfind('/');
      if (slash != std::string::npos) asked[key.substr(0, slash)][key.substr(slash + 1)][name] = count;
    }
  }
  json["experiments_by_operator"] = asked;
  nlohmann::ordered_json experiments = nlohmann::ordered_json::object();
  for (const auto& [name, count] : counts.of_kind("experiment")) experiments[name]["checks"] = count;
  for (const auto& [name, nanoseconds] : counts.of_kind("time"))
    experiments[name]["seconds"] = static_cast<double>(nanoseconds) * 1e-9;
  json["experiments"] = experiments;
  for (const char* kind : {"class", "skip", "vacuous", "harness_error", "signature", "not_checked", "unasked"}) {
    json[kind] = counts.of_kind(kind);
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<FuzzResult> fuzz(const FuzzOptions& options, const std::atomic<bool>& interrupted, const FuzzHooks& hooks) {
  Campaign campaign(options, interrupted, hooks);
  if (Status prepared = campaign.prepare(); !prepared.ok()) return prepared.error();
  return campaign.run();
}

}  // namespace fusediff
