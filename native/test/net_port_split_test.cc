#include "net/port_split.h"

#include <sys/socket.h>

#include "net_support.h"

namespace shredway::test {
namespace {

UdpSocket bound(bool is_ipv4) {
  SocketResult result = open_bound_socket(loopback(is_ipv4));
  CHECK_EQ(result.error, std::string());
  return std::move(result.socket);
}

void send_to(int fd, const Bytes& bytes, const Endpoint& to) {
  const Address address(to);
  const ssize_t sent = sendto(fd, bytes.data(), bytes.size(), 0, address.get(), address.bytes);
  CHECK_EQ(sent, static_cast<ssize_t>(bytes.size()));
}

TEST(port_split_selects_the_socket_by_the_first_bit) {
  for (const bool is_ipv4 : families()) {
    const UdpSocket first = bound(is_ipv4);
    const SocketResult second = split_port(first.fd());
    CHECK_EQ(second.error, std::string());
    const Endpoint address = local_endpoint(first.fd());
    CHECK_EQ(local_endpoint(second.socket.fd()).port, address.port);
    check_path_mtu_is_ignored(second.socket.fd(), is_ipv4);
    for (int round = 0; round < 8; round++) {
      const UdpSocket from = sender(is_ipv4);  // another source port
      for (uint32_t byte = 0; byte < 256; byte++)
        send_to(from.fd(), Bytes(1 + byte, static_cast<uint8_t>(byte)), address);
      send_to(from.fd(), Bytes(), address);
      CHECK_EQ(arrivals(first.fd(), 129).size(), 129u);
      CHECK_EQ(arrivals(second.socket.fd(), 128).size(), 128u);
    }
  }
}

TEST(port_split_keeps_the_port_for_its_two_sockets) {
  for (const bool is_ipv4 : families()) {
    const UdpSocket first = bound(is_ipv4);
    const SocketResult second = split_port(first.fd());
    CHECK_EQ(open_bound_socket(local_endpoint(first.fd())).error_number, EADDRINUSE);
  }
}

TEST(port_split_reports_errors) {
  const SocketResult refused = split_port(-1);
  CHECK(!refused.socket.valid());
  CHECK_EQ(refused.error_number, EBADF);
  CHECK(refused.error.find("SO_REUSEPORT for ") != std::string::npos);
}

}  // namespace
}  // namespace shredway::test
