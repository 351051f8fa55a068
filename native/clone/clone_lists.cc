#include "clone/clone_lists.h"

#include <linux/if_ether.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace shredway {
namespace {

// Writes the fields of a frame's headers one after the other.
class HeaderWriter {
 public:
  explicit HeaderWriter(uint8_t* bytes) : at_(bytes) {}
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

// Sum of 16-bit words in memory order: the ones' complement sum does not depend on the byte order.
uint32_t sum_of(const uint8_t* bytes, size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; i += 2) {
    uint16_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    sum += word;
  }
  return sum;
}

// Like a socket's datagrams, clones may be fragmented by a router (path MTUs from ICMP are ignored,
// udp_socket.h), so each needs an identification.
void write_ipv4(HeaderWriter& header, const CloneTarget& target, const CloneHeader& fields) {
  header.u16(static_cast<uint16_t>(0x4500 | fields.dscp << 2));
  header.u16(0);  // total length: set by the program
  header.u16(0);  // identification: set by the program to the trigger's
  header.u16(0);  // no flags, no offset
  header.u8(fields.ttl);
  header.u8(IPPROTO_UDP);
  header.u16(0);  // checksum: set by the program
  header.bytes(target.hop.source.data() + kIpv4At, 4);
  header.bytes(target.destination.address.data() + kIpv4At, 4);
}

void write_ipv6(HeaderWriter& header, const CloneTarget& target, const CloneHeader& fields) {
  header.u16(static_cast<uint16_t>(0x6000 | fields.dscp << 6));
  header.u16(0);  // flow label
  header.u16(0);  // payload length: set by the program
  header.u8(IPPROTO_UDP);
  header.u8(fields.ttl);
  header.bytes(target.hop.source.data(), target.hop.source.size());
  header.bytes(target.destination.address.data(), target.destination.address.size());
}

void write_row(const CloneTarget& target, const CloneHeader& fields, CloneTargetRow& row) {
  const bool ipv4 = target.destination.is_ipv4();
  row = CloneTargetRow{};
  HeaderWriter header(row.header);
  header.bytes(target.hop.to.data(), target.hop.to.size());
  header.bytes(target.hop.from.data(), target.hop.from.size());
  header.u16(ipv4 ? ETH_P_IP : ETH_P_IPV6);
  const uint8_t* const ip = header.at();
  if (ipv4) write_ipv4(header, target, fields);
  else write_ipv6(header, target, fields);
  const size_t address_bytes = ipv4 ? 4 : 16;
  if (ipv4) row.ip_sum = sum_of(ip, static_cast<size_t>(header.at() - ip));
  const std::array<uint8_t, 2> protocol = {0, IPPROTO_UDP};
  row.udp_sum = sum_of(header.at() - 2 * address_bytes, 2 * address_bytes) +
                sum_of(protocol.data(), protocol.size());
  header.u16(ipv4 ? fields.source_port_ipv4 : fields.source_port_ipv6);
  header.u16(target.destination.port);  // length and checksum follow: set by the program
  row.interface = target.hop.interface;
}

}  // namespace

CloneLists::CloneLists(std::span<const std::vector<CloneTarget>> lists, const CloneHeader& header,
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
      write_row(lists[i][t], header, rows_.emplace_back());
      tags_.push_back(lists[i][t].tag);
    }
  }
}

}  // namespace shredway
