#include "net/port_split.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace shredway {
namespace {

constexpr uint32_t kLongHeaderBit = 0x80;

SocketResult split_failed(const char* call, const Endpoint& endpoint) {
  const int error_number = errno;
  return {UdpSocket(),
          std::string(call) + " for " + to_string(endpoint) + ": " +
              std::generic_category().message(error_number),
          error_number};
}

bool share_port(int fd) { return set_socket_option(fd, SOL_SOCKET, SO_REUSEPORT, 1); }

// Returns the index of the socket in the group: 0 for the first one. A load beyond the datagram
// ends the program with 0.
bool attach_selection(int fd) {
  std::array<sock_filter, 4> program = {{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kLongHeaderBit),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 7),
      BPF_STMT(BPF_RET | BPF_A, 0),
  }};
  const sock_fprog attached = {static_cast<uint16_t>(program.size()), program.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &attached, sizeof attached) == 0;
}

}  // namespace

// The first socket was bound without SO_REUSEPORT, so the port was free. The kernel adds it to the
// group as number 0 when the second socket binds.
SocketResult split_port(int fd) {
  const Endpoint endpoint = local_endpoint(fd);
  const char* refused = nullptr;
  UdpSocket second = open_udp_socket(endpoint.is_ipv4(), refused);
  if (!second.valid()) return split_failed(refused, endpoint);
  if (!share_port(fd) || !share_port(second.fd())) return split_failed("SO_REUSEPORT", endpoint);
  sockaddr_storage address;
  const socklen_t bytes = to_sockaddr(endpoint, address);
  if (bind(second.fd(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
    return split_failed("bind", endpoint);
  if (!attach_selection(fd)) return split_failed("SO_ATTACH_REUSEPORT_CBPF", endpoint);
  return {std::move(second), ""};
}

}  // namespace shredway
