#include "xdp/xdp_program.h"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "xdp/bpf_call.h"
#include "xdp/xdp_receive_code.h"
#include "xdp/xdp_socket.h"

namespace shredway {
namespace {

constexpr bpf_insn kPass[] = {
    {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS},
    {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
};
constexpr const char* kLicense = "Apache-2.0";

UdpSocket load_program(std::span<const bpf_insn> code, const char* name, std::string& error) {
  bpf_attr load = no_bpf_attributes();
  load.prog_type = BPF_PROG_TYPE_XDP;
  load.insns = reinterpret_cast<uintptr_t>(code.data());
  load.insn_cnt = static_cast<uint32_t>(code.size());
  load.license = reinterpret_cast<uintptr_t>(kLicense);
  std::strncpy(load.prog_name, name, sizeof load.prog_name - 1);
  UdpSocket program(bpf_call(BPF_PROG_LOAD, load));
  if (!program.valid()) error = xdp_error("bpf(BPF_PROG_LOAD)", errno);
  return program;
}

UdpSocket create_map(bpf_map_type type, uint32_t key_bytes, uint32_t entries, std::string& error) {
  bpf_attr create = no_bpf_attributes();
  create.map_type = type;
  create.key_size = key_bytes;
  create.value_size = sizeof(uint32_t);
  create.max_entries = entries;
  UdpSocket map(bpf_call(BPF_MAP_CREATE, create));
  if (!map.valid()) error = xdp_error("bpf(BPF_MAP_CREATE)", errno);
  return map;
}

const char* remedy_of_attaching(int error_number) {
  switch (error_number) {
    case EBUSY:
    case EEXIST:
      return "; the interface has another XDP program: ip link shows it, and "
             "ip link set dev NAME xdp off removes it";
    case EOPNOTSUPP:
      return "; the driver of the interface runs no XDP programs";
    case EINVAL:
    case ERANGE:
    case ENOSPC:
      return "; for XDP, most drivers need an MTU of at most 3498 bytes, LRO off, and a queue for "
             "each queue of the other end of a veth";
    default:
      return "";
  }
}

// A process that was killed has its program for some milliseconds more.
UdpSocket attach_program(int program_fd, uint32_t interface, int tries_max, std::string& error) {
  constexpr timespec kPause = {0, 20'000'000};
  for (int tries = 1;; tries++) {
    bpf_attr link = no_bpf_attributes();
    link.link_create.prog_fd = static_cast<uint32_t>(program_fd);
    link.link_create.target_ifindex = interface;
    link.link_create.attach_type = BPF_XDP;
    link.link_create.flags = XDP_FLAGS_DRV_MODE;
    UdpSocket attached(bpf_call(BPF_LINK_CREATE, link));
    if (!attached.valid() && errno == EBUSY && tries < tries_max) {
      nanosleep(&kPause, nullptr);
      continue;
    }
    if (!attached.valid())
      error = xdp_error("bpf(BPF_LINK_CREATE)", errno) + remedy_of_attaching(errno);
    return attached;
  }
}

}  // namespace

UdpSocket attach_pass_program(uint32_t interface, std::string& error) {
  const UdpSocket program = load_program(kPass, "shredway_pass", error);
  return program.valid() ? attach_program(program.fd(), interface, 1, error) : UdpSocket();
}

// ---- receiving ------------------------------------------------------------------------------

std::string XdpReceiveProgram::load(const XdpReceiveOptions& options) {
  std::string error;
  workers_ = options.workers;
  sockets_map_ =
      create_map(BPF_MAP_TYPE_XSKMAP, sizeof(uint32_t), options.queues * options.workers, error);
  if (!error.empty()) return error;
  endpoints_map_ = create_map(BPF_MAP_TYPE_HASH, sizeof(XdpEndpointKey), kEndpointsMax, error);
  if (!error.empty()) return error;
  const auto code =
      xdp_receive_code({options.mac, endpoints_map_.fd(), sockets_map_.fd(), options.workers});
  program_ = load_program(code, "shredway_recv", error);
  return error;
}

std::unique_ptr<XdpReceiveProgram> XdpReceiveProgram::attach(const XdpReceiveOptions& options,
                                                             std::string& error) {
  constexpr int kTriesMax = 50;
  std::unique_ptr<XdpReceiveProgram> program(new XdpReceiveProgram);
  error = program->load(options);
  if (error.empty())
    program->link_ = attach_program(program->program_.fd(), options.interface, kTriesMax, error);
  return error.empty() ? std::move(program) : nullptr;
}

std::string XdpReceiveProgram::try_out() { return XdpReceiveProgram().load({}); }

std::string XdpReceiveProgram::set_socket(uint32_t queue, uint32_t worker, int fd) {
  const uint32_t row = queue * workers_ + worker;
  const auto value = static_cast<uint32_t>(fd);
  bpf_attr update = no_bpf_attributes();
  update.map_fd = static_cast<uint32_t>(sockets_map_.fd());
  update.key = reinterpret_cast<uintptr_t>(&row);
  update.value = reinterpret_cast<uintptr_t>(&value);
  if (bpf_call(BPF_MAP_UPDATE_ELEM, update) == 0) return "";
  return xdp_error("bpf(BPF_MAP_UPDATE_ELEM) for queue " + std::to_string(queue), errno);
}

std::string XdpReceiveProgram::change(const Endpoint& endpoint, bool add) {
  const XdpEndpointKey key = {endpoint.address, htons(endpoint.port)};
  const uint32_t value = 1;
  bpf_attr update = no_bpf_attributes();
  update.map_fd = static_cast<uint32_t>(endpoints_map_.fd());
  update.key = reinterpret_cast<uintptr_t>(&key);
  if (add) update.value = reinterpret_cast<uintptr_t>(&value);
  if (bpf_call(add ? BPF_MAP_UPDATE_ELEM : BPF_MAP_DELETE_ELEM, update) == 0) return "";
  if (!add && errno == ENOENT) return "";
  const char* call = add ? "bpf(BPF_MAP_UPDATE_ELEM) for " : "bpf(BPF_MAP_DELETE_ELEM) for ";
  return xdp_error(call + to_string(endpoint), errno);
}

std::string XdpReceiveProgram::set_endpoints(const std::vector<Endpoint>& endpoints) {
  const auto contains = [](const std::vector<Endpoint>& list, const Endpoint& one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  };
  std::string error;
  std::vector<Endpoint> now;
  for (const Endpoint& one : endpoints_) {
    std::string failed = contains(endpoints, one) ? "" : change(one, false);
    if (contains(endpoints, one) || !failed.empty()) now.push_back(one);
    if (error.empty()) error = std::move(failed);
  }
  for (const Endpoint& one : endpoints) {
    if (contains(now, one)) continue;
    std::string failed = change(one, true);
    if (failed.empty()) now.push_back(one);
    else if (error.empty()) error = std::move(failed);
  }
  endpoints_ = std::move(now);
  return error;
}

bool XdpReceiveProgram::is_attached() const {
  bpf_link_info info;
  std::memset(&info, 0, sizeof info);
  bpf_attr ask = no_bpf_attributes();
  ask.info.bpf_fd = static_cast<uint32_t>(link_.fd());
  ask.info.info_len = sizeof info;
  ask.info.info = reinterpret_cast<uintptr_t>(&info);
  // Kernels before 5.19 refuse the question without privileges.
  return bpf_call(BPF_OBJ_GET_INFO_BY_FD, ask) != 0 || info.xdp.ifindex != 0;
}

}  // namespace shredway
