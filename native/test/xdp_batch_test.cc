// XDP batch over a real device in copy mode: the same frames as from a socket, each once, and a
// named result for each that could not leave.
#include "xdp/xdp_batch.h"

#include <atomic>

#include "frame_receiver.h"
#include "xdp_support.h"

namespace shredway::test {
namespace {

TEST(xdp_batch_sends_the_frames_that_a_socket_sends) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxa0", 21);
    cable.set_offload(false, false);  // frames look as on a wire
    lab.ip(
        "neigh replace 10.21.0.2 lladdr 02:00:00:00:01:15 dev shxa0 nud permanent\n"
        "neigh replace fd00:21::2 lladdr 02:00:00:00:01:15 dev shxa0 nud permanent\n"
        "route add 10.77.0.0/16 via 10.21.0.2\n"
        "route add fd77::/64 via fd00:21::2\n");
    const auto plane = open_xdp_plane({"shxa0"});
    if (!plane) return;
    Random random{42};
    for (const bool is_ipv4 : {true, false}) {
      CloneHeader header = xdp_test_header();
      SocketResult sender = open_send_socket(
          {is_ipv4 ? any_endpoint(true) : Endpoint{}, 1u << 20, header.ttl, header.dscp});
      CHECK_EQ(sender.error, std::string());
      const int off = 0;
      // Flow labels are for routers that do not read ports; frames have none.
      constexpr int kAutoFlowLabel = 70;  // IPV6_AUTOFLOWLABEL
      if (!is_ipv4)
        CHECK_EQ(setsockopt(sender.socket.fd(), IPPROTO_IPV6, kAutoFlowLabel, &off, sizeof off), 0);
      (is_ipv4 ? header.source_port_ipv4 : header.source_port_ipv6) =
          local_endpoint(sender.socket.fd()).port;
      constexpr uint16_t kPort = 9100;
      const std::vector<CloneTarget> list = cable.targets(is_ipv4, 3, kPort);
      const CloneLists lists({&list, 1}, header, {true, true});
      CloneCounts tally;
      XdpBatch batch(plane->senders(0), tally);
      batch.use_lists(lists);
      SendCounts socket_tally;
      SendBatch by_socket(sender.socket.fd(), true, socket_tally);
      FrameReceiver frames(lab, cable);
      for (uint16_t bytes = 1; bytes <= 1232; bytes++) {
        Burst burst(random, 1 + bytes % 3, bytes);
        const size_t count = list.size() * burst.parts.size();
        batch.add(0, burst.group(), bytes, false);
        batch.flush();
        const std::vector<Bytes> written = frames.read(count, kPort);
        for (const CloneTarget& target : list) {
          const Address to(target.destination);
          by_socket.add(burst.group(), to.get(), to.bytes, 1);
          by_socket.flush();
        }
        const std::vector<Bytes> sent = frames.read(count, kPort);
        CHECK_EQ(written.size(), count);
        CHECK(std::multiset<Bytes>(written.begin(), written.end()) ==
              std::multiset<Bytes>(sent.begin(), sent.end()));
      }
      CHECK(tally.not_executed.empty());
      CHECK(tally.refused.empty());
    }
  });
}

// More frames than the ring holds; lists of both families and two interfaces in one flush.
TEST(xdp_batch_reports_every_frame_once) {
  in_clone_lab([](Lab& lab) {
    const CloneCable first(lab, "shxb0", 22), second(lab, "shxb1", 23);
    const auto plane = open_xdp_plane({"shxb0", "shxb1"});
    if (!plane) return;
    CloneReceiver by_ipv4(lab, true), by_ipv6(lab, false);
    auto ipv4_targets = first.targets(true, 200, by_ipv4.port());
    for (const CloneTarget& target : second.targets(true, 100, by_ipv4.port(), 200))
      ipv4_targets.push_back(target);
    XdpSends sends(*plane, {ipv4_targets, {}, second.targets(false, 50, by_ipv6.port(), 300)});
    Random random{43};
    Burst data(random, 32, 1203), code(random, 2, 1228);
    sends.batch.add(0, data.group(), 299, false);
    sends.batch.add(1, data.group(), 7, false);
    sends.batch.add(2, code.group(), ~0u, true);
    sends.batch.flush();
    std::map<Endpoint, std::vector<Bytes>, bool (*)(const Endpoint&, const Endpoint&)> got(
        [](const Endpoint& a, const Endpoint& b) { return a.address < b.address; });
    for (CloneReceiver* receiver : {&by_ipv4, &by_ipv6})
      for (CloneArrival& arrival : receiver->read(receiver == &by_ipv4 ? 9600 : 100)) {
        CHECK_EQ(arrival.ttl, 37);
        CHECK_EQ(arrival.traffic_class, 46 << 2);
        got[arrival.to].push_back(std::move(arrival.bytes));
      }
    CHECK_EQ(got.size(), 350u);
    for (const auto& [to, payloads] : got)
      CHECK(payloads == (to.is_ipv4() ? data.payloads : code.payloads));
    sends.batch.settle();
    for (uint32_t tag = 0; tag < 350; tag++) {
      CHECK_EQ(sends.counts.sent[tag], tag < 300 ? 32u : 0u);
      CHECK_EQ(sends.counts.recovered[tag], tag < 300 ? 0u : 2u);
    }
    CHECK(sends.counts.refused.empty());
    CHECK(sends.counts.not_executed.empty());
  });
}

// ---- what the kernel refuses ----------------------------------------------------------------

std::atomic<int> refusal{0};  // error number of every call; 0: the kernel decides

ssize_t refusing_send(int fd, const void* bytes, size_t count, int flags) {
  errno = refusal;
  return refusal ? -1 : ::send(fd, bytes, count, flags);
}

SocketCalls refusing_calls() {
  SocketCalls calls = system_socket_calls();
  calls.send = &refusing_send;
  return calls;
}

TEST(xdp_batch_counts_what_a_full_ring_cannot_take) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxc0", 24);
    const auto plane = open_xdp_plane({"shxc0"});
    if (!plane) return;
    CloneReceiver receiver(lab, true);
    const SocketCalls calls = refusing_calls();
    XdpSends sends(*plane, {cable.targets(true, 2, receiver.port())}, calls);
    Random random{44};
    Burst burst(random, 64, 100);
    refusal = EAGAIN;
    for (int i = 0; i < 20; i++) sends.send(0, burst);  // 2,560 frames
    uint64_t full = 0;
    for (uint32_t tag = 0; tag < 2; tag++)
      full += sends.counts.refused[tag][SendFailure::buffer_full];
    CHECK_EQ(full, 2560 - kXdpFrames);
    refusal = 0;
    sends.batch.settle();  // sends what has waited
    CHECK_EQ(receiver.read(kXdpFrames).size(), size_t{kXdpFrames});
    CHECK_EQ(sends.counts.sent[0] + sends.counts.sent[1], kXdpFrames);
    CHECK(sends.counts.not_executed.empty());
    sends.send(0, burst);
    CHECK_EQ(receiver.read(128).size(), 128u);
  });
}

// Frames that wait in the ring of an interface are not sent after it was down.
TEST(xdp_batch_drops_and_counts_the_frames_of_an_interface_that_is_down) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxd0", 25);
    const auto plane = open_xdp_plane({"shxd0"});
    if (!plane) return;
    CloneReceiver receiver(lab, true);
    const SocketCalls calls = refusing_calls();
    XdpSends sends(*plane, {cable.targets(true, 3, receiver.port())}, calls);
    Random random{45};
    Burst burst(random, 2, 1203);
    refusal = EAGAIN;
    sends.send(0, burst);
    refusal = 0;
    lab.ip("link set shxd0 down\n");
    sends.send(0, burst);
    for (uint32_t tag = 0; tag < 3; tag++)
      CHECK_EQ(sends.counts.refused[tag][SendFailure::unreachable], 4u);
    sends.send(0, burst, 1);  // no longer tried
    CHECK_EQ(sends.counts.not_executed.size(), 3u);
    CHECK_EQ(sends.counts.not_executed[0].from, 1u);
    CHECK_EQ(sends.counts.not_executed[0].count, 1u);
    CHECK_EQ(sends.counts.not_executed[0].datagrams, 2u);
    lab.ip("link set shxd0 up\n");
    sends.batch.forget_refusals();
    for (int round = 0; round < 1000; round++) {  // more frames than the ring has
      sends.send(0, burst);
      CHECK_EQ(receiver.read(6).size(), 6u);
    }
    CHECK_EQ(sends.counts.sent[0], 2000u);
    CHECK_EQ(sends.counts.not_executed.size(), 3u);
  });
}

TEST(xdp_batch_counts_frames_that_the_interface_refuses) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxe0", 26);
    const auto plane = open_xdp_plane({"shxe0"});
    if (!plane) return;
    CloneReceiver receiver(lab, true);
    XdpSends sends(*plane, {cable.targets(true, 50, receiver.port())});
    Random random{46};
    Burst burst(random, 2, 1203);
    lab.ip_theirs("link set shxe0 down\n");  // no carrier
    sends.send(0, burst);
    for (uint32_t tag = 0; tag < 50; tag++) {
      CHECK_EQ(sends.counts.refused[tag][SendFailure::buffer_full], 2u);
      CHECK_EQ(sends.counts.sent[tag], 0u);
    }
    CHECK(sends.counts.not_executed.empty());
  });
}

TEST(xdp_batch_survives_the_removal_of_its_interface) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxf0", 27);
    const auto plane = open_xdp_plane({"shxf0"});
    if (!plane) return;
    XdpSends sends(*plane, {cable.targets(true, 3, 9)});
    Random random{47};
    Burst burst(random, 2, 1203);
    sends.send(0, burst);
    lab.ip("link del shxf0\n");
    for (int i = 0; i < 3; i++) {
      sends.send(0, burst);
      sends.batch.forget_refusals();
    }
    for (uint32_t tag = 0; tag < 3; tag++) {
      CHECK_EQ(sends.counts.sent[tag], 2u);
      CHECK_EQ(sends.counts.refused[tag][SendFailure::unreachable], 6u);
    }
  });
}

TEST(xdp_batch_uses_new_lists_after_the_old_ones_are_freed) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shxg0", 28);
    const auto plane = open_xdp_plane({"shxg0"});
    if (!plane) return;
    CloneReceiver receiver(lab, true);
    CloneCounts counts;
    XdpBatch batch(plane->senders(0), counts);
    Random random{48};
    Burst burst(random, 1, 1203);
    for (uint32_t round = 0; round < 50;
         round++) {  // the old list is freed before the next is used
      const std::vector<CloneTarget> list = cable.targets(true, 1 + round % 7, receiver.port());
      const auto lists = std::make_unique<CloneLists>(std::span(&list, 1), xdp_test_header(),
                                                      CloneFamilies{true, true});
      batch.use_lists(*lists);
      batch.add(0, burst.group(), round, false);
      batch.flush();
      CHECK_EQ(receiver.read(list.size()).size(), list.size());
    }
    CHECK(counts.refused.empty());
  });
}

}  // namespace
}  // namespace shredway::test
