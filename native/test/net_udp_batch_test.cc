// Batched UDP over real loopback sockets: every datagram arrives once, byte for byte, in order;
// closed ports and impossible destinations do not affect others.
#include "net/udp_batch.h"

#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "net_support.h"

namespace shredway::test {
namespace {

uint64_t real_time_ns() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

// The kernel begins to stamp packets some time after a socket asked for it. Until then, a packet
// gets its time when it is read, so that a later packet may have an earlier time.
void wait_for_stamps(const UdpSocket& in, const UdpSocket& out, const Address& address) {
  SendCounts tally;
  SendBatch batch(out.fd(), true, tally);
  uint8_t byte = 0;
  iovec part{&byte, 1};
  for (int i = 0; i < 10'000; i++) {
    batch.add({&part, 1, 1}, address.get(), address.bytes, 0);
    batch.flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const uint64_t read_ns = real_time_ns();
    const std::vector<ReceivedDatagram> got = arrivals(in.fd(), 1);
    if (got.size() == 1 && got[0].received_ns < read_ns) return;
  }
  CHECK(false);
}

TEST(udp_batch_carries_thousands_in_order) {
  Random random{3};
  for (const bool is_ipv4 : families()) {
    const UdpSocket in = receiver(is_ipv4), out = sender(is_ipv4);
    const Address address(local_endpoint(in.fd()));
    wait_for_stamps(in, out, address);
    SendCounts tally;
    SendBatch batch(out.fd(), true, tally);
    uint64_t total = 0, latest_ns = 0;
    for (size_t round = 0; round < 100; round++) {
      std::vector<Bytes> payloads(1 + random.below(90));
      std::vector<iovec> parts;
      for (Bytes& payload : payloads) {
        payload = random_bytes(random, random.below(1233));
        parts.push_back({payload.data(), payload.size()});
      }
      const uint64_t before_ns = real_time_ns();
      for (iovec& part : parts)
        batch.add({&part, 1, static_cast<uint16_t>(part.iov_len)}, address.get(), address.bytes, 7);
      batch.flush();
      const std::vector<ReceivedDatagram> got = arrivals(in.fd(), payloads.size());
      CHECK_EQ(got.size(), payloads.size());
      for (size_t i = 0; i < std::min(got.size(), payloads.size()); i++) {
        CHECK(got[i].bytes == payloads[i]);
        CHECK_EQ(got[i].length, payloads[i].size());
        CHECK(got[i].from == local_endpoint(out.fd()));
        CHECK(got[i].received_ns >= before_ns && got[i].received_ns <= real_time_ns());
        CHECK(got[i].received_ns >= latest_ns);
        latest_ns = got[i].received_ns;
      }
      total += payloads.size();
    }
    CHECK_EQ(tally.sent_by_tag[7], total);
    CHECK_EQ(tally.failures(7), 0u);
    CHECK(total > 3000);
    CHECK(batch.system_calls() <= 200);
  }
}

// Sends groups of every size to two sockets, and expects single datagrams in order on both.
void check_groups(bool is_ipv4, bool gso) {
  Random random{4};
  const UdpSocket first = receiver(is_ipv4), second = receiver(is_ipv4), out = sender(is_ipv4);
  const Address addresses[2] = {Address(local_endpoint(first.fd())),
                                Address(local_endpoint(second.fd()))};
  SendCounts tally;
  SendBatch batch(out.fd(), gso, tally);
  uint64_t total = 0;
  // Beyond the maximum of one message, the group needs two.
  for (uint32_t count = 1; count <= kGsoSegmentsMax + 5; count++) {
    const uint16_t payload_bytes = count % 2 ? 1203 : 1228;
    std::vector<Bytes> payloads;
    std::vector<iovec> parts;
    for (uint32_t i = 0; i < count; i++) payloads.push_back(random_bytes(random, payload_bytes));
    for (Bytes& payload : payloads) parts.push_back({payload.data(), payload.size()});
    for (uint32_t tag = 0; tag < 2; tag++)
      batch.add({parts.data(), count, payload_bytes}, addresses[tag].get(), addresses[tag].bytes,
                tag);
    batch.flush();
    for (const int fd : {first.fd(), second.fd()}) {
      const std::vector<ReceivedDatagram> got = arrivals(fd, count);
      CHECK_EQ(got.size(), count);
      for (size_t i = 0; i < got.size(); i++) CHECK(got[i].bytes == payloads[i]);
    }
    total += count;
  }
  for (uint32_t tag = 0; tag < 2; tag++) {
    CHECK_EQ(tally.sent_by_tag[tag], total);
    CHECK_EQ(tally.failures(tag), 0u);
  }
  CHECK_EQ(batch.gso_fallbacks(), 0u);
}

TEST(udp_batch_groups_arrive_as_single_datagrams) {
  for (const bool is_ipv4 : families()) {
    check_groups(is_ipv4, false);
    const UdpSocket probe = sender(is_ipv4);
    if (!udp_gso_supported(probe.fd())) SKIP("this kernel does not segment UDP");
    check_groups(is_ipv4, true);
  }
}

TEST(udp_batch_gso_refused_by_the_kernel_is_sent_singly) {
  const UdpSocket in = receiver(true), out = sender(true);
  if (!udp_gso_supported(out.fd())) SKIP("this kernel does not segment UDP");
  // Without checksums Linux does not segment: EINVAL for messages with UDP_SEGMENT.
  const int on = 1;
  CHECK_EQ(setsockopt(out.fd(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
  const Address address(local_endpoint(in.fd()));
  Random random{5};
  std::vector<Bytes> payloads;
  std::vector<iovec> parts;
  for (int i = 0; i < 20; i++) payloads.push_back(random_bytes(random, 1203));
  for (Bytes& payload : payloads) parts.push_back({payload.data(), payload.size()});
  SendCounts tally;
  SendBatch batch(out.fd(), true, tally);
  batch.add({parts.data(), 1, 1203}, address.get(), address.bytes, 1);
  batch.add({parts.data() + 1, 18, 1203}, address.get(), address.bytes, 2);
  batch.add({parts.data() + 19, 1, 1203}, address.get(), address.bytes, 3);
  batch.flush();
  const std::vector<ReceivedDatagram> got = arrivals(in.fd(), 20);
  CHECK_EQ(got.size(), 20u);
  for (size_t i = 0; i < got.size(); i++) CHECK(got[i].bytes == payloads[i]);
  CHECK_EQ(batch.gso_fallbacks(), 1u);
  CHECK_EQ(tally.sent_by_tag[1] + tally.sent_by_tag[2] + tally.sent_by_tag[3], 20u);
  CHECK_EQ(tally.sent_by_tag[2], 18u);
}

TEST(udp_batch_longer_datagrams_show_their_true_length) {
  Random random{6};
  for (const bool is_ipv4 : families()) {
    const UdpSocket in = receiver(is_ipv4), out = sender(is_ipv4);
    const Address address(local_endpoint(in.fd()));
    const std::vector<size_t> lengths = {0, 1, 1232, 1279, 1280, 1281, 2000, 9000, 65'000, 0, 5};
    std::vector<Bytes> payloads;
    for (const size_t length : lengths) {
      payloads.push_back(random_bytes(random, length));
      CHECK_EQ(sendto(out.fd(), payloads.back().data(), length, 0, address.get(), address.bytes),
               static_cast<ssize_t>(length));
    }
    const std::vector<ReceivedDatagram> got = arrivals(in.fd(), lengths.size());
    CHECK_EQ(got.size(), lengths.size());
    for (size_t i = 0; i < got.size(); i++) {
      CHECK_EQ(got[i].length, lengths[i]);
      CHECK(std::equal(got[i].bytes.begin(), got[i].bytes.end(), payloads[i].begin()));
    }
  }
}

TEST(udp_batch_one_receive_batch_serves_both_families) {
  if (families().size() < 2) SKIP("no IPv6 loopback");
  ReceiveBatch batch;
  const UdpSocket in4 = receiver(true), in6 = receiver(false);
  const UdpSocket out4 = sender(true), out6 = sender(false);
  const Address to4(local_endpoint(in4.fd())), to6(local_endpoint(in6.fd()));
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 30; i++) {
      sendto(out4.fd(), "four", 4, 0, to4.get(), to4.bytes);
      sendto(out6.fd(), "sixsix", 6, 0, to6.get(), to6.bytes);
    }
    for (const bool is_ipv4 : {true, false}) {
      const Endpoint from = local_endpoint((is_ipv4 ? out4 : out6).fd());
      CHECK_EQ(batch.receive((is_ipv4 ? in4 : in6).fd()), 30u);
      for (size_t i = 0; i < batch.size(); i++) {
        const ReceivedPacket packet = batch.packet(i);
        CHECK_EQ(packet.length, is_ipv4 ? 4u : 6u);
        CHECK(packet.received_ns > 0);
        CHECK(endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(packet.sender)) == from);
      }
    }
  }
}

TEST(udp_batch_receive_reports_an_empty_socket) {
  ReceiveBatch batch;
  const UdpSocket in = receiver(true), out = sender(true);
  CHECK_EQ(batch.receive(in.fd()), 0u);
  CHECK_EQ(batch.last_errno(), EAGAIN);
  CHECK_EQ(batch.receive(-1), 0u);
  CHECK_EQ(batch.last_errno(), EBADF);
  const Address address(local_endpoint(in.fd()));
  for (int i = 0; i < 70; i++) sendto(out.fd(), "x", 1, 0, address.get(), address.bytes);
  CHECK_EQ(batch.receive(in.fd()), kReceiveBatchMax);
  CHECK_EQ(batch.last_errno(), 0);
  CHECK_EQ(batch.receive(in.fd()), 70 - kReceiveBatchMax);
  CHECK_EQ(batch.receive(in.fd()), 0u);
  CHECK_EQ(batch.size(), 0u);
}

TEST(udp_batch_buffers_begin_on_a_page) {
  ReceiveBatch batch;
  CHECK_EQ(reinterpret_cast<uintptr_t>(batch.packet(0).bytes) % 4096, 0u);
  CHECK_EQ(batch.packet(1).bytes - batch.packet(0).bytes, ptrdiff_t{kReceiveBufferBytes});
}

// ---- dead and impossible destinations -------------------------------------------------------

struct DeadPorts {
  static constexpr uint32_t kDestinations = 30;
  std::vector<UdpSocket> sockets;  // invalid for closed ports
  std::vector<Endpoint> endpoints;
  std::vector<Address> addresses;

  static bool is_dead(uint32_t tag) { return tag == 0 || tag == 13 || tag == 14 || tag == 29; }
  explicit DeadPorts(bool is_ipv4) {
    for (uint32_t tag = 0; tag < kDestinations; tag++) {
      sockets.push_back(receiver(is_ipv4));
      endpoints.push_back(local_endpoint(sockets.back().fd()));
      addresses.emplace_back(endpoints.back());
    }
    // Close them only now, so that no later socket gets a closed port.
    for (uint32_t tag = 0; tag < kDestinations; tag++)
      if (is_dead(tag)) sockets[tag] = UdpSocket();
  }
};

void check_dead_ports(bool is_ipv4, bool gso) {
  const DeadPorts ports(is_ipv4);
  const UdpSocket out = sender(is_ipv4);
  SendCounts tally;
  SendBatch batch(out.fd(), gso, tally);
  Random random{8};
  std::map<uint32_t, uint64_t> errors_by_tag;
  constexpr uint64_t kRounds = 100;
  uint64_t total = 0;
  for (uint64_t round = 0; round < kRounds; round++) {
    std::vector<Bytes> payloads;
    std::vector<iovec> parts;
    const auto count = static_cast<uint32_t>(1 + random.below(6));
    for (uint32_t i = 0; i < count; i++) payloads.push_back(random_bytes(random, 1203));
    for (Bytes& payload : payloads) parts.push_back({payload.data(), payload.size()});
    for (uint32_t tag = 0; tag < DeadPorts::kDestinations; tag++)
      batch.add({parts.data(), count, 1203}, ports.addresses[tag].get(), ports.addresses[tag].bytes,
                tag);
    batch.flush();
    total += count;
    for (uint32_t tag = 0; tag < DeadPorts::kDestinations; tag++) {
      if (DeadPorts::is_dead(tag)) continue;
      const std::vector<ReceivedDatagram> got = arrivals(ports.sockets[tag].fd(), count);
      CHECK_EQ(got.size(), count);
      for (size_t i = 0; i < got.size(); i++) CHECK(got[i].bytes == payloads[i]);
    }
    std::array<IcmpError, 64> errors;
    const size_t error_count = read_icmp_errors(out.fd(), errors.data(), errors.size());
    for (size_t i = 0; i < error_count; i++) {
      const auto found =
          std::find(ports.endpoints.begin(), ports.endpoints.end(), errors[i].destination);
      CHECK(found != ports.endpoints.end());
      CHECK_EQ(errors[i].error_number, ECONNREFUSED);
      errors_by_tag[static_cast<uint32_t>(found - ports.endpoints.begin())]++;
    }
  }
  uint64_t errors_reported = 0;
  for (uint32_t tag = 0; tag < DeadPorts::kDestinations; tag++) {
    CHECK_EQ(tally.sent_by_tag[tag], total);  // accepted, whether the port is open or closed
    CHECK_EQ(tally.failures(tag), 0u);
    if (!DeadPorts::is_dead(tag)) CHECK_EQ(errors_by_tag[tag], 0u);
    errors_reported += errors_by_tag[tag];
  }
  CHECK(errors_reported > 0);  // the kernel limits ICMP by address, so the number varies
  CHECK_EQ(batch.gso_fallbacks(), 0u);
}

TEST(udp_batch_closed_ports_do_not_affect_others) {
  for (const bool is_ipv4 : families())
    for (const bool gso : {false, true}) check_dead_ports(is_ipv4, gso);
}

TEST(udp_batch_impossible_destinations_fail_alone) {
  const UdpSocket in = receiver(true), out = sender(true);
  const Address good(local_endpoint(in.fd())), other_family(loopback(false, 9)),
      port_0(loopback(true, 0)), broadcast(ipv4(255, 255, 255, 255, 9));
  Bytes payload(100, 1), giant(65'535, 2);
  iovec part = {payload.data(), payload.size()}, giant_part = {giant.data(), giant.size()};
  const PayloadGroup group = {&part, 1, 100}, too_big = {&giant_part, 1, 65'535};
  SendCounts tally;
  SendBatch batch(out.fd(), true, tally);
  for (int round = 0; round < 10; round++) {
    batch.add(group, other_family.get(), other_family.bytes, 1);
    batch.add(group, good.get(), good.bytes, 0);
    batch.add(too_big, good.get(), good.bytes, 2);
    batch.add(group, port_0.get(), port_0.bytes, 3);
    batch.add(group, broadcast.get(), broadcast.bytes, 4);
    batch.add(group, good.get(), good.bytes, 0);
  }
  batch.flush();
  CHECK_EQ(arrivals(in.fd(), 20).size(), 20u);
  CHECK_EQ(tally.sent_by_tag[0], 20u);
  CHECK_EQ(tally.failures(0), 0u);
  CHECK_EQ(tally.failed_by_tag[1][SendFailure::invalid], 10u);
  CHECK_EQ(tally.failed_by_tag[2][SendFailure::too_big], 10u);
  CHECK_EQ(tally.failed_by_tag[3][SendFailure::invalid], 10u);
  CHECK_EQ(tally.failures(4), 10u);  // no route or no permission, depending on the machine
}

TEST(udp_batch_without_a_socket_everything_is_invalid) {
  const Address address(loopback(true, 9));
  Bytes payload(10, 1);
  iovec parts[2] = {{payload.data(), 10}, {payload.data(), 10}};
  SendCounts tally;
  SendBatch batch(-1, true, tally);
  for (int i = 0; i < 100; i++) batch.add({parts, 2, 10}, address.get(), address.bytes, 1);
  batch.flush();
  CHECK_EQ(tally.failed_by_tag[1][SendFailure::invalid], 200u);
  CHECK_EQ(tally.sent_by_tag[1], 0u);
}

}  // namespace
}  // namespace shredway::test
