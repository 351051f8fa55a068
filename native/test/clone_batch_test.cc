// Clone batch over real devices: every target of a list gets every payload once, byte for byte,
// with the requested header fields and valid checksums, whether the kernel or the device segments
// and computes checksums.
#include "clone/clone_batch.h"

#include <sched.h>

#include <algorithm>
#include <set>

#include "clone_support.h"
#include "frame_receiver.h"

namespace shredway::test {
namespace {

constexpr uint16_t kDataBytes = 1203, kCodeBytes = 1228;

CloneHeader header_of_tests() {
  CloneHeader header;
  header.source_port_ipv4 = 8001;
  header.source_port_ipv6 = 8002;
  header.ttl = 37;
  header.dscp = 46;
  return header;
}

// Received payloads by destination, in order; also checks the headers.
std::map<std::array<uint8_t, 16>, std::vector<Bytes>> by_destination(
    std::vector<CloneArrival> arrivals, bool is_ipv4, const NextHop& hop) {
  const CloneHeader header = header_of_tests();
  std::map<std::array<uint8_t, 16>, std::vector<Bytes>> out;
  for (CloneArrival& arrival : arrivals) {
    CHECK(arrival.from.address == hop.source);
    CHECK_EQ(arrival.from.port, is_ipv4 ? header.source_port_ipv4 : header.source_port_ipv6);
    CHECK_EQ(arrival.ttl, header.ttl);
    CHECK_EQ(arrival.traffic_class, header.dscp << 2);
    out[arrival.to.address].push_back(std::move(arrival.bytes));
  }
  return out;
}

struct Case {
  bool is_ipv4, segmentation, checksums, gso;
};
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const bool is_ipv4 : {true, false})
    for (const bool gso : {true, false}) {
      cases.push_back({is_ipv4, true, true, gso});
      cases.push_back({is_ipv4, false, true, gso});
      cases.push_back({is_ipv4, false, false, gso});
    }
  return cases;
}

TEST(clone_batch_delivers_every_payload_to_every_target) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shwa0", 1);
    const auto plane = open_plane();
    if (!plane) return;
    Random random{11};
    for (const Case& now : all_cases()) {
      cable.set_offload(now.segmentation, now.checksums);
      CloneReceiver receiver(lab, now.is_ipv4);
      CloneCounts tally;
      CloneBatch batch(plane->region(0), header_of_tests(), now.gso, tally);
      for (const uint32_t count : {1u, 2u, 50u, 200u}) {
        const std::vector<CloneTarget> list = cable.targets(now.is_ipv4, count, receiver.port());
        CHECK_EQ(batch.set_lists({&list, 1}), count);
        for (const uint32_t burst_count : {1u, 2u, 8u, 32u, 53u, 60u}) {
          // A veth's other end queues a thousand frames at a time.
          if (count * burst_count > 900) continue;
          Burst data(random, burst_count, kDataBytes);
          Burst code(random, 1, kCodeBytes);
          batch.add(0, data.group(), uint32_t(random.below(count)), false);
          batch.flush();
          batch.add(0, code.group(), uint32_t(random.below(count)), true);
          batch.flush();
          auto got = by_destination(receiver.read(count * (burst_count + 1)), now.is_ipv4,
                                    cable.hop(now.is_ipv4));
          std::vector<Bytes> expected = data.payloads;
          expected.push_back(code.payloads[0]);
          CHECK_EQ(got.size(), count);
          for (const auto& [to, payloads] : got) CHECK(payloads == expected);
          tally.sent.clear();
          tally.recovered.clear();
          batch.settle();
          for (uint32_t tag = 0; tag < count; tag++) {
            CHECK_EQ(tally.sent[tag], burst_count);
            CHECK_EQ(tally.recovered[tag], 1u);
          }
        }
      }
      CHECK(tally.refused.empty());
      CHECK(tally.not_executed.empty());
    }
  });
}

// Pins the thread to its current processor, because each processor has its own receive queue.
void stay_on_this_processor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(std::max(sched_getcpu(), 0)), &set);
  CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(clone_batch_rotates_through_long_lists) {
  in_clone_lab([](Lab& lab) {
    stay_on_this_processor();
    const CloneCable cable(lab, "shwb0", 2);
    const auto plane = open_plane();
    if (!plane) return;
    Random random{12};
    for (const bool is_ipv4 : {true, false}) {
      CloneReceiver receiver(lab, is_ipv4);
      CloneCounts tally;
      CloneBatch batch(plane->region(0), header_of_tests(), true, tally);
      for (const uint32_t count : {1u, 2u, 255u, 256u, 257u, 512u, 1000u}) {
        const std::vector<CloneTarget> list = cable.targets(is_ipv4, count, receiver.port());
        CHECK_EQ(batch.set_lists({&list, 1}), count);
        for (const uint32_t start : {0u, 1u, count / 2, count - 1, count, 7 * count + 1, ~0u}) {
          Burst burst(random, 1, kDataBytes);
          batch.add(0, burst.group(), start, false);
          batch.flush();
          const std::vector<CloneArrival> got = receiver.read(count);
          CHECK_EQ(got.size(), count);
          for (uint32_t i = 0; i < got.size(); i++) {
            const auto expected = uint32_t((uint64_t{start} + i) % count);
            CHECK(got[i].to == behind_cable(is_ipv4, expected, receiver.port()));
            CHECK(got[i].bytes == burst.payloads[0]);
          }
        }
      }
      CHECK(tally.not_executed.empty());
    }
  });
}

TEST(clone_batch_mixes_lists_sizes_and_families_in_one_flush) {
  in_clone_lab([](Lab& lab) {
    const CloneCable first(lab, "shwc0", 3), second(lab, "shwc1", 4);
    const auto plane = open_plane();
    if (!plane) return;
    Random random{13};
    CloneReceiver ipv4_receiver(lab, true), ipv6_receiver(lab, false);
    CloneCounts tally;
    CloneBatch batch(plane->region(0), header_of_tests(), true, tally);
    // Two lists of each family, one of them empty, one through two interfaces.
    std::vector<std::vector<CloneTarget>> lists(5);
    lists[0] = first.targets(true, 5, ipv4_receiver.port(), 0);
    for (CloneTarget& target : second.targets(true, 3, ipv4_receiver.port(), 5))
      lists[0].push_back(target);
    lists[1] = second.targets(false, 4, ipv6_receiver.port(), 10);
    lists[3] = first.targets(true, 1, ipv4_receiver.port(), 20);
    lists[4] = first.targets(false, 2, ipv6_receiver.port(), 30);
    CHECK_EQ(batch.set_lists(lists), 15u);
    CHECK_EQ(batch.list_size(0), 8u);
    CHECK_EQ(batch.list_size(2), 0u);
    // More triggers than one flush can hold, so the batch flushes by itself.
    std::vector<Burst> bursts;
    bursts.reserve(90);
    std::map<uint32_t, std::multiset<Bytes>> expected;
    for (uint32_t i = 0; i < 90; i++) {
      bursts.emplace_back(random, 1 + uint32_t(random.below(3)), i % 2 ? kDataBytes : kCodeBytes);
      const auto list = uint32_t(random.below(5));
      batch.add(list, bursts.back().group(), i, random.one_in(3));
      for (const CloneTarget& target : lists[list])
        for (const Bytes& payload : bursts.back().payloads) expected[target.tag].insert(payload);
    }
    batch.flush();
    batch.settle();
    size_t ipv4_count = 0, ipv6_count = 0;
    for (const auto& [tag, payloads] : expected) {
      (tag / 10 % 2 ? ipv6_count : ipv4_count) += payloads.size();
      CHECK_EQ(tally.sent[tag] + tally.recovered[tag], payloads.size());
    }
    std::map<uint32_t, std::multiset<Bytes>> got;
    for (const CloneArrival& arrival : ipv4_receiver.read(ipv4_count))
      got[arrival.to.address[15]].insert(arrival.bytes);
    for (const CloneArrival& arrival : ipv6_receiver.read(ipv6_count))
      got[arrival.to.address[15]].insert(arrival.bytes);
    CHECK(got == expected);
    CHECK(tally.not_executed.empty());
    CHECK(batch.triggers() >= 60);
  });
}

TEST(clone_batch_replaces_lists_between_payloads) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shwd0", 5);
    const auto plane = open_plane();
    if (!plane) return;
    Random random{14};
    CloneReceiver receiver(lab, true);
    CloneCounts tally;
    CloneBatch batch(plane->region(0), header_of_tests(), true, tally);
    std::map<uint32_t, std::vector<Bytes>> expected;
    std::map<uint32_t, std::vector<Bytes>> got;
    size_t total = 0;
    for (uint32_t round = 0; round < 300; round++) {
      const std::vector<CloneTarget> list = cable.targets(
          true, 1 + uint32_t(random.below(60)), receiver.port(), uint32_t(random.below(100)));
      CHECK_EQ(batch.set_lists({&list, 1}), list.size());
      std::vector<Burst> bursts;
      bursts.reserve(3);
      for (uint64_t i = random.below(4); i > 0; i--) {
        bursts.emplace_back(random, 1 + uint32_t(random.below(4)), kDataBytes);
        batch.add(0, bursts.back().group(), uint32_t(random.next()), false);
        for (const CloneTarget& target : list)
          for (const Bytes& payload : bursts.back().payloads) {
            expected[target.tag].push_back(payload);
            total++;
          }
      }
      // Sometimes groups are still queued when the lists change: they belong to the old lists.
      if (random.one_in(2)) batch.flush();
      else CHECK_EQ(batch.set_lists({}), 0u);
      for (CloneArrival& arrival : receiver.read(0))
        got[arrival.to.address[15]].push_back(std::move(arrival.bytes));
    }
    batch.set_lists({});
    size_t arrived = 0;
    for (const auto& [tag, payloads] : got) arrived += payloads.size();
    for (CloneArrival& arrival : receiver.read(total - arrived))
      got[arrival.to.address[15]].push_back(std::move(arrival.bytes));
    for (auto& [tag, payloads] : expected) {
      CHECK_EQ(tally.sent[tag], payloads.size());
      // The order is preserved only on one processor.
      std::sort(payloads.begin(), payloads.end());
      std::sort(got[tag].begin(), got[tag].end());
    }
    CHECK(got == expected);
    CHECK(tally.not_executed.empty());
    CHECK(tally.refused.empty());
  });
}

// ---- against the socket path ----------------------------------------------------------------

TEST(clone_batch_sends_the_frames_that_a_socket_sends) {
  in_clone_lab([](Lab& lab) {
    const CloneCable cable(lab, "shwe0", 6);
    // Frames look as on a wire: segmented, and with checksums.
    cable.set_offload(false, false);
    lab.ip(
        "neigh replace 10.6.0.2 lladdr 02:00:00:00:01:06 dev shwe0 nud permanent\n"
        "neigh replace fd00:6::2 lladdr 02:00:00:00:01:06 dev shwe0 nud permanent\n"
        "route add 10.77.0.0/16 via 10.6.0.2\n"
        "route add fd77::/64 via fd00:6::2\n");
    const auto plane = open_plane();
    if (!plane) return;
    Random random{15};
    for (const bool is_ipv4 : {true, false}) {
      CloneHeader header = header_of_tests();
      SocketResult sender = open_send_socket({is_ipv4 ? ipv4(10, 6, 0, 1) : Endpoint{}, 1u << 20});
      const int fd = sender.socket.fd();
      const int ttl = header.ttl, traffic_class = header.dscp << 2, off = 0;
      if (is_ipv4) {
        CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof ttl), 0);
        CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_TOS, &traffic_class, sizeof ttl), 0);
        header.source_port_ipv4 = local_endpoint(fd).port;
      } else {
        CHECK_EQ(setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &ttl, sizeof ttl), 0);
        CHECK_EQ(setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, sizeof ttl), 0);
        // Flow labels are for routers that do not read ports; clones have none.
        constexpr int kAutoFlowLabel = 70;  // IPV6_AUTOFLOWLABEL
        CHECK_EQ(setsockopt(fd, IPPROTO_IPV6, kAutoFlowLabel, &off, sizeof off), 0);
        header.source_port_ipv6 = local_endpoint(fd).port;
      }
      CloneCounts tally;
      CloneBatch batch(plane->region(0), header, true, tally);
      SendCounts socket_tally;
      SendBatch by_socket(fd, true, socket_tally);
      FrameReceiver frames(lab, cable);
      constexpr uint16_t kPort = 9100;
      const std::vector<CloneTarget> list = cable.targets(is_ipv4, 20, kPort);
      batch.set_lists({&list, 1});
      std::set<uint32_t> identified;  // new for each burst
      // Also odd lengths, and payloads that consist of little more than their checksum.
      for (const uint16_t bytes : {kDataBytes, kCodeBytes, uint16_t{1}, uint16_t{18}})
        for (const uint32_t count : {1u, 2u, 7u}) {
          Burst burst(random, count, bytes);
          batch.add(0, burst.group(), 0, false);
          batch.flush();
          const std::vector<Bytes> cloned = frames.read(20 * count, kPort);
          if (is_ipv4) CHECK(identified.insert(frames.first_identification).second);
          for (const CloneTarget& target : list) {
            const Address to(target.destination);
            by_socket.add(burst.group(), to.get(), to.bytes, 1);
            by_socket.flush();
          }
          const std::vector<Bytes> sent = frames.read(20 * count, kPort);
          CHECK_EQ(cloned.size(), 20 * count);
          CHECK(std::multiset<Bytes>(cloned.begin(), cloned.end()) ==
                std::multiset<Bytes>(sent.begin(), sent.end()));
        }
      CHECK(tally.not_executed.empty());
    }
  });
}

}  // namespace
}  // namespace shredway::test
