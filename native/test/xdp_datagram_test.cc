// Datagrams in frames: every length, padding, checksums, and everything that the network stack
// would have dropped.
#include "xdp/xdp_datagram.h"

#include "xdp_receive_support.h"

namespace shredway::test {
namespace {

// Reads a copy of exactly this size, so that a read beyond it is detected.
FrameFault read_copy(const Bytes& frame, XdpDatagram& out, Bytes& payload) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[frame.size()]);
  if (!frame.empty()) std::memcpy(copy.get(), frame.data(), frame.size());
  const FrameFault fault = read_xdp_frame(copy.get(), frame.size(), out);
  if (fault == FrameFault::none) payload.assign(out.payload, out.payload + out.length);
  return fault;
}

FrameFault fault_of(const Bytes& frame) {
  XdpDatagram datagram;
  Bytes payload;
  return read_copy(frame, datagram, payload);
}

FrameRequest request_of(bool is_ipv4, Bytes payload) {
  FrameRequest request;
  request.from = behind_cable(is_ipv4, 3, 7000);
  request.to = behind_cable(is_ipv4, 4, 20'000);
  request.payload = std::move(payload);
  return request;
}

TEST(xdp_datagram_of_every_length_is_read_without_padding) {
  Random random{61};
  for (const bool is_ipv4 : {true, false}) {
    for (size_t bytes = 0; bytes <= 1400; bytes++) {
      FrameRequest request = request_of(is_ipv4, random_bytes(random, bytes));
      for (const FrameSum sum : {FrameSum::correct, FrameSum::none, FrameSum::partial}) {
        request.sum = sum;
        Bytes frame = udp_frame(request), payload;
        XdpDatagram datagram;
        if (bytes % 3 == 0) frame.resize(frame.size() + random.below(20), 0x5a);
        CHECK(read_copy(frame, datagram, payload) == FrameFault::none);
        CHECK(payload == request.payload);
        CHECK(datagram.from == request.from);
        CHECK(datagram.to == request.to);
      }
      request.sum = FrameSum::wrong;
      CHECK(fault_of(udp_frame(request)) == FrameFault::checksum);
    }
  }
}

TEST(xdp_datagram_with_one_wrong_bit_is_refused_or_not_udp) {
  Random random{62};
  for (const bool is_ipv4 : {true, false}) {
    const Bytes frame = udp_frame(request_of(is_ipv4, random_bytes(random, 300)));
    const size_t sum_at = (is_ipv4 ? 34 : 54) + 6;
    // The MAC addresses, and the fields that no checksum covers (traffic class, hop limit).
    for (size_t at = 12; at < frame.size(); at++) {
      if (at == sum_at || at == sum_at + 1) continue;
      for (int bit = 0; bit < 8; bit++) {
        Bytes wrong = frame;
        wrong[at] = uint8_t(wrong[at] ^ 1 << bit);
        const bool uncovered = !is_ipv4 && ((at >= 14 && at <= 17) || at == 21);
        const bool version = at == 14 && bit >= 4;
        if (uncovered && !version) continue;
        CHECK(fault_of(wrong) != FrameFault::none);
      }
    }
  }
}

TEST(xdp_datagram_that_the_network_stack_reads_otherwise_is_refused) {
  Random random{63};
  const auto ipv4_frame = udp_frame(request_of(true, random_bytes(random, 40)));
  const auto ipv6_frame = udp_frame(request_of(false, random_bytes(random, 40)));
  const auto changed = [](Bytes frame, size_t at, uint8_t value) {
    frame[at] = value;
    if (frame[12] == 8) sum_ipv4(frame);
    return fault_of(frame);
  };
  CHECK(changed(ipv4_frame, 14, 0x46) == FrameFault::not_udp);  // options
  CHECK(changed(ipv4_frame, 20, 0x20) == FrameFault::not_udp);  // the first fragment
  CHECK(changed(ipv4_frame, 21, 0x01) == FrameFault::not_udp);  // a later one
  CHECK(changed(ipv4_frame, 20, 0x40) == FrameFault::none);     // do not fragment
  CHECK(changed(ipv4_frame, 23, IPPROTO_TCP) == FrameFault::not_udp);
  CHECK(changed(ipv4_frame, 12, 0x81) == FrameFault::not_udp);  // VLAN
  CHECK(changed(ipv6_frame, 20, IPPROTO_HOPOPTS) == FrameFault::not_udp);
  CHECK(changed(ipv6_frame, 20, IPPROTO_FRAGMENT) == FrameFault::not_udp);
  CHECK(changed(ipv4_frame, 17, 19) == FrameFault::length);
  CHECK(changed(ipv4_frame, 17, 27) == FrameFault::length);  // less than a UDP header
  CHECK(changed(ipv4_frame, 16, 2) == FrameFault::length);   // beyond the frame
  CHECK(changed(ipv6_frame, 18, 2) == FrameFault::length);
  CHECK(changed(ipv6_frame, 19, 7) == FrameFault::length);
  CHECK(changed(ipv4_frame, 39, 7) == FrameFault::length);  // UDP
  CHECK(changed(ipv4_frame, 38, 1) == FrameFault::length);
  for (size_t bytes = 0; bytes < ipv4_frame.size(); bytes++)
    CHECK(fault_of(Bytes(ipv4_frame.begin(), ipv4_frame.begin() + long(bytes))) ==
          FrameFault::length);
  for (size_t bytes = 0; bytes < ipv6_frame.size(); bytes++)
    CHECK(fault_of(Bytes(ipv6_frame.begin(), ipv6_frame.begin() + long(bytes))) ==
          FrameFault::length);
}

TEST(xdp_datagram_of_an_impossible_sender_is_refused) {
  Random random{64};
  const auto fault_from = [&](const char* address) {
    const bool is_ipv4 = std::strchr(address, '.') && !std::strchr(address, ':');
    FrameRequest request = request_of(is_ipv4, random_bytes(random, 40));
    request.from.address = address_of(address);
    return fault_of(udp_frame(request));
  };
  for (const char* address : {"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.9.9.9", "224.0.0.1",
                              "239.255.0.1", "255.255.255.255", "::", "::1", "ff02::1"})
    CHECK(fault_from(address) == FrameFault::sender);
  for (const char* address : {"1.2.3.4", "126.0.0.1", "128.0.0.1", "223.255.255.255", "240.0.0.1",
                              "fe80::1", "2001:db8::1", "::2"})
    CHECK(fault_from(address) == FrameFault::none);
  // An IPv6 header that names an IPv4 address.
  FrameRequest request = request_of(false, random_bytes(random, 40));
  request.from.address = ipv4(10, 77, 0, 3).address;
  CHECK(fault_of(udp_frame(request)) == FrameFault::sender);
}

}  // namespace
}  // namespace shredway::test
