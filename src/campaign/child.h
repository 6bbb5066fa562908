// A process that loads targets for us and answers requests, so that nothing a target does ends this program. One JSON
// object a line goes to its descriptor 3, one comes back on its descriptor 4. What the lines mean is in
// campaign/protocol.h; what a death means for a case is in campaign/death.h.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/spawn.h"

namespace fusediff {

struct ChildOptions {
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;       // "--parent PID" is added
  std::string output_file;                  // takes what a target prints; "": our stderr
  const std::atomic<bool>* stop = nullptr;  // set by another thread: the request under way ends with kStopped
};

// What became of a request. Except after kReply the process is gone.
struct Outcome {
  enum class Kind { kReply, kDied, kTimedOut, kGarbled, kStopped } kind = Kind::kReply;
  std::string reply;  // kReply: a JSON object, without the newline; kGarbled: what came instead, cut
  Ended ended;        // kDied
};

class Child {
 public:
  explicit Child(ChildOptions options) : options_(std::move(options)) {}
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Takes a line that comes ahead of the answer; false: it is the answer.
  using Aside = std::function<bool(std::string_view line)>;

  // Starts the process if none is there, sends the line, waits at most `seconds` for the answer. Blocks. An error is
  // that the process could not be started.
  Result<Outcome> request(std::string_view line, double seconds, const Aside& aside = {});

  // Ends the process; the next request gets a fresh one.
  void end();

 private:
  Status start();
  Outcome converse(std::string_view line, double seconds, const Aside& aside);
  Outcome closed(double seconds_left);

  ChildOptions options_;
  pid_t process_ = 0;
  int socket_ = -1;
};

}  // namespace fusediff
