// Clone program: the BPF program at the egress hook of the trigger interface, as instructions.
//
// Loaded by clone_plane once, run by the kernel inside each trigger's send call. It believes nobody
// but the socket that a job names: every other packet that leaves by the interface is thrown away.
#pragma once

#include <linux/bpf.h>

#include <vector>

namespace shredway {

// Reads rows of two array maps, named by their descriptors: CloneTargetRow and CloneJobRow
// (clone_plane.h).
std::vector<bpf_insn> clone_program(int targets_fd, int jobs_fd);

}  // namespace shredway
