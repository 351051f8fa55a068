#include "xdp/xdp_receive_code.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>

#include <cstddef>
#include <cstring>

#include "net/bpf_assembler.h"
#include "net/shred_filter.h"
#include "net/steering.h"
#include "xdp/frame_layout.h"

namespace shredway {
namespace {

using bpf::Assembler, bpf::Field;
using enum bpf::Register;

#define FIELD(row, name, width) \
  Field { offsetof(row, name), width }
constexpr Field kData = FIELD(xdp_md, data, BPF_W);
constexpr Field kDataEnd = FIELD(xdp_md, data_end, BPF_W);
constexpr Field kDataMeta = FIELD(xdp_md, data_meta, BPF_W);
constexpr Field kQueue = FIELD(xdp_md, rx_queue_index, BPF_W);
#undef FIELD

// Byte offsets in a frame.
constexpr size_t kIpAt = kEthernetBytes;
constexpr size_t kIpv4UdpAt = kIpAt + kIpv4Bytes, kIpv6UdpAt = kIpAt + kIpv6Bytes;
constexpr int kVersion6 = 0x60;

// The key of the map on the stack.
constexpr size_t kKeyAt = static_cast<size_t>(-24);
constexpr Field kKeyPort = {kKeyAt + offsetof(XdpEndpointKey, port), BPF_W};  // and `zero`
constexpr Field key_address(size_t at, uint8_t width) { return {kKeyAt + at, width}; }

constexpr bpf::Register kContext = r6, kFrame = r7, kEnd = r8, kUdp = r9;

// Continues only if the shortest shred behind `udp_at` lies inside the frame.
void require_bytes(Assembler& code, size_t udp_at, Assembler::Label pass) {
  code.move(r2, kFrame);
  code.compute(BPF_ADD, r2, static_cast<int>(udp_at + kUdpBytes + filter::kShredBytesMin));
  code.jump_if(BPF_JGT, r2, kEnd, pass);
}

void require_mac(Assembler& code, const std::array<uint8_t, 6>& mac, Assembler::Label pass) {
  for (size_t at = 0; at < mac.size(); at += sizeof(uint16_t)) {
    uint16_t part;
    std::memcpy(&part, mac.data() + at, sizeof part);
    code.load(r2, kFrame, {at, BPF_H});
    code.jump_if(BPF_JNE, r2, part, pass);
  }
}

// kUdp = the UDP header; r4 = its length by the IP header.
void read_ipv4(Assembler& code, Assembler::Label pass) {
  require_bytes(code, kIpv4UdpAt, pass);
  code.load(r2, kFrame, {kIpAt, BPF_B});
  code.jump_if(BPF_JNE, r2, kVersionAndLength, pass);
  code.load(r2, kFrame, {kIpAt + 6, BPF_H});
  code.compute(BPF_AND, r2, htons(kFragmentBits));
  code.jump_if(BPF_JNE, r2, 0, pass);
  code.load(r2, kFrame, {kIpAt + 9, BPF_B});
  code.jump_if(BPF_JNE, r2, IPPROTO_UDP, pass);
  code.load(r4, kFrame, {kIpAt + 2, BPF_H});
  code.swap_u16(r4);
  code.compute(BPF_SUB, r4, static_cast<int>(kIpv4UdpAt - kIpAt));
  code.move(r2, 0);
  code.store(r10, key_address(0, BPF_DW), r2);
  code.move(r2, htons(0xffff));
  code.compute(BPF_LSH, r2, 16);
  code.store(r10, key_address(8, BPF_W), r2);
  code.load(r2, kFrame, {kIpAt + 16, BPF_W});
  code.store(r10, key_address(12, BPF_W), r2);
  code.move(kUdp, kFrame);
  code.compute(BPF_ADD, kUdp, static_cast<int>(kIpv4UdpAt));
}

void read_ipv6(Assembler& code, Assembler::Label pass) {
  require_bytes(code, kIpv6UdpAt, pass);
  code.load(r2, kFrame, {kIpAt, BPF_B});
  code.compute(BPF_AND, r2, 0xf0);
  code.jump_if(BPF_JNE, r2, kVersion6, pass);
  code.load(r2, kFrame, {kIpAt + 6, BPF_B});
  code.jump_if(BPF_JNE, r2, IPPROTO_UDP, pass);
  code.load(r4, kFrame, {kIpAt + 4, BPF_H});
  code.swap_u16(r4);
  for (size_t at = 0; at < sizeof(AddressBytes); at += sizeof(uint32_t)) {
    code.load(r2, kFrame, {kIpAt + 24 + at, BPF_W});
    code.store(r10, key_address(at, BPF_W), r2);
  }
  code.move(kUdp, kFrame);
  code.compute(BPF_ADD, kUdp, static_cast<int>(kIpv6UdpAt));
}

// Continues only with a shred for one of the endpoints, all of it inside the frame.
void require_shred(Assembler& code, int endpoints_fd, Assembler::Label pass) {
  code.load(r5, kUdp, {kUdpLengthAt, BPF_H});
  code.swap_u16(r5);
  code.jump_if(BPF_JNE, r4, r5, pass);
  code.jump_if(BPF_JLT, r5, static_cast<int>(kUdpBytes + filter::kShredBytesMin), pass);
  code.jump_if(BPF_JGT, r5, static_cast<int>(kUdpBytes + filter::kPacketBytesMax), pass);
  code.move(r2, kUdp);
  code.compute(BPF_ADD, r2, r5);
  code.jump_if(BPF_JGT, r2, kEnd, pass);
  code.load(r2, kUdp, {kUdpBytes + filter::kVariantAt, BPF_B});
  code.compute(BPF_SUB, r2, static_cast<int>(filter::kVariantMin));  // a lower byte wraps
  code.jump_if(BPF_JGT, r2, static_cast<int>(filter::kVariantMax - filter::kVariantMin), pass);
  code.load(r2, kUdp, {kUdpDestinationAt, BPF_H});
  code.store(r10, kKeyPort, r2);
  code.find(endpoints_fd, kKeyAt);
  code.jump_if(BPF_JEQ, r0, 0, pass);
}

// r7 = the row of the socket: that of the queue and of the worker. Overwrites kFrame, and makes no
// use of the packet afterwards.
void find_row(Assembler& code, uint32_t workers) {
  code.load(r7, kContext, kQueue);
  if (workers == 1) return;
  code.compute(BPF_MUL, r7, static_cast<int>(workers));
  code.load(r1, kUdp, {kUdpBytes + filter::kSlotAt, BPF_W});
  code.load(r2, kUdp, {kUdpBytes + filter::kFecSetIndexAt, BPF_H});
  code.swap_u32(r1);  // as the program of steering.h reads it
  const auto shift = [&](int bits) {
    code.move(r3, r1);
    code.compute_u32(BPF_RSH, r3, bits);
    code.compute_u32(BPF_XOR, r1, r3);
  };
  shift(16);
  code.compute_u32(BPF_MUL, r1, static_cast<int>(kSteeringMixFirst));
  shift(15);
  code.compute_u32(BPF_MUL, r1, static_cast<int>(kSteeringMixSecond));
  code.compute_u32(BPF_RSH, r1, 16);
  code.compute_u32(BPF_RSH, r2, 5);
  code.compute_u32(BPF_ADD, r1, r2);
  code.compute_u32(BPF_MOD, r1, static_cast<int>(workers));
  code.compute(BPF_ADD, r7, r1);
}

// Writes the time in front of the frame. Goes on without it if the driver has no space there.
void write_time(Assembler& code) {
  const Assembler::Label without = code.label();
  code.move(r1, kContext);
  code.move(r2, -static_cast<int>(kReceiveTimeBytes));
  code.call(BPF_FUNC_xdp_adjust_meta);
  code.jump_if(BPF_JNE, r0, 0, without);
  code.call(BPF_FUNC_ktime_get_ns);
  code.load(r1, kContext, kDataMeta);
  code.load(r2, kContext, kData);
  code.move(r3, r1);
  code.compute(BPF_ADD, r3, static_cast<int>(kReceiveTimeBytes));
  code.jump_if(BPF_JGT, r3, r2, without);
  code.store(r1, {0, BPF_DW}, r0);
  code.place(without);
}

}  // namespace

std::vector<bpf_insn> xdp_receive_code(const XdpReceiveCode& options) {
  Assembler code;
  const Assembler::Label ipv4 = code.label(), udp = code.label(), pass = code.label();
  code.move(kContext, r1);
  code.load(kFrame, kContext, kData);
  code.load(kEnd, kContext, kDataEnd);
  require_bytes(code, kIpv4UdpAt, pass);
  require_mac(code, options.mac, pass);
  code.load(r2, kFrame, {kProtocolAt, BPF_H});
  code.jump_if(BPF_JEQ, r2, htons(ETH_P_IP), ipv4);
  code.jump_if(BPF_JNE, r2, htons(ETH_P_IPV6), pass);
  read_ipv6(code, pass);
  code.jump(udp);
  code.place(ipv4);
  read_ipv4(code, pass);
  code.place(udp);
  require_shred(code, options.endpoints_fd, pass);
  find_row(code, options.workers);
  write_time(code);
  // A queue without a socket passes the frame on.
  code.load_map(r1, options.sockets_fd);
  code.move(r2, r7);
  code.move(r3, XDP_PASS);
  code.call(BPF_FUNC_redirect_map);
  code.leave();
  code.place(pass);
  code.move(r0, XDP_PASS);
  code.leave();
  return code.finish();
}

}  // namespace shredway
