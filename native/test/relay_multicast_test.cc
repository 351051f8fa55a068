// Multicast groups over a veth cable: membership, identity by group, steering, heartbeats, and an
// interface that goes away and returns.
#include <net/if.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "loopback_relay.h"
#include "net/interface_view.h"
#include "net/steering.h"
#include "route_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

constexpr uint16_t kPort = 7733;
const char* const kGroups[] = {"233.84.178.1", "233.84.178.12"};
const char* const kIpv6Group = "ff15::7733";

// Sends to groups from the other end of the cable; a publisher has an address of its own.
class Publisher {
 public:
  Publisher(const Lab& lab, const std::string& address) {
    lab.in_theirs([&] {
      SocketResult opened = open_bound_socket({address_of(address), 0});
      CHECK_EQ(opened.error, std::string());
      socket_ = std::move(opened.socket);
      const int index = static_cast<int>(if_nametoindex("cable"));
      const bool ipv4 = Endpoint{address_of(address), 0}.is_ipv4();
      const ip_mreqn by{{}, {}, index};
      CHECK_EQ(
          ipv4 ? setsockopt(socket_.fd(), IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by)
               : setsockopt(socket_.fd(), IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index),
          0);
    });
  }
  void send(const std::string& to, const Bytes& packet, uint16_t port = kPort) const {
    sockaddr_storage address{};
    const socklen_t length = to_sockaddr({address_of(to), port}, address);
    CHECK_EQ(sendto(socket_.fd(), packet.data(), packet.size(), 0,
                    reinterpret_cast<const sockaddr*>(&address), length),
             static_cast<ssize_t>(packet.size()));
  }

 private:
  UdpSocket socket_;
};

// A source table with one source per group: 0 and 1 for the IPv4 groups, 2 for the IPv6 group.
Bytes group_table() {
  Bytes bytes = source_table({{kGroups[0], 32, 0, 0, kPort, true}, {kGroups[1], 32, 1, 1, kPort}});
  const uint32_t count = 3;
  std::memcpy(bytes.data() + 4, &count, sizeof count);
  append(bytes, uint16_t{2});
  append(bytes, uint8_t{1});
  append(bytes, uint8_t{128});
  append(bytes, kPort);
  append(bytes, uint16_t{0});
  const AddressBytes group = address_of(kIpv6Group);
  bytes.insert(bytes.end(), group.begin(), group.end());
  return bytes;
}

struct GroupRelay {
  std::unique_ptr<Relay> relay;
  Peer destination;
  explicit GroupRelay(uint32_t workers = 1, bool ipv6 = true, bool receive_filter = true) {
    RelayOptions options;
    options.receive_filter = receive_filter;
    if (ipv6) options.multicast.push_back({any_endpoint(false).address, kPort});
    options.multicast.push_back({any_endpoint(true).address, kPort});
    options.workers = workers;
    options.worker = LoopbackRelay::default_worker();
    relay = open_relay(options);
    if (!relay) return;
    publish(&Relay::publish_sources, group_table());
    publish(&Relay::publish_fanout, fanout_table({{destination.endpoint(), 1, 0}}));
    publish(&Relay::publish_leaders, leader_table(leader_key(1), kSlot - 100, 10'000));
  }
  void publish(std::string (Relay::*part)(const uint8_t*, size_t), const Bytes& bytes) const {
    publish_to(*relay, part, bytes);
  }
  std::string join(const std::string& group, const InterfaceView& view) const {
    return relay->join(kPort, {address_of(group), view.index, view.addresses.front()});
  }
  std::string leave(const std::string& group, uint32_t interface) const {
    return relay->leave(kPort, {address_of(group), interface});
  }
  // Waits, bounded, until `decided` packets have their verdicts.
  VerdictCounts counts(uint64_t decided) const {
    const SnapshotLayout layout = relay->layout(3, 1);
    std::vector<uint64_t> words(layout.words);
    VerdictCounts out;
    CHECK(eventually([&] {
      relay->snapshot(layout, words.data());
      out = verdict_counts(layout, words, 3);
      return sum_of(out) >= decided;
    }));
    return out;
  }
  // Received packets by worker.
  std::vector<uint64_t> received_by_worker() const {
    const SnapshotLayout layout = relay->layout(3, 1);
    std::vector<uint64_t> words(layout.words);
    relay->snapshot(layout, words.data());
    std::vector<uint64_t> out;
    for (size_t worker = 0; worker < relay->worker_count(); worker++)
      out.push_back(words[layout.worker_begin + worker * kWorkerCounterCount +
                          size_t(WorkerCounter::received)]);
    return out;
  }
};

InterfaceView view_of(const std::string& name) {
  std::string error;
  InterfaceView view = read_interface(name, error);
  CHECK_EQ(error, std::string());
  return view;
}

// A cable of MTU 1476 with two publishers at the other end.
void lay_cable(const Lab& lab, bool ipv6 = true) {
  lab.cable("cable", 1);
  lab.ip(
      "link set lo up\nlink set cable mtu 1476\naddr add 169.254.2.113/31 dev cable\n"
      "route add default via 169.254.2.112 dev cable\n");
  lab.ip_theirs(
      "link set lo up\nlink set cable mtu 1476\naddr add 169.254.2.112/31 dev cable\n"
      "addr replace 148.51.1.1/32 dev lo\naddr replace 148.51.1.2/32 dev lo\n");
  if (!ipv6) return;
  lab.ip("addr add fd00:1::1/64 dev cable nodad\n");
  lab.ip_theirs("addr add fd00:1::2/64 dev cable nodad\n");
}

void in_lab(const std::function<void(Lab&)>& body) {
  if (!Lab::run(body)) skip_test(kNeedsNamespace);
}

// The same shred with another retransmitter: only resigned shreds have such a signature, so the
// tail of another datagram stands for it.
Bytes with_tail(Bytes packet, uint8_t tail) {
  packet.push_back(tail);
  return packet;
}

const Bytes kHeartbeat = {0x44, 0x5a, 0x00, 0x01};

}  // namespace

TEST(interface_view_reads_addresses_and_groups) {
  in_lab([](Lab& lab) {
    CHECK_EQ(view_of("doublezero1").index, 0u);
    lay_cable(lab);
    lab.ip(
        "route add 233.84.178.12/32 via 169.254.2.112 dev cable proto static\n"
        "route add 233.84.178.1 via 169.254.2.112 dev cable proto static\n"
        "route add 233.84.179.0/24 via 169.254.2.112 dev cable\n"
        "route add 192.0.2.7/32 via 169.254.2.112 dev cable\n"
        "route add 233.84.178.99/32 dev lo\n"
        "route add ff15::7733/128 dev cable\n"
        "route add ff16::/16 dev cable\n");
    const InterfaceView view = view_of("cable");
    CHECK_EQ(view.index, lab.interface("cable"));
    CHECK(view.up);
    CHECK(view.addresses.front() == address_of("169.254.2.113"));
    CHECK(std::count(view.addresses.begin(), view.addresses.end(), address_of("fd00:1::1")) == 1);
    const std::vector<AddressBytes> expected = {address_of(kGroups[0]), address_of(kGroups[1]),
                                                address_of(kIpv6Group)};
    CHECK(view.groups == expected);
    lab.ip("link set cable down\n");
    CHECK(!view_of("cable").up);
  });
}

TEST(multicast_source_is_told_by_its_group) {
  in_lab([](Lab& lab) {
    lay_cable(lab);
    GroupRelay net;
    const InterfaceView view = view_of("cable");
    for (const std::string group : {kGroups[0], kGroups[1], kIpv6Group})
      CHECK_EQ(net.join(group, view), std::string());
    CHECK_EQ(net.join(kGroups[0], view), std::string());  // it is a member already
    const auto slot = make_slot({.slot = kSlot, .fec_sets = 2});
    const Publisher one(lab, "148.51.1.1"), two(lab, "148.51.1.2"), three(lab, "fd00:1::2");
    // Many senders in each group, and the same shred in several groups.
    for (size_t i = 0; i < slot.packets.size(); i++)
      (i % 2 ? one : two).send(kGroups[0], with_tail(slot.packets[i], 1));
    net.counts(128);
    CHECK(net.destination.receive(0).empty());  // the first group is for own use
    for (size_t i = 0; i < slot.packets.size(); i++)
      (i % 3 ? one : two).send(kGroups[1], with_tail(slot.packets[i], 2));
    net.counts(256);
    for (const Bytes& packet : slot.packets) three.send(kIpv6Group, packet);
    one.send(kGroups[0], kHeartbeat);
    two.send(kGroups[1], kHeartbeat);
    const VerdictCounts expected = {{{0, "own_use"}, 128},
                                    {{1, "first_forwardable"}, 128},
                                    {{2, "duplicate"}, 128},
                                    {{0, "heartbeat"}, 1},
                                    {{1, "heartbeat"}, 1}};
    CHECK(net.counts(3 * 128 + 2) == expected);
    CHECK_EQ(net.destination.receive(128).size(), 128u);
  });
}

TEST(multicast_socket_receives_joined_groups_only) {
  in_lab([](Lab& lab) {
    lay_cable(lab);
    GroupRelay net(1, false);
    const InterfaceView view = view_of("cable");
    CHECK_EQ(net.join(kGroups[0], view), std::string());
    // Another program of the machine has joined another group.
    const UdpSocket other =
        open_receive_socket(
            {.address = ipv4_endpoint("0.0.0.0", 9999), .buffer_bytes = 0, .share_port = false})
            .socket;
    CHECK_EQ(join_group(other.fd(), {address_of(kGroups[1]), view.index, view.addresses.front()}),
             std::string());
    const Publisher publisher(lab, "148.51.1.1");
    const auto slot = make_slot({.slot = kSlot});
    for (const Bytes& packet : slot.packets) publisher.send(kGroups[1], packet);
    for (const Bytes& packet : slot.packets) publisher.send("169.254.2.113", packet);
    publisher.send(kGroups[0], Bytes(1203, 0xff));  // no variant of a shred
    publisher.send(kGroups[0], Bytes(100, 0x44));
    for (const Bytes& packet : slot.packets) publisher.send(kGroups[0], packet);
    const VerdictCounts expected = {{{0, "own_use"}, 64}};
    CHECK(net.counts(64) == expected);
  });
}

TEST(multicast_heartbeat_is_shorter_than_a_shred) {
  in_lab([](Lab& lab) {
    lay_cable(lab, false);
    GroupRelay net(1, false);
    CHECK_EQ(net.join(kGroups[0], view_of("cable")), std::string());
    // A code shred without its last bytes, whose signature begins like a heartbeat.
    Bytes packet = make_slot({.slot = kSlot}).packets.back();
    CHECK_EQ(packet.size(), kCodeShredBytes);
    packet.resize(kDataShredBytes);
    std::copy(kHeartbeat.begin(), kHeartbeat.end(), packet.begin());
    const Publisher publisher(lab, "148.51.1.1");
    publisher.send(kGroups[0], packet);
    publisher.send(kGroups[0], kHeartbeat);
    const VerdictCounts expected = {{{0, "too_short"}, 1}, {{0, "heartbeat"}, 1}};
    CHECK(net.counts(2) == expected);
  });
}

TEST(multicast_gives_each_fec_set_to_one_worker) {
  in_lab([](Lab& lab) {
    lay_cable(lab);
    constexpr uint32_t kWorkers = 2, kSets = 20;
    GroupRelay net(kWorkers);
    const InterfaceView view = view_of("cable");
    for (const std::string group : {kGroups[0], kGroups[1], kIpv6Group})
      CHECK_EQ(net.join(group, view), std::string());
    const auto slot = make_slot({.slot = kSlot, .fec_sets = kSets});
    std::vector<uint64_t> expected(kWorkers);
    for (uint32_t set = 0; set < kSets; set++)
      expected[steered_worker(kSlot, set * 32, kWorkers)] += 3 * 64;
    const Publisher ipv4(lab, "148.51.1.1"), ipv6(lab, "fd00:1::2");
    for (size_t i = 0; i < slot.packets.size(); i++) {
      ipv4.send(kGroups[0], slot.packets[i]);
      ipv4.send(kGroups[1], slot.packets[i]);
      ipv6.send(kIpv6Group, slot.packets[i]);
      if (i % 32 == 31) net.counts(3 * (i + 1));
    }
    ipv4.send(kGroups[0], kHeartbeat);
    expected[0]++;
    net.counts(3 * 64 * kSets + 1);
    CHECK(net.received_by_worker() == expected);
    CHECK_EQ(net.destination.receive(64 * kSets).size(), 64u * kSets);
  });
}

// Without the kernel program, datagrams to other addresses come in.
TEST(multicast_socket_takes_no_sender_for_a_group) {
  in_lab([](Lab& lab) {
    lay_cable(lab, false);
    GroupRelay net(1, false, false);
    net.publish(&Relay::publish_sources, source_table({{"169.254.2.113", 32, 0, 0, kPort}}));
    const Publisher publisher(lab, "148.51.1.1");
    for (const Bytes& packet : make_slot({.slot = kSlot}).packets)
      publisher.send("169.254.2.113", packet);
    const VerdictCounts expected = {{{3, "unknown_source"}, 64}};
    CHECK(net.counts(64) == expected);
  });
}

TEST(multicast_continues_after_the_interface_or_the_group_returns) {
  in_lab([](Lab& lab) {
    lay_cable(lab, false);
    GroupRelay net(2);
    InterfaceView view = view_of("cable");
    CHECK_EQ(net.join(kGroups[1], view), std::string());
    uint64_t decided = 0;
    const auto arrives = [&](uint64_t number) {
      const Publisher publisher(lab, "148.51.1.1");
      const auto slot = make_slot({.slot = kSlot + number});
      for (const Bytes& packet : slot.packets) publisher.send(kGroups[1], packet);
      decided += 64;
      net.counts(decided);
    };
    arrives(0);
    lab.ip("link set cable down\nlink set cable up\n");
    lab.ip("addr replace 169.254.2.113/31 dev cable\nroute replace default via 169.254.2.112\n");
    CHECK_EQ(net.leave(kGroups[1], view.index), std::string());
    CHECK_EQ(net.join(kGroups[1], view_of("cable")), std::string());
    arrives(1);
    // A tunnel that is built again has another index. The membership of the old one remains in the
    // socket, so the old one is left first.
    lab.ip("link del cable\n");
    CHECK_EQ(view_of("cable").index, 0u);
    lab.cable("bulk", 2);  // takes the next index
    lay_cable(lab, false);
    const InterfaceView again = view_of("cable");
    CHECK(again.index != view.index);
    CHECK_EQ(net.leave(kGroups[1], view.index), std::string());
    CHECK_EQ(net.leave(kGroups[1], view.index), std::string());  // no member any more
    CHECK_EQ(net.join(kGroups[1], again), std::string());
    arrives(2);
    CHECK(net.join(kGroups[1], view).find("cannot join 233.84.178.12") == 0);  // the old interface
    CHECK(net.relay->join(1234, {address_of(kGroups[1]), again.index, again.addresses.front()})
              .find("no multicast socket") == 0);
  });
}

TEST(multicast_destination_of_is_absent_without_the_option) {
  const Peer peer;
  peer.send(peer.endpoint(), kHeartbeat);
  Peer other;
  peer.send(other.endpoint(), kHeartbeat);
  CHECK_EQ(other.receive(1).size(), 1u);
  ReceivedPacket packet{};
  std::array<uint8_t, 16> out{};
  CHECK(!destination_of(packet, out));
}
