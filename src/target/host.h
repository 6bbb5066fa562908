// A target that runs in a process of its own, the host: what is asked of it, and what became of it. The process is
// spawned, never forked, watched, and started again when it has died. What a death means for a case is not decided
// here.
//
// The host is told one JSON object a message on a socket (SOCK_SEQPACKET), one for each thread that calls, and answers
// with one. Tensors lie in HostMemory. src/host/HOST.md lists the messages.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "target/fusediff_target.h"
#include "target/host_answer.h"
#include "target/host_memory.h"

namespace fusediff {

struct HostCommand {
  std::string program;
  std::vector<std::string> arguments;    // "--parent PID" is added
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string what;                      // the target's file, for messages
};

class Host {
 public:
  // Starts the process and has it load the target. The user's error: the program is missing, or says why it cannot.
  static Result<std::unique_ptr<Host>> start(HostCommand command);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // As the first process said.
  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  const std::string& schema() const { return schema_; }
  bool asks_workspace() const { return asks_workspace_; }
  bool owns_memory() const { return owns_memory_; }  // tensors lie in memory of the target's, not in HostMemory

  bool has_ended() const { return ended_.load(std::memory_order_acquire); }
  // A fresh process where the last one has ended: contexts and memory of the target's are gone with that one.
  Status revive();
  // Kills it, while other threads may wait for it: they are answered with kGivenUp.
  void end();

  // Each blocks until the host answers, dies, or give_up() says so: then it is killed. Any thread.
  using GiveUp = std::function<bool()>;
  HostAnswer open(std::string_view options, const GiveUp& give_up);
  HostAnswer close(std::uint64_t context, const GiveUp& give_up);
  HostAnswer workspace_bytes(std::uint64_t context, const fusediff_call& call, const GiveUp& give_up);
  // cover: a byte of a tensor; the thread that touches its page first pauses there. null: none.
  HostAnswer run(std::uint64_t context, const fusediff_call& call, const void* cover, const GiveUp& give_up);
  // A block that may be written to and read from as memory where the target owns none; else a handle.
  HostAnswer alloc(std::uint64_t context, std::size_t bytes, const GiveUp& give_up);
  HostAnswer release(std::uint64_t context, void* memory, const GiveUp& give_up);
  HostAnswer write(std::uint64_t context, void* memory, const void* from, std::size_t bytes, const GiveUp& give_up);
  HostAnswer read(std::uint64_t context, void* into, const void* memory, std::size_t bytes, const GiveUp& give_up);

 private:
  explicit Host(HostCommand command) : command_(std::move(command)) {}
  Status launch();
  Status greet();
  HostAnswer ask(std::string_view message, const GiveUp& give_up);
  HostAnswer ask_call(const char* what, std::uint64_t context, const fusediff_call& call, const void* cover,
                      const GiveUp& give_up);
  HostAnswer moved(const char* what, std::uint64_t context, void* memory, std::byte* staging, std::size_t bytes,
                   const GiveUp& give_up);
  HostAnswer bury(std::uint64_t generation);
  bool is_gone(std::uint64_t generation);
  void note_end(const Ended& ended);
  std::string printed_since(std::uint64_t& mark);
  int take_channel(std::uint64_t& generation);
  void give_channel(int channel, std::uint64_t generation);
  void close_all();

  const HostCommand command_;
  std::string name_;
  std::string version_;
  std::string schema_;
  bool asks_workspace_ = false;
  bool owns_memory_ = false;

  std::unique_ptr<HostMemory> memory_;
  int output_ = -1;  // a file without a name that takes what the host prints
  std::atomic<std::uint64_t> printed_{0};
  std::atomic<bool> ended_{true};
  std::atomic<bool> killed_{false};

  std::mutex mutex_;  // of what follows; never held while the host is waited for
  std::uint64_t generation_ = 0;
  pid_t process_ = 0;
  int control_ = -1;
  std::vector<int> channels_;  // free ones
  HostEnd end_;
};

}  // namespace fusediff
