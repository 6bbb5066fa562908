// The sockets between this process and a host. What goes over them is not known here.
#pragma once

#include <string_view>

namespace fusediff {

// A pair of connected sockets that keep messages apart (SOCK_SEQPACKET), ours first: recv() on it comes back with
// EAGAIN now and then, so that whoever waits can look around. False: the system has none.
bool make_host_sockets(int (&pair)[2]);

// A copy of a descriptor above the numbers that a host finds its own at, so that none is overwritten before it is
// passed on; -1: the system has none.
int lifted_copy(int descriptor);

// One message with a descriptor beside it. False: the other end is gone.
bool send_with_descriptor(int socket, std::string_view text, int descriptor);

}  // namespace fusediff
