// Turns what workers found into bundles while they go on: reruns, minimises, writes, replays, lists. One thread of its
// own; everything that runs a target happens in child processes. Prints nothing: the supervisor takes the news.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "campaign/child.h"
#include "campaign/protocol.h"
#include "engine/bundle.h"
#include "model/case.h"
#include "model/finding.h"

namespace fusediff {

struct AnalystOptions {
  ChildOptions child;  // how to start one that checks this comparison
  std::filesystem::path out;
  OpenAnswer sides;
  double seconds = 10;           // of one run
  double minimize_seconds = 30;  // of one finding
  int replays = 10;
  // Files that are made of a bundle which is otherwise whole, the replay rate included; empty: none.
  std::function<std::vector<BundleFile>(const Bundle&)> documents;
};

// One finding that is bundled and listed.
struct News {
  Finding finding;
  std::filesystem::path bundle;
  Replay replay;
};

class Analyst {
 public:
  // Starts the thread. What findings.jsonl lists is known and never bundled again.
  explicit Analyst(AnalystOptions options);
  ~Analyst();  // as stop()
  Analyst(const Analyst&) = delete;
  Analyst& operator=(const Analyst&) = delete;

  // A file of found/. One that was added before is passed over; it is removed when it is dealt with.
  void add_found(const std::filesystem::path& file);
  // A case that was in the target when a worker ended so.
  void add_killer(std::string case_text, const Ended& ended);
  // A case that a worker was still at when the campaign was over: a finding only when a child shows one.
  void add_suspect(std::string case_text);

  std::vector<News> take_news();
  std::size_t pending() const;  // what is queued or under way
  // Deaths of workers that are no findings: killed from outside, memory that grew over many cases, and those beyond a
  // limit on what may wait to be looked at.
  std::size_t unexplained() const;
  std::optional<Error> failure() const;  // the disk, or a child that cannot be started: analysing has ended

  // From now on all that is left must fit in so many seconds: minimising is cut short, bundles are written anyway.
  void hurry(double seconds);
  // Abandons what is under way, and ends the thread. What is not bundled stays in found/.
  void stop();

 private:
  struct Job {
    std::filesystem::path found;  // or
    std::string case_text;
    std::optional<Ended> ended;  // nothing: it did not end
  };
  void loop();
  Status work_on(const Job& job);
  Status work_on_found(const std::filesystem::path& file);
  Status work_on_killer(const Job& job);
  Status bundle_up(const Case& original, const Finding& seen, bool kills);
  void minimize_into(Bundle& bundle, const std::string& signature, bool kills);
  bool comes_back_whole(MinimizeAnswer& answer, const std::filesystem::path& folder);
  void record(Bundle& bundle, bool kills) const;
  Result<std::filesystem::path> write(Bundle& bundle, bool documents) const;
  Replay replay(const Bundle& stored, const std::filesystem::path& folder, const std::string& signature,
                Bundle& bundle);
  Status finish(Bundle& bundle);
  double time_for_one() const;

  AnalystOptions options_;
  std::string environment_;
  std::atomic<bool> stop_{false};
  std::set<std::string> known_;  // signatures; the thread's own

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;  // guarded, as all below
  std::set<std::filesystem::path> queued_files_;
  std::vector<News> news_;
  bool busy_ = false;
  std::size_t unexplained_ = 0;
  std::size_t waiting_killers_ = 0;
  std::optional<Error> failure_;
  std::optional<double> deadline_;  // seconds of the steady clock

  std::thread thread_;
};

}  // namespace fusediff
