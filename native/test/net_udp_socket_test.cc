#include "net/udp_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "net_support.h"

namespace shredway::test {
namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0 || errno != EBADF; }

TEST(udp_socket_closes_once_and_moves) {
  UdpSocket first = receiver(true);
  const int fd = first.fd();
  UdpSocket second = std::move(first);
  CHECK_EQ(second.fd(), fd);
  CHECK(is_open(fd));
  UdpSocket third = receiver(true);
  const int replaced = third.fd();
  third = std::move(second);
  CHECK_EQ(third.fd(), fd);
  CHECK(!is_open(replaced));
  third = UdpSocket();
  CHECK(!is_open(fd));
  CHECK(!third.valid());
}

TEST(udp_socket_neither_blocks_nor_leaks_to_children) {
  for (const bool is_ipv4 : families()) {
    const UdpSocket in = receiver(is_ipv4), out = sender(is_ipv4);
    for (const int fd : {in.fd(), out.fd()}) {
      CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
      CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
      CHECK(local_endpoint(fd).port != 0);
      CHECK_EQ(local_endpoint(fd).is_ipv4(), is_ipv4);
    }
  }
}

TEST(udp_socket_of_every_kind_ignores_icmp_about_the_path_mtu) {
  for (const bool is_ipv4 : families()) {
    const UdpSocket in = receiver(is_ipv4), shared = receiver(is_ipv4, true), out = sender(is_ipv4);
    const SocketResult bound = open_bound_socket(loopback(is_ipv4));
    CHECK_EQ(bound.error, std::string());
    for (const int fd : {in.fd(), shared.fd(), out.fd(), bound.socket.fd()})
      check_path_mtu_is_ignored(fd, is_ipv4);
    CHECK_EQ(connect_socket(out.fd(), local_endpoint(in.fd())), std::string());
    check_path_mtu_is_ignored(out.fd(), is_ipv4);
  }
}

// Node.js sets SO_REUSEADDR on a descriptor that it gets.
TEST(udp_socket_undoes_port_sharing) {
  for (const bool is_ipv4 : families()) {
    const SocketResult bound = open_bound_socket(loopback(is_ipv4));
    const int fd = bound.socket.fd(), on = 1;
    const Address occupied(local_endpoint(fd));
    const auto share = [&] {
      const char* refused = nullptr;
      const UdpSocket other = open_udp_socket(is_ipv4, refused);
      CHECK_EQ(setsockopt(other.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
      return bind(other.fd(), occupied.get(), occupied.bytes) == 0;
    };
    CHECK(!share());
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    CHECK(share());
    CHECK(refuse_port_sharing(fd));
    CHECK(!share());
  }
  CHECK(!refuse_port_sharing(-1));
}

TEST(udp_socket_that_only_sends_gets_no_datagrams) {
  for (const bool is_ipv4 : families()) {
    const SocketResult deaf = open_bound_socket(loopback(is_ipv4), false);
    CHECK_EQ(deaf.error, std::string());
    const SocketResult other = open_bound_socket(loopback(is_ipv4));
    for (const int fd : {deaf.socket.fd(), other.socket.fd()}) {
      const Address to(local_endpoint(fd));
      CHECK_EQ(sendto(other.socket.fd(), "x", 1, 0, to.get(), to.bytes), 1);
    }
    const auto arrived = [](int fd) {
      char byte = 0;
      return recv(fd, &byte, 1, MSG_DONTWAIT) == 1;
    };
    CHECK(arrived(other.socket.fd()));  // sent last
    CHECK(!arrived(deaf.socket.fd()));
    const Address back(local_endpoint(other.socket.fd()));
    CHECK_EQ(sendto(deaf.socket.fd(), "x", 1, 0, back.get(), back.bytes), 1);
    CHECK(arrived(other.socket.fd()));
  }
}

TEST(udp_socket_is_released_to_its_new_owner) {
  UdpSocket owner = receiver(true);
  const int fd = owner.release();
  CHECK(!owner.valid());
  owner = UdpSocket();
  CHECK(is_open(fd));
  owner = UdpSocket(fd);
}

TEST(udp_socket_shares_its_port_only_on_request) {
  for (const bool is_ipv4 : families()) {
    const UdpSocket alone = receiver(is_ipv4);
    const Endpoint occupied = local_endpoint(alone.fd());
    const SocketResult refused = open_receive_socket({occupied, 0, false, 0});
    CHECK(!refused.socket.valid());
    CHECK(refused.error.find("bind " + to_string(occupied)) != std::string::npos);
    CHECK(refused.error.find("Address already in use") != std::string::npos);
    const UdpSocket first = receiver(is_ipv4, true);
    const Endpoint shared = local_endpoint(first.fd());
    CHECK_EQ(open_receive_socket({shared, 0, true, 0}).error, std::string());
    CHECK(!open_receive_socket({shared, 0, false, 0}).error.empty());
  }
}

TEST(udp_socket_reports_an_address_of_another_machine) {
  const Endpoint foreign = ipv4(192, 0, 2, 77, 0);
  CHECK_EQ(open_bound_socket(foreign).error_number, EADDRNOTAVAIL);
  for (const std::string& error :
       {open_receive_socket({foreign, 0, false, 0}).error, open_send_socket({foreign, 0}).error,
        open_bound_socket(foreign).error}) {
    CHECK(error.find("192.0.2.77:0") != std::string::npos);
    CHECK(error.find("no interface of this machine has this address") != std::string::npos);
  }
}

TEST(udp_socket_ipv6_does_not_receive_ipv4) {
  if (families().size() < 2) SKIP("no IPv6 loopback");
  SocketResult ipv6 = open_receive_socket({Endpoint(), 0, false, 0});
  CHECK_EQ(ipv6.error, std::string());
  // The IPv4 side of the same port is still free.
  const uint16_t port = local_endpoint(ipv6.socket.fd()).port;
  CHECK_EQ(open_receive_socket({ipv4(0, 0, 0, 0, port), 0, false, 0}).error, std::string());
  CHECK(ipv6_supported());
}

TEST(udp_socket_prefers_busy_polling_if_it_may_and_was_asked) {
  for (const uint32_t busy_poll_us : {0u, 50u}) {
    const SocketResult opened =
        open_receive_socket({.address = any_endpoint(true), .busy_poll_us = busy_poll_us});
    CHECK_EQ(opened.error, std::string());
    int poll_us = -1, prefers = -1;
    socklen_t bytes = sizeof poll_us;
    CHECK_EQ(getsockopt(opened.socket.fd(), SOL_SOCKET, SO_BUSY_POLL, &poll_us, &bytes), 0);
    if (poll_us == 0 && busy_poll_us > 0) SKIP("CAP_NET_ADMIN is needed");
    CHECK_EQ(poll_us, static_cast<int>(busy_poll_us));
    CHECK_EQ(getsockopt(opened.socket.fd(), SOL_SOCKET, SO_PREFER_BUSY_POLL, &prefers, &bytes), 0);
    CHECK_EQ(prefers, busy_poll_us > 0 ? 1 : 0);
  }
}

TEST(udp_socket_buffers_follow_the_requested_size) {
  const SocketResult small = open_receive_socket({loopback(true), 1, false, 0});
  const SocketResult large = open_receive_socket({loopback(true), 1u << 20, false, 0});
  CHECK(receive_buffer_bytes(small.socket.fd()) > 0);
  CHECK(receive_buffer_bytes(small.socket.fd()) < receive_buffer_bytes(large.socket.fd()));
  const SocketResult out_small = open_send_socket({loopback(true), 1});
  const SocketResult out_large = open_send_socket({loopback(true), 1u << 20});
  CHECK(send_buffer_bytes(out_small.socket.fd()) < send_buffer_bytes(out_large.socket.fd()));
  // A requested size beyond the range of int is reduced, not refused.
  CHECK_EQ(open_receive_socket({loopback(true), 0xffffffff, false, 50}).error, std::string());
  CHECK_EQ(receive_buffer_bytes(-1), 0u);
}

TEST(udp_socket_counts_drops_of_the_kernel) {
  constexpr size_t kDatagrams = 2000;
  for (const bool is_ipv4 : families()) {
    const SocketResult in = open_receive_socket({loopback(is_ipv4), 1, false, 0});
    const UdpSocket out = sender(is_ipv4);
    const Address address(local_endpoint(in.socket.fd()));
    CHECK_EQ(receive_drops(in.socket.fd()), 0u);
    const Bytes payload(1228, 7);
    for (size_t i = 0; i < kDatagrams; i++)
      sendto(out.fd(), payload.data(), payload.size(), 0, address.get(), address.bytes);
    const size_t arrived = arrivals(in.socket.fd(), 1).size();
    CHECK(arrived < kDatagrams);
    CHECK_EQ(arrived + receive_drops(in.socket.fd()), kDatagrams);
  }
  CHECK_EQ(receive_drops(-1), 0u);
}

TEST(udp_socket_received_datagrams_do_not_displace_icmp_errors) {
  for (const bool is_ipv4 : families()) {
    const UdpSocket out = sender(is_ipv4), stranger = sender(is_ipv4);
    const Address own(local_endpoint(out.fd()));
    const Bytes payload(1228, 7);
    for (int i = 0; i < 2000; i++)
      sendto(stranger.fd(), payload.data(), payload.size(), 0, own.get(), own.bytes);
    CHECK_EQ(arrivals(out.fd(), 0).size(), 0u);
    Endpoint dead;
    {
      const UdpSocket closed_soon = receiver(is_ipv4);
      dead = local_endpoint(closed_soon.fd());
    }
    const Address address(dead);
    sendto(out.fd(), payload.data(), payload.size(), 0, address.get(), address.bytes);
    pollfd entry = {out.fd(), 0, 0};
    CHECK_EQ(poll(&entry, 1, 30'000), 1);
    IcmpError error;
    CHECK_EQ(read_icmp_errors(out.fd(), &error, 1), 1u);
    CHECK(error.destination == dead);
    CHECK_EQ(error.error_number, ECONNREFUSED);
  }
}

TEST(udp_socket_connects_or_reports_the_reason) {
  const UdpSocket in = receiver(true), out = sender(true);
  CHECK_EQ(connect_socket(out.fd(), local_endpoint(in.fd())), std::string());
  CHECK_EQ(send(out.fd(), "x", 1, 0), 1);
  CHECK_EQ(arrivals(in.fd(), 1).size(), 1u);
  CHECK(connect_socket(-1, loopback(true, 9)).find("connect 127.0.0.1:9") != std::string::npos);
}

TEST(udp_socket_detects_gso_support) {
  const UdpSocket out = sender(true);
  if (!udp_gso_supported(out.fd())) SKIP("this kernel does not segment UDP");
  CHECK(!udp_gso_supported(-1));
}

}  // namespace
}  // namespace shredway::test
