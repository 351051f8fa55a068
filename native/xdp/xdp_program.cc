#include "xdp/xdp_program.h"

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "xdp/xdp_socket.h"

namespace shredway {
namespace {

constexpr bpf_insn kPass[] = {
    {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS},
    {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
};
constexpr const char* kLicense = "Apache-2.0";

// All bytes zero: the kernel refuses unknown fields.
bpf_attr no_attributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

UdpSocket bpf(bpf_cmd command, bpf_attr& attributes) {
  return UdpSocket(static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes)));
}

}  // namespace

UdpSocket attach_pass_program(uint32_t interface, std::string& error) {
  bpf_attr load = no_attributes();
  load.prog_type = BPF_PROG_TYPE_XDP;
  load.insns = reinterpret_cast<uintptr_t>(kPass);
  load.insn_cnt = std::size(kPass);
  load.license = reinterpret_cast<uintptr_t>(kLicense);
  std::strncpy(load.prog_name, "shredway_pass", sizeof load.prog_name - 1);
  const UdpSocket program = bpf(BPF_PROG_LOAD, load);
  if (!program.valid()) {
    error = xdp_error("bpf(BPF_PROG_LOAD)", errno);
    return UdpSocket();
  }
  bpf_attr link = no_attributes();
  link.link_create.prog_fd = static_cast<uint32_t>(program.fd());
  link.link_create.target_ifindex = interface;
  link.link_create.attach_type = BPF_XDP;
  link.link_create.flags = XDP_FLAGS_DRV_MODE;
  UdpSocket attached = bpf(BPF_LINK_CREATE, link);
  if (!attached.valid()) error = xdp_error("bpf(BPF_LINK_CREATE)", errno);
  return attached;
}

}  // namespace shredway
