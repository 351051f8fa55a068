// Frame receiver: raw frames as they arrive at the other end of a cable.
//
// Included by the tests that compare frames with those of a socket.
#pragma once

#include <linux/if_ether.h>
#include <netpacket/packet.h>

#include <array>
#include <set>
#include <vector>

#include "clone_support.h"

namespace shredway::test {

// Raw frames for `port` that arrive by the cable.
class FrameReceiver {
 public:
  FrameReceiver(const Lab& lab, const CloneCable& cable) {
    lab.in_theirs([&] {
      socket_ = UdpSocket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
      sockaddr_ll address{};
      address.sll_family = AF_PACKET;
      address.sll_protocol = htons(ETH_P_ALL);
      address.sll_ifindex = static_cast<int>(lab.interface(cable.name));
      CHECK_EQ(bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
      const int buffer_bytes = 64 << 20;
      CHECK_EQ(setsockopt(socket_.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof(int)), 0);
    });
  }
  uint32_t first_identification = 0;  // first IPv4 identification of the last read()
  // IPv4 frames to one destination must have different identifications: a router may fragment them.
  std::vector<Bytes> read(size_t expected, uint16_t port) {
    std::vector<Bytes> out;
    std::set<Bytes> identified;
    std::array<uint8_t, 65536> bytes;
    for (;;) {
      pollfd entry = {socket_.fd(), POLLIN, 0};
      if (poll(&entry, 1, out.size() < expected ? 3000 : 0) <= 0) return out;
      const ssize_t length = recv(socket_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      const bool is_ipv4 = bytes[12] == 0x08;
      const size_t port_at = is_ipv4 ? 36 : 56;
      if (length < ssize_t(port_at) + 6 || (bytes[port_at] << 8 | bytes[port_at + 1]) != port)
        continue;
      out.emplace_back(bytes.begin(), bytes.begin() + length);
      if (!is_ipv4) continue;
      Bytes identity(out.back().begin() + 30, out.back().begin() + 34);  // the destination
      identity.insert(identity.end(), out.back().begin() + 18, out.back().begin() + 20);
      CHECK(identified.insert(identity).second);
      if (out.size() == 1) first_identification = uint32_t(out[0][18] << 8 | out[0][19]);
      level(out.back());
    }
  }

 private:
  // Sets the identification to 0: the kernel chooses it, and receivers do not see it. Checks the
  // header's checksum, which covers it. Every datagram may be fragmented on its way.
  static void level(Bytes& frame) {
    uint32_t sum = 0;
    for (size_t at = 14; at < 34; at += 2) sum += uint32_t(frame[at] << 8 | frame[at + 1]);
    CHECK_EQ((sum & 0xffff) + (sum >> 16), 0xffffu);
    CHECK_EQ(frame[20] | frame[21], 0);
    for (const size_t at : {18, 19, 24, 25}) frame[at] = 0;
  }
  UdpSocket socket_;
};

}  // namespace shredway::test
