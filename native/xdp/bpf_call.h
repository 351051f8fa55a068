// BPF call: the bpf() system call, which the C library does not wrap.
#pragma once

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace shredway {

// All bytes zero: the kernel refuses unknown fields.
inline bpf_attr no_bpf_attributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

// Returns a descriptor or 0, or -1 with errno set.
inline int bpf_call(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

}  // namespace shredway
