// The memory that a worker shares with its supervisor: counts, the case under way, why it left. A mapped file, so that
// it outlives a worker that dies in whatever way. One process at a time writes the counts: the worker while it lives,
// the supervisor after its death; any may read them at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/status.h"

namespace fusediff {

// Why a worker ended on its own.
enum class Leaving : std::uint32_t {
  kNotSaid,   // it died
  kDone,      // its checks are used up, or it was asked to stop
  kTainted,   // a fault of the target may have broken the process; the finding is on disk
  kMemory,    // memory ran out in the case under way
  kDiskFull,  // a finding could not be written
  kSetup,     // the targets could not be opened: the user's error, in message()
};

// What was counted, by key. A key is a kind, a slash, a name: "check/OP/VERDICT", "class/flip", "skip/REASON",
// "experiment/threads", "asked/OP/threads" and of those "passed/OP/threads", and, in nanoseconds, "time/threads".
struct Counts {
  std::uint64_t checks = 0;
  std::uint64_t target_nanoseconds = 0;  // inside the paths
  std::map<std::string, std::uint64_t> by_key;

  void add(const Counts& other);
  // Those of one kind, without the prefix "KIND/".
  std::map<std::string, std::uint64_t> of_kind(std::string_view kind) const;
};

class WorkerState {
 public:
  // A new file, its space on disk reserved (a full disk is an error here and not a signal later); "": no file, for a
  // worker without a supervisor.
  static Result<WorkerState> create(const std::filesystem::path& path);
  // A file that create() made, counts kept.
  static Result<WorkerState> open(const std::filesystem::path& path);
  WorkerState(WorkerState&&) noexcept;
  WorkerState& operator=(WorkerState&&) noexcept;
  ~WorkerState();

  // The worker's side.
  void begin(std::string_view case_text);                      // this case is about to run in the target
  void end();                                                  // it came back
  void count(std::string_view key, std::uint64_t amount = 1);  // beyond a fixed number of keys: as "KIND/other"
  void count_check(std::uint64_t target_nanoseconds);
  void leave(Leaving why, std::string_view message = "");
  bool stop_wanted() const;  // asked to, or as many checks as allowed
  std::uint64_t checks() const;

  // The supervisor's side.
  void count_death(std::string_view op);  // the case under way ended the worker: a check, with the verdict "died"
  void allow(std::uint64_t checks);       // in all, over restarts; 0: any number
  void ask_to_stop();
  void forget_leaving();  // before a restart
  Leaving leaving() const;
  std::string message() const;
  std::uint64_t cases_begun() const;
  bool is_running() const;                            // between begin() and end()
  std::optional<std::string> case_under_way() const;  // nothing: the target was not running
  Counts counts() const;

 private:
  struct Layout;
  WorkerState(Layout* layout, bool fresh);
  void read_keys();
  static Result<WorkerState> map(const std::filesystem::path& path, int flags, bool fresh);

  Layout* layout_ = nullptr;
  std::unordered_map<std::string, std::size_t> slots_;
};

}  // namespace fusediff
