// XDP frames without a kernel: lengths, checksums and fields for payloads of every length.
#include "xdp/xdp_frame.h"

#include "xdp_receive_support.h"

namespace shredway::test {
namespace {

uint32_t word(const Bytes& frame, size_t at) { return uint32_t(frame[at] << 8 | frame[at + 1]); }

void check_frame(const Bytes& frame, bool is_ipv4, const Bytes& payload) {
  const size_t udp = is_ipv4 ? 34 : 54, address_bytes = is_ipv4 ? 8 : 32;
  CHECK_EQ(frame.size(), udp + 8 + payload.size());
  CHECK(Bytes(frame.begin() + long(udp) + 8, frame.end()) == payload);
  CHECK_EQ(word(frame, udp + 4), 8 + payload.size());
  if (is_ipv4) {
    CHECK_EQ(word(frame, 16), frame.size() - 14);
    CHECK_EQ(internet_sum(&frame[14], 20), 0xffffu);
  } else {
    CHECK_EQ(word(frame, 18), frame.size() - 54);
  }
  const uint32_t pseudo = internet_sum(&frame[udp - address_bytes], address_bytes) + IPPROTO_UDP +
                          uint32_t(8 + payload.size());
  CHECK_EQ(internet_sum(&frame[udp], frame.size() - udp, pseudo), 0xffffu);
  CHECK(word(frame, udp + 6) != 0);
}

TEST(xdp_frame_has_valid_lengths_and_checksums_for_every_payload) {
  Random random{41};
  for (const bool is_ipv4 : {true, false}) {
    CloneTarget target{};
    target.destination = behind_cable(is_ipv4, 7, 9000);
    target.hop.source = behind_cable(is_ipv4, 9, 0).address;
    const std::vector<CloneTarget> list = {target};
    const CloneLists lists({&list, 1}, {8001, 8002, 37, 46}, {true, true});
    for (uint16_t bytes = 1; bytes <= 1232; bytes++) {
      const Bytes payload = random_bytes(random, bytes);
      Bytes frame(kXdpHeaderBytesMax + bytes);
      frame.resize(write_xdp_frame(frame.data(), lists.rows()[0], is_ipv4, payload.data(), bytes,
                                   xdp_payload_sum(payload.data(), bytes),
                                   uint16_t(random.next())));
      check_frame(frame, is_ipv4, payload);
    }
  }
}

// A checksum of 0 would mean that the datagram has no checksum.
TEST(xdp_frame_never_has_the_checksum_zero) {
  CloneTarget target{};
  target.destination = behind_cable(true, 7, 9000);
  const std::vector<CloneTarget> list = {target};
  const CloneLists lists({&list, 1}, {}, {true, true});
  uint32_t all_ones = 0;
  for (uint32_t i = 0; i < 1u << 16; i++) {
    const Bytes payload = {uint8_t(i >> 8), uint8_t(i)};
    Bytes frame(kXdpHeaderBytesMax + payload.size());
    frame.resize(write_xdp_frame(frame.data(), lists.rows()[0], true, payload.data(), 2,
                                 xdp_payload_sum(payload.data(), 2), 0));
    CHECK(word(frame, 40) != 0);
    all_ones += word(frame, 40) == 0xffff;
  }
  CHECK(all_ones > 0);
}

}  // namespace
}  // namespace shredway::test
