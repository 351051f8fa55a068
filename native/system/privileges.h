// Privileges: what a thread of the data plane gives away once everything is open.
//
// Called by the workers and by the next-hop watch at the start of their threads. Capabilities
// belong to threads: what another thread holds is not touched, and nobody can take any back.
#pragma once

namespace shredway {

// Drops all capabilities of the calling thread. Without effect where it has none.
void drop_privileges_of_this_thread();
// Drops those of the calling thread that let it change the machine's network and load programs
// (CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF); others stay.
void drop_network_privileges_of_this_thread();
// Whether the calling thread has any capability, in effect or to be had back.
bool thread_has_privileges();

}  // namespace shredway
