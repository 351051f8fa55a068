// Segment control: the control message that splits one send into several datagrams (UDP GSO).
//
// Used by the send batches; each message of a batch has its own.
#pragma once

#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace shredway {

class SegmentControl {
 public:
  SegmentControl() {
    cmsghdr header{};
    header.cmsg_level = IPPROTO_UDP;
    header.cmsg_type = UDP_SEGMENT;
    header.cmsg_len = CMSG_LEN(sizeof(uint16_t));
    std::memcpy(bytes_.data(), &header, sizeof header);
  }
  // Splits `message` into datagrams of this length. The control must stay valid until it is sent.
  void attach(msghdr& message, uint16_t segment_bytes) {
    std::memcpy(bytes_.data() + CMSG_LEN(0), &segment_bytes, sizeof segment_bytes);
    message.msg_control = bytes_.data();
    message.msg_controllen = bytes_.size();
  }

 private:
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(uint16_t))> bytes_{};
};

}  // namespace shredway
