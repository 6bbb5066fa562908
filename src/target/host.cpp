#include "target/host.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "target/host_message.h"
#include "target/host_socket.h"
#include "target/json_fields.h"

namespace fusediff {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kHostSocket = 3;
constexpr int kHostMemory = 4;
constexpr std::chrono::seconds kLongestStart(180);  // of a library that is large, on a machine that is busy
constexpr std::chrono::seconds kLongestEnd(5);      // from the closed socket to the ended process
constexpr std::uint64_t kMostPrinted = 2000;        // bytes of it that are kept
constexpr std::uint64_t kLargestOutput = 8u << 20;  // bytes; then it starts anew

HostAnswer failed(std::string text) {
  HostAnswer answer;
  answer.status = FUSEDIFF_FAILED;
  answer.text = std::move(text);
  return answer;
}

}  // namespace

Result<std::unique_ptr<Host>> Host::start(HostCommand command) {
  std::unique_ptr<Host> host(new Host(std::move(command)));
  Result<std::unique_ptr<HostMemory>> memory = HostMemory::make();
  if (!memory.ok()) return memory.error();
  host->memory_ = *std::move(memory);
  host->output_ = ::memfd_create("fusediff-host-output", MFD_CLOEXEC);
  if (host->output_ < 0 || ::fcntl(host->output_, F_SETFL, O_APPEND) != 0) {
    return our_error(std::string("no file for what a host process prints: ") + std::strerror(errno));
  }
  if (Status launched = host->revive(); !launched.ok()) return launched.error();
  return host;
}

Host::~Host() {
  end();
  if (output_ >= 0) ::close(output_);
}

Status Host::launch() {
  int pair[2];
  if (!make_host_sockets(pair)) return our_error(std::string("no socket for a host process: ") + std::strerror(errno));
  const int memory = lifted_copy(memory_->descriptor());
  const int output = lifted_copy(output_);
  SpawnRequest request;
  request.program = command_.program;
  request.arguments = command_.arguments;
  request.arguments.insert(request.arguments.end(), {"--parent", std::to_string(::getpid())});
  request.environment = command_.environment;
  request.descriptors = {
      {pair[1], kHostSocket}, {memory, kHostMemory}, {output, STDOUT_FILENO}, {output, STDERR_FILENO}};
  const Result<pid_t> process = spawn(request);
  for (const int passed : {pair[1], memory, output}) ::close(passed);
  if (!process.ok()) {
    ::close(pair[0]);
    return process.error();
  }
  memory_->last_words().state.store(0);
  const std::lock_guard lock(mutex_);
  ++generation_;
  process_ = *process;
  control_ = pair[0];
  end_ = {};
  killed_.store(false);
  ended_.store(false, std::memory_order_release);
  return {};
}

// What the host says of its target, ahead of everything else.
Status Host::greet() {
  std::uint64_t mark = printed_.load();
  std::vector<char> room(kMaxHostMessage);
  const Clock::time_point until = Clock::now() + kLongestStart;
  ssize_t got = -1;
  while (got < 0 && Clock::now() < until) {
    got = ::recv(control_, room.data(), room.size(), 0);
    if (got < 0 && errno != EAGAIN && errno != EINTR) got = 0;
  }
  if (got <= 0) {
    if (got == 0) bury(generation_);
    end();
    const std::string how = got == 0 ? describe(end_.ended) : "no answer within 180 s, so it was ended";
    std::string printed = printed_since(mark);
    while (!printed.empty() && printed.back() == '\n') printed.pop_back();
    return user_error(command_.what + ": its process did not start: " + how +
                      (printed.empty() ? "" : "; it printed: " + printed));
  }
  const Json json = Json::parse(room.data(), room.data() + got, nullptr, false);
  if (const std::string refused = json.is_object() ? text_in(json, "refused") : "no description"; !refused.empty()) {
    end();
    return user_error(refused);
  }
  const std::uint64_t bytes = std::min(number_in(json, "schema_bytes"), kParcelBytes);
  schema_.assign(reinterpret_cast<const char*>(memory_->begin()) + kParcelOffset, bytes);
  name_ = text_in(json, "name");
  version_ = text_in(json, "version");
  asks_workspace_ = json.value("asks_workspace", false);
  owns_memory_ = json.value("owns_memory", false);
  return {};
}

Status Host::revive() {
  if (!has_ended()) return {};
  if (Status launched = launch(); !launched.ok()) return launched;
  if (Status greeted = greet(); !greeted.ok()) return greeted;
  if (owns_memory_) return {};
  for (const auto& [offset, bytes] : memory_->blocks()) {
    const HostAnswer told = ask(write_step("guard", 0, 0, offset, bytes), [] { return false; });
    if (told.kind != HostAnswer::Kind::kAnswered) return user_error(command_.what + ": its process ended at its start");
  }
  return {};
}

void Host::close_all() {
  for (const int channel : channels_) ::close(channel);
  channels_.clear();
  if (control_ >= 0) ::close(control_);
  control_ = -1;
}

void Host::note_end(const Ended& ended) {
  end_ = {};
  end_.ended = ended;
  const LastWords& words = memory_->last_words();
  if (words.state.load(std::memory_order_acquire) == LastWords::kWhole && words.signal == ended.signal) {
    end_.code = words.code;
    end_.stack = static_cast<std::uintptr_t>(words.stack);
    end_.access = static_cast<Access>(std::clamp(words.access, 0, 2));
    end_.own_thread = words.own_thread != 0;
    end_.address = words.in_region == 0 ? static_cast<std::uintptr_t>(words.address)
                                        : reinterpret_cast<std::uintptr_t>(memory_->begin()) + (words.in_region - 1);
  }
  close_all();
  ended_.store(true, std::memory_order_release);
}

void Host::end() {
  const std::lock_guard lock(mutex_);
  if (has_ended()) return;
  killed_.store(true);
  kill_and_reap(process_);
  note_end({SIGKILL, 0});
}

// The socket is closed: the process has ended or is about to.
HostAnswer Host::bury(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  if (generation == generation_ && !has_ended()) {
    const Clock::time_point until = Clock::now() + kLongestEnd;
    std::optional<Ended> ended = poll_end(process_);
    while (!ended && Clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ended = poll_end(process_);
    }
    if (!ended) kill_and_reap(process_);
    if (ended) kill_group(process_);
    note_end(ended.value_or(Ended{SIGKILL, 0}));
  }
  HostAnswer answer;
  answer.kind = killed_.load() ? HostAnswer::Kind::kGivenUp : HostAnswer::Kind::kEnded;
  answer.end = end_;
  return answer;
}

int Host::take_channel(std::uint64_t& generation) {
  const std::lock_guard lock(mutex_);
  generation = generation_;
  if (has_ended()) return -1;
  if (!channels_.empty()) {
    const int channel = channels_.back();
    channels_.pop_back();
    return channel;
  }
  int pair[2];
  if (!make_host_sockets(pair)) return -1;
  const bool sent = send_with_descriptor(control_, "{\"do\":\"channel\"}", pair[1]);
  ::close(pair[1]);
  if (sent) return pair[0];
  ::close(pair[0]);
  return -1;
}

void Host::give_channel(int channel, std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  if (generation == generation_ && !has_ended()) {
    channels_.push_back(channel);
  } else {
    ::close(channel);
  }
}

// From the mark on, cut to its end; the mark moves to the end.
std::string Host::printed_since(std::uint64_t& mark) {
  const off_t end = ::lseek(output_, 0, SEEK_END);
  if (end <= static_cast<off_t>(mark)) return "";
  const auto size = static_cast<std::uint64_t>(end);
  const std::uint64_t from = std::max(mark, size - std::min(size, kMostPrinted));
  std::string text(size - from, '\0');
  const ssize_t got = ::pread(output_, text.data(), text.size(), static_cast<off_t>(from));
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  mark = size;
  if (size > kLargestOutput && ::ftruncate(output_, 0) == 0) mark = 0;
  return text;
}

// It has died, though a child of its own may hold the socket open.
bool Host::is_gone(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  siginfo_t info{};
  const auto process = static_cast<id_t>(process_);
  return generation != generation_ || has_ended() ||
         (::waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0);
}

HostAnswer Host::ask(std::string_view message, const GiveUp& give_up) {
  if (message.size() > kMaxHostMessage) {
    HostAnswer skipped = failed("the call does not fit into the 128 KiB of a message to the host process");
    skipped.status = FUSEDIFF_UNSUPPORTED;  // our limit, not the target's
    return skipped;
  }
  std::uint64_t generation = 0;
  const int channel = take_channel(generation);
  if (channel < 0) return bury(generation);
  thread_local std::vector<char> room(kMaxHostMessage);
  ssize_t got = ::send(channel, message.data(), message.size(), MSG_NOSIGNAL) < 0 ? 0 : -1;
  while (got < 0) {
    got = ::recv(channel, room.data(), room.size(), 0);
    if (got >= 0) break;
    if ((errno != EAGAIN && errno != EINTR) || is_gone(generation)) {
      got = 0;
    } else if (give_up()) {
      end();
      ::close(channel);
      return bury(generation);
    }
  }
  HostAnswer answer;
  if (got == 0) {
    ::close(channel);
    answer = bury(generation);
  } else {
    answer = parse_host_answer({room.data(), static_cast<std::size_t>(got)});
    give_channel(channel, generation);
  }
  std::uint64_t mark = printed_.load(std::memory_order_relaxed);
  answer.printed = printed_since(mark);
  printed_.store(mark, std::memory_order_relaxed);
  return answer;
}

HostAnswer Host::open(std::string_view options, const GiveUp& give_up) { return ask(write_open(options), give_up); }

HostAnswer Host::close(std::uint64_t context, const GiveUp& give_up) {
  return ask(write_step("close", context), give_up);
}

HostAnswer Host::ask_call(const char* what, std::uint64_t context, const fusediff_call& call, const void* cover,
                          const GiveUp& give_up) {
  const auto where = [this](const void* memory) {
    return owns_memory_ ? reinterpret_cast<std::uint64_t>(memory) : memory_->offset_of(memory);
  };
  return ask(write_call(what, context, call, cover, where), give_up);
}

HostAnswer Host::workspace_bytes(std::uint64_t context, const fusediff_call& call, const GiveUp& give_up) {
  return asks_workspace_ ? ask_call("workspace_bytes", context, call, nullptr, give_up) : HostAnswer{};
}

HostAnswer Host::run(std::uint64_t context, const fusediff_call& call, const void* cover, const GiveUp& give_up) {
  return ask_call("run", context, call, cover, give_up);
}

HostAnswer Host::alloc(std::uint64_t context, std::size_t bytes, const GiveUp& give_up) {
  if (owns_memory_) return ask(write_step("alloc", context, 0, 0, bytes), give_up);
  bool fresh = false;
  std::byte* block = memory_->acquire(bytes, fresh);
  if (block == nullptr) return {};
  HostAnswer answer;
  if (fresh) answer = ask(write_step("guard", 0, 0, memory_->offset_of(block), bytes), give_up);
  answer.number = reinterpret_cast<std::uint64_t>(block);
  return answer;
}

HostAnswer Host::release(std::uint64_t context, void* memory, const GiveUp& give_up) {
  if (owns_memory_) return ask(write_step("release", context, reinterpret_cast<std::uint64_t>(memory)), give_up);
  memory_->release(static_cast<std::byte*>(memory));
  return {};
}

HostAnswer Host::moved(const char* what, std::uint64_t context, void* memory, std::byte* staging, std::size_t bytes,
                       const GiveUp& give_up) {
  return ask(write_step(what, context, reinterpret_cast<std::uint64_t>(memory), memory_->offset_of(staging), bytes),
             give_up);
}

HostAnswer Host::write(std::uint64_t context, void* memory, const void* from, std::size_t bytes,
                       const GiveUp& give_up) {
  if (!owns_memory_) {
    std::memcpy(memory, from, bytes);
    return {};
  }
  bool fresh = false;
  std::byte* staging = memory_->acquire(bytes, fresh);
  if (staging == nullptr) return failed("there is no room to pass the bytes on");
  std::memcpy(staging, from, bytes);
  HostAnswer answer = moved("write", context, memory, staging, bytes, give_up);
  memory_->release(staging);
  return answer;
}

HostAnswer Host::read(std::uint64_t context, void* into, const void* memory, std::size_t bytes, const GiveUp& give_up) {
  if (!owns_memory_) {
    std::memcpy(into, memory, bytes);
    return {};
  }
  bool fresh = false;
  std::byte* staging = memory_->acquire(bytes, fresh);
  if (staging == nullptr) return failed("there is no room to fetch the bytes");
  HostAnswer answer = moved("read", context, const_cast<void*>(memory), staging, bytes, give_up);
  if (answer.kind == HostAnswer::Kind::kAnswered && answer.status == FUSEDIFF_OK) std::memcpy(into, staging, bytes);
  memory_->release(staging);
  return answer;
}

}  // namespace fusediff
