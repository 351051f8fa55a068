// Privileges: capabilities that a thread of the data plane drops after everything is open.
//
// The workers and the next-hop watch call these at the start of their threads, the service after
// its start. Capabilities belong to threads, and a dropped capability cannot be regained.
#pragma once

#include <cstddef>

namespace shredway {

// Drops all capabilities of the calling thread. No effect if it has none.
void drop_privileges_of_this_thread();
// Drops the calling thread's capabilities to change the network and load programs (CAP_NET_ADMIN,
// CAP_NET_RAW, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF); keeps the others.
void drop_network_privileges_of_this_thread();
// The same for every thread of this process. Returns the number of threads that still hold one of
// them: expected 0. A thread can change only its own capabilities, so each runs a signal handler.
size_t drop_network_privileges_of_all_threads();
// True if the calling thread has any effective or permitted capability.
bool thread_has_privileges();

}  // namespace shredway
