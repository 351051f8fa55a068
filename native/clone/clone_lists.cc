#include "clone/clone_lists.h"

#include <linux/if_ether.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace shredway {
namespace {

constexpr size_t kIpv4At = 12;  // in an Endpoint's address

// Writes the parts of a frame's head one after the other.
class HeadWriter {
 public:
  explicit HeadWriter(uint8_t* bytes) : at_(bytes) {}
  void bytes(const uint8_t* from, size_t count) {
    std::memcpy(at_, from, count);
    at_ += count;
  }
  void u8(uint8_t value) { *at_++ = value; }
  void u16(uint16_t value) {
    u8(static_cast<uint8_t>(value >> 8));
    u8(static_cast<uint8_t>(value));
  }
  const uint8_t* at() const { return at_; }

 private:
  uint8_t* at_;
};

// Sum of 16-bit words as they lie in memory: ones' complement does not mind the byte order.
uint32_t sum_of(const uint8_t* bytes, size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; i += 2) {
    uint16_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    sum += word;
  }
  return sum;
}

// Like a socket's datagrams: a router may fragment them (nothing that ICMP says about a narrow path
// is believed, udp_socket.h), so each needs an identification.
void write_ipv4(HeadWriter& head, const CloneTarget& target, const CloneHead& look) {
  head.u16(static_cast<uint16_t>(0x4500 | look.dscp << 2));
  head.u16(0);  // total length, by the program
  head.u16(0);  // identification, by the program: the trigger's
  head.u16(0);  // no flags, no offset
  head.u8(look.ttl);
  head.u8(IPPROTO_UDP);
  head.u16(0);  // checksum, by the program
  head.bytes(target.hop.source.data() + kIpv4At, 4);
  head.bytes(target.destination.address.data() + kIpv4At, 4);
}

void write_ipv6(HeadWriter& head, const CloneTarget& target, const CloneHead& look) {
  head.u16(static_cast<uint16_t>(0x6000 | look.dscp << 6));
  head.u16(0);  // flow label
  head.u16(0);  // payload length, by the program
  head.u8(IPPROTO_UDP);
  head.u8(look.ttl);
  head.bytes(target.hop.source.data(), target.hop.source.size());
  head.bytes(target.destination.address.data(), target.destination.address.size());
}

void write_row(const CloneTarget& target, const CloneHead& look, CloneTargetRow& row) {
  const bool ipv4 = target.destination.is_ipv4();
  row = CloneTargetRow{};
  HeadWriter head(row.head);
  head.bytes(target.hop.to.data(), target.hop.to.size());
  head.bytes(target.hop.from.data(), target.hop.from.size());
  head.u16(ipv4 ? ETH_P_IP : ETH_P_IPV6);
  const uint8_t* const ip = head.at();
  if (ipv4) write_ipv4(head, target, look);
  else write_ipv6(head, target, look);
  const size_t address_bytes = ipv4 ? 4 : 16;
  if (ipv4) row.ip_sum = sum_of(ip, static_cast<size_t>(head.at() - ip));
  const std::array<uint8_t, 2> protocol = {0, IPPROTO_UDP};
  row.udp_sum = sum_of(head.at() - 2 * address_bytes, 2 * address_bytes) +
                sum_of(protocol.data(), protocol.size());
  head.u16(ipv4 ? look.source_port_ipv4 : look.source_port_ipv6);
  head.u16(target.destination.port);  // length and checksum follow, by the program
  row.interface = target.hop.interface;
}

}  // namespace

CloneLists::CloneLists(std::span<const std::vector<CloneTarget>> lists, const CloneHead& head,
                       const CloneFamilies& families)
    : lists_(lists.size()) {
  for (size_t i = 0; i < lists.size(); i++) {
    List& list = lists_[i];
    list.first = static_cast<uint32_t>(rows_.size());
    list.ipv4 = lists[i].empty() || lists[i][0].destination.is_ipv4();
    if (!(list.ipv4 ? families.ipv4 : families.ipv6)) continue;
    list.size =
        static_cast<uint32_t>(std::min<size_t>(lists[i].size(), kCloneTargetsMax - rows_.size()));
    for (uint32_t t = 0; t < list.size; t++) {
      write_row(lists[i][t], head, rows_.emplace_back());
      tags_.push_back(lists[i][t].tag);
    }
  }
}

}  // namespace shredway
