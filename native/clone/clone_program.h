// Clone program: the BPF program at the egress hook of the trigger interface, as instructions.
//
// The clone plane loads it once; the kernel runs it inside each trigger's send call. It accepts
// packets only from the socket of the job and drops every other packet that leaves by the
// interface.
#pragma once

#include <linux/bpf.h>

#include <vector>

namespace shredway {

// Uses two array maps by their descriptors: CloneTargetRow and CloneJobRow (clone_plane.h).
std::vector<bpf_insn> clone_program(int targets_fd, int jobs_fd);

}  // namespace shredway
