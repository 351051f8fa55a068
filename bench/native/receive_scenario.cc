// Cost of each way in: processor time per datagram from the sender's call until the worker has the
// payload, on a veth pair.
//
// One thread on one CPU sends a burst of frames at the other end, waits in poll() and receives, in
// slots that are interleaved round by round. The kernel's work for the receiver runs inside the
// send call on a veth, so the two are measured together. Frames with
// another MAC address, which the receiver's IP layer drops, show the sender's share. A frame whose
// checksum is left to a network card stands for one that a card has verified: the network stack
// then verifies nothing.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "clocks.h"
#include "minimal_forwarder.h"
#include "net/udp_batch.h"
#include "report_line.h"
#include "traffic.h"
#include "transmit_scenario.h"
#include "xdp/xdp.h"
#include "xdp/xdp_frame.h"

namespace shredway::bench {
namespace {

constexpr size_t kListShreds = 512;
constexpr uint16_t kPort = 20'000, kPassedPort = 20'001;
constexpr uint32_t kSender = 0x0a500001;  // a neighbour behind the pair

// The struct virtio_net_hdr; linux/virtio_net.h does not compile as C++.
struct FrameHeader {
  uint8_t flags = 0;
  uint8_t segmentation = 0;
  uint16_t header_bytes = 0, segment_bytes = 0;
  uint16_t sum_begins_at = 0, sum_at = 0;
};
static_assert(sizeof(FrameHeader) == 10);
constexpr uint8_t kNeedsSum = 1;  // VIRTIO_NET_HDR_F_NEEDS_CSUM

struct Way {
  const char* name;
  uint16_t port;
  bool to_other_mac = false;
  bool sum_by_card = false;  // the frame has the sum of the pseudo-header only
  bool with_program = false;
  bool by_xdp = false;
};
constexpr std::array<Way, 5> kWays = {{
    {.name = "dropped", .port = kPort, .to_other_mac = true, .sum_by_card = true},
    {.name = "socket", .port = kPort, .sum_by_card = true},
    {.name = "socket_sums", .port = kPort},
    {.name = "passed", .port = kPassedPort, .sum_by_card = true, .with_program = true},
    {.name = "xdp", .port = kPort, .with_program = true, .by_xdp = true},
}};

// Frames of all shreds of a list, with the header of a packet socket in front of each.
class Frames {
 public:
  Frames(const PacketList& packets, const TransmitPath& path, const Way& way) {
    NextHop hop = path.hop;  // the other direction
    std::swap(hop.from, hop.to);
    hop.to = path.hop.from;
    if (way.to_other_mac) hop.to[5] ^= 0x40;
    hop.source = ipv4_endpoint(kSender, 0).address;
    const Endpoint to{path.hop.source, way.port};
    const std::vector<CloneTarget> target = {{0, to, hop}};
    const CloneLists lists({&target, 1}, {.source_port_ipv4 = 7000}, {true, true});
    for (size_t i = 0; i < kListShreds; i++) {
      const uint8_t* payload = packets.bytes.data() + packets.offsets[i];
      const auto bytes = static_cast<uint16_t>(packets.offsets[i + 1] - packets.offsets[i]);
      Frame& frame = frames_.emplace_back();
      frame.bytes = write_xdp_frame(frame.data.data(), lists.rows()[0], true, payload, bytes,
                                    xdp_payload_sum(payload, bytes), 0);
      if (way.sum_by_card) leave_sum_to_card(frame, lists.rows()[0].udp_sum);
    }
    parts_.resize(kListShreds);
    messages_.resize(kListShreds);
    for (size_t i = 0; i < kListShreds; i++) {
      parts_[i][0] = {&frames_[i].header, sizeof frames_[i].header};
      parts_[i][1] = {frames_[i].data.data(), frames_[i].bytes};
      messages_[i].msg_hdr.msg_iov = parts_[i].data();
      messages_[i].msg_hdr.msg_iovlen = parts_[i].size();
    }
  }
  bool send(int fd, size_t begin, uint32_t count) {
    return sendmmsg(fd, messages_.data() + begin, count, 0) == static_cast<int>(count);
  }

 private:
  static constexpr uint16_t kUdpAt = 34, kSumAt = 6;
  struct Frame {
    FrameHeader header{};
    std::array<uint8_t, kXdpFrameBytes> data;
    uint32_t bytes = 0;
  };
  static void leave_sum_to_card(Frame& frame, uint64_t pseudo_sum) {
    frame.header.flags = kNeedsSum;
    frame.header.sum_begins_at = kUdpAt;
    frame.header.sum_at = kSumAt;
    uint16_t length;
    std::memcpy(&length, frame.data.data() + kUdpAt + 4, sizeof length);
    const uint16_t sum = xdp_fold_sum(pseudo_sum + length);
    std::memcpy(frame.data.data() + kUdpAt + kSumAt, &sum, sizeof sum);
  }
  std::vector<Frame> frames_;
  std::vector<std::array<iovec, 2>> parts_;
  std::vector<mmsghdr> messages_;
};

class ReceiveCost {
 public:
  ReceiveCost(const Bench& bench, const TransmitNetwork& network)
      : bench_(bench),
        path_(network.veth_path(1)),
        sender_(network.open_frame_socket()),
        slot_ns_(bench.options.small ? 8'000'000 : 60'000'000),
        interrupt_thread_(process_named("ksoftirqd/" + std::to_string(bench.tested_cpu))) {}
  std::string open();
  void run();

 private:
  void run_slot(const Way& way, uint32_t burst, uint32_t round);
  uint32_t receive(const Way& way, XdpReceiver* receiver, int fd);

  const Bench& bench_;
  const TransmitPath path_;
  const UdpSocket sender_;
  const uint64_t slot_ns_;
  const pid_t interrupt_thread_;  // 0: not visible
  UdpSocket socket_, passed_socket_;
  ReceiveBatch batch_;
  ShredStream stream_;
  PacketList packets_;
};

std::string ReceiveCost::open() {
  if (!sender_.valid()) return "a packet socket at the other end of the pair";
  for (const auto& [socket, port] :
       {std::pair{&socket_, kPort}, std::pair{&passed_socket_, kPassedPort}}) {
    SocketResult opened = open_receive_socket(
        {.address = {path_.hop.source, port}, .buffer_bytes = 16u << 20, .filter = true});
    if (!opened.error.empty()) return opened.error;
    *socket = std::move(opened.socket);
  }
  return "";
}

// Waits for the first datagram as a worker does, and receives what is there.
uint32_t ReceiveCost::receive(const Way& way, XdpReceiver* receiver, int fd) {
  pollfd entry = {fd, POLLIN, 0};
  if (poll(&entry, 1, 50) <= 0) return 0;
  if (!way.by_xdp) return static_cast<uint32_t>(batch_.receive(fd));
  const auto count = static_cast<uint32_t>(receiver->receive().size());
  receiver->release();
  return count;
}

void ReceiveCost::run_slot(const Way& way, uint32_t burst, uint32_t round) {
  std::string error;
  std::unique_ptr<XdpPlane> plane;
  std::unique_ptr<XdpReceiver> receiver;
  if (way.with_program) {
    plane = XdpPlane::open(
        {.interfaces = {path_.device}, .sends = false, .listen = {{path_.hop.source, kPort}}},
        error);
    if (!plane) return print_transmit_skipped(way.name, error);
    receiver = std::make_unique<XdpReceiver>(plane->receivers(0));
  }
  Frames frames(packets_, path_, way);
  const int socket = way.port == kPort ? socket_.fd() : passed_socket_.fd();
  const int fd = way.by_xdp ? receiver->descriptors()[0] : socket;
  const auto interrupts_ns = [&] {
    return interrupt_thread_ ? process_cpu_ns(interrupt_thread_) : 0;
  };
  uint64_t sent = 0, received = 0;
  const uint64_t interrupts_before = interrupts_ns();
  const uint64_t until_ns = monotonic_ns() + slot_ns_;
  const uint64_t cpu_before = own_cpu_ns();
  while (sent == 0 || monotonic_ns() < until_ns) {
    if (!frames.send(sender_.fd(), sent % kListShreds, burst)) break;
    sent += burst;
    if (way.to_other_mac) continue;
    for (uint32_t count = 1; count > 0 && received < sent; received += count)
      count = receive(way, receiver.get(), fd);
  }
  const uint64_t cpu_ns = own_cpu_ns() - cpu_before + interrupts_ns() - interrupts_before;
  if (round == 0) return;  // warms up
  ReportLine("receive")
      .text("way", way.name)
      .count("burst", burst)
      .count("round", round)
      .count("cpu_ns", cpu_ns)
      .count("datagrams", sent)
      .count("lost", way.to_other_mac ? 0 : sent - received)
      .print();
}

void ReceiveCost::run() {
  pin(0, bench_.tested_cpu);
  const std::vector<uint32_t> bursts =
      bench_.options.small ? std::vector<uint32_t>{1, 32} : std::vector<uint32_t>{1, 8, 32, 64};
  for (const uint32_t burst : bursts) {
    for (uint32_t round = 0; round <= bench_.options.rounds; round++) {
      stream_.make(kListShreds, packets_);
      for (size_t i = 0; i < kWays.size(); i++)
        run_slot(kWays[(i + round) % kWays.size()], burst, round);
    }
  }
}

}  // namespace

void run_receive(const Bench& bench) {
  std::string error;
  const auto network = TransmitNetwork::make(bench.network, 1, error);
  if (!network) return print_transmit_skipped("everything", error);
  ReceiveCost cost(bench, *network);
  error = cost.open();
  if (!error.empty()) return print_transmit_skipped("everything", error);
  cost.run();
}

}  // namespace shredway::bench
