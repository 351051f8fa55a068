// Confinement of a helper process: what it can still do after everything that it needs is open.
//
// The process of the QUIC connections calls it before its first packet, because its library parses
// data of strangers. A step that the system refuses is reported, and the others still apply.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace shredway {

// Confines the calling process, all of its threads. Nothing of it can be undone.
// - The kernel kills it when `parent`, which started it, ends.
// - It may allocate `memory_bytes` more than now; after that, allocations fail.
// - It has no capabilities, gets no new privileges and writes no core dump.
// - It cannot open files or sockets, start programs, signal or read other processes, or change
//   anything in the file system. Its open descriptors stay usable.
// A ring of io_uring that the process still has stays usable, because libuv aborts without it; that
// counts as a refused step.
// Returns the steps that the system refused, with their errors; empty if it refused nothing.
std::string confine_process(pid_t parent, uint64_t memory_bytes);

// Starts the program of this process again, in the same process, so that it has no ring of
// io_uring: the event loop of Node.js 22 and newer opens some when it starts, system calls through
// them pass every filter, and the loop aborts when they are refused. Does nothing in a process
// without rings. The first `descriptors` descriptors, their contents, the arguments and the
// environment stay. Call it on the main thread. Returns why it could not; empty: there was nothing
// to do.
std::string restart_without_rings(int descriptors);

}  // namespace shredway
