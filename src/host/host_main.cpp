// fusediff-host LIBRARY --parent PID: the process that an isolated target runs in. Socket on descriptor 3, shared
// memory on 4; src/host/HOST.md says what goes over them. Started by fusediff, not by people.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/spawn.h"
#include "host/fault_report.h"
#include "host/served.h"
#include "target/host_memory.h"
#include "target/host_message.h"
#include "target/target.h"

namespace fusediff {
namespace {

using Json = nlohmann::json;

constexpr int kSocket = 3;
constexpr int kMemory = 4;

bool say(int socket, const std::string& text) { return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) >= 0; }

int refuse(const std::string& why) {
  say(kSocket, Json({{"refused", why}}).dump(-1, ' ', false, Json::error_handler_t::replace));
  return 2;
}

std::byte* map_region(std::uint64_t& bytes) {
  struct stat facts {};
  if (::fstat(kMemory, &facts) != 0 || static_cast<std::uint64_t>(facts.st_size) <= kFirstBlock) return nullptr;
  bytes = static_cast<std::uint64_t>(facts.st_size);
  void* begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, kMemory, 0);
  return begin == MAP_FAILED ? nullptr : static_cast<std::byte*>(begin);
}

// The channel's descriptor that came with a message; -1: none did, or the other end is gone.
int next_channel() {
  for (;;) {
    char text[64];
    iovec part{text, sizeof text};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    const ssize_t got = ::recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    const cmsghdr* head = got <= 0 ? nullptr : CMSG_FIRSTHDR(&message);
    if (head == nullptr || head->cmsg_type != SCM_RIGHTS) return -1;
    int channel = -1;
    std::memcpy(&channel, CMSG_DATA(head), sizeof channel);
    return channel;
  }
}

void serve_channel(const ServedTarget& target, int socket) {
  serve_here();
  ServedChannel channel(target);
  std::vector<char> room(kMaxHostMessage);
  for (;;) {
    const ssize_t got = ::recv(socket, room.data(), room.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (!say(socket, channel.answer({room.data(), static_cast<std::size_t>(got)}))) break;
  }
  ::close(socket);
}

int serve(const std::string& file) {
  std::uint64_t bytes = 0;
  std::byte* const region = map_region(bytes);
  if (region == nullptr)
    return refuse("fusediff-host: there is no shared memory on descriptor 4: start fusediff instead");
  const Result<const fusediff_target_v1*> table = load_table(file);
  if (!table.ok()) return refuse(table.error().what);
  const char* schema = (*table)->schema();
  const std::size_t length = schema == nullptr ? 0 : std::strlen(schema);
  if (length == 0 || length > kParcelBytes) {
    return refuse(file + ": schema() returned " + (length == 0 ? "nothing" : "more than 4 MiB"));
  }
  std::memcpy(region + kParcelOffset, schema, length);
  const ServedTarget target = {*table, find_note(file), region};
  report_faults(region, bytes);
  const Json greeting = {{"name", (*table)->name},
                         {"version", (*table)->version},
                         {"schema_bytes", length},
                         {"asks_workspace", (*table)->workspace_bytes != nullptr},
                         {"owns_memory", (*table)->alloc != nullptr}};
  if (!say(kSocket, greeting.dump(-1, ' ', false, Json::error_handler_t::replace))) return 3;
  outlive_parent();  // the socket tells, and what the target has forked is to go too
  for (int channel = next_channel(); channel >= 0; channel = next_channel()) {
    std::thread(serve_channel, std::cref(target), channel).detach();
  }
  kill_group(::getpid());
  return 0;
}

}  // namespace
}  // namespace fusediff

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  pid_t parent = 0;
  if (arguments.size() != 3 || arguments[1] != "--parent" ||
      std::from_chars(arguments[2].begin(), arguments[2].end(), parent).ec != std::errc()) {
    std::fputs("usage: fusediff-host LIBRARY --parent PID; started by fusediff, with --isolate\n", stderr);
    return 2;
  }
  if (!fusediff::die_with_parent(parent)) return 3;
  const int code = fusediff::serve(std::string(arguments[0]));
  ::_exit(code);  // threads may still be inside the target
}
