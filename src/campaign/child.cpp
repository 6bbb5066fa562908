#include "campaign/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

namespace fusediff {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSliceMilliseconds = 50;                    // how late a stop or a silent death is seen
constexpr std::size_t kMaxReply = std::size_t{64} << 20;  // beyond it the answer is no answer
constexpr std::size_t kShownOfGarbage = 120;

bool is_object(std::string_view line) { return line.starts_with('{') && nlohmann::json::accept(line); }

}  // namespace

Status Child::start() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return our_error(std::string("cannot make a socket pair: ") + std::strerror(errno));
  }
  SpawnRequest wanted;
  wanted.program = options_.program;
  wanted.arguments = options_.arguments;
  wanted.arguments.push_back("--parent");
  wanted.arguments.push_back(std::to_string(::getpid()));
  // Duplicated above 4 first, so that no step of the plan overwrites the other end before its turn.
  const int high = ::fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
  wanted.descriptors = {{high, 3}, {high, 4}};
  wanted.output_file = options_.output_file;
  const Result<pid_t> process = spawn(wanted);
  ::close(pair[1]);
  ::close(high);
  if (!process.ok()) {
    ::close(pair[0]);
    return process.error();
  }
  process_ = *process;
  socket_ = pair[0];
  return {};
}

void Child::end() {
  if (process_ != 0) kill_and_reap(process_);
  if (socket_ >= 0) ::close(socket_);
  process_ = 0;
  socket_ = -1;
}

Result<Outcome> Child::request(std::string_view line, double seconds, const Aside& aside) {
  if (process_ == 0) {
    if (Status started = start(); !started.ok()) return started.error();
  }
  Outcome outcome = converse(std::string(line) + "\n", seconds, aside);
  if (outcome.kind == Outcome::Kind::kDied) {
    kill_group(process_);  // what the target had started
    process_ = 0;          // reaped already
  }
  if (outcome.kind != Outcome::Kind::kReply) end();
  return outcome;
}

// The other end is closed: either the process is ending, or the target closed what was not its own.
Outcome Child::closed(double seconds_left) {
  const auto until = Clock::now() + std::chrono::duration<double>(std::min(seconds_left, 2.0));
  do {
    if (const auto ended = poll_end(process_)) return {Outcome::Kind::kDied, "", *ended};
    ::usleep(1000);
  } while (Clock::now() < until);
  return {Outcome::Kind::kGarbled, "it closed the descriptor of the answers", {}};
}

Outcome Child::converse(std::string_view line, double seconds, const Aside& aside) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  std::string reply;
  char block[1 << 16];
  for (;;) {
    const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    if (left <= 0) return {Outcome::Kind::kTimedOut, "", {}};
    if (options_.stop != nullptr && options_.stop->load()) return {Outcome::Kind::kStopped, "", {}};
    pollfd waiting = {socket_, static_cast<short>(POLLIN | (line.empty() ? 0 : POLLOUT)), 0};
    const int slice = std::min(kSliceMilliseconds, static_cast<int>(left * 1000) + 1);
    const int ready = ::poll(&waiting, 1, slice);
    if (ready <= 0) {
      // A grandchild may hold the socket open after the process itself has ended.
      if (const auto ended = poll_end(process_)) return {Outcome::Kind::kDied, "", *ended};
      continue;
    }
    if ((waiting.revents & POLLOUT) != 0) {
      const ssize_t sent = ::send(socket_, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) line.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return closed(left);
    }
    if ((waiting.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    const ssize_t got = ::recv(socket_, block, sizeof block, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return closed(left);
    reply.append(block, static_cast<std::size_t>(got));
    std::size_t end = aside ? reply.find('\n') : std::string::npos;
    while (end != std::string::npos && aside(std::string_view(reply).substr(0, end))) {
      reply.erase(0, end + 1);
      end = reply.find('\n');
    }
    if (reply.empty() || (reply.back() != '\n' && reply.size() <= kMaxReply)) continue;
    reply.pop_back();
    if (is_object(reply)) return {Outcome::Kind::kReply, std::move(reply), {}};
    return {Outcome::Kind::kGarbled, reply.substr(0, kShownOfGarbage), {}};
  }
}

}  // namespace fusediff
