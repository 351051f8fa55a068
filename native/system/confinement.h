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
// Returns the steps that the system refused, with their errors; empty if it refused nothing.
std::string confine_process(pid_t parent, uint64_t memory_bytes);

}  // namespace shredway
