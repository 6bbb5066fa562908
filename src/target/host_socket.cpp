#include "target/host_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>

namespace fusediff {
namespace {

constexpr int kOurDescriptors = 64;
constexpr long kLookMicroseconds = 50'000;  // between two looks at what else there is

}  // namespace

int lifted_copy(int descriptor) { return ::fcntl(descriptor, F_DUPFD_CLOEXEC, kOurDescriptors); }

bool make_host_sockets(int (&pair)[2]) {
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
  for (int& end : pair) {
    const int higher = lifted_copy(end);
    ::close(end);
    end = higher;
  }
  const timeval look{0, kLookMicroseconds};
  ::setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
  return pair[0] >= 0 && pair[1] >= 0;
}

bool send_with_descriptor(int socket, std::string_view text, int descriptor) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

}  // namespace fusediff
