#include "clone/clone_program.h"

#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <netinet/in.h>

#include <cstddef>
#include <cstdint>

#include "clone/clone_plane.h"
#include "net/bpf_assembler.h"

namespace shredway {
namespace {

using bpf::Assembler, bpf::Field, bpf::Register;
using enum bpf::Register;

#define FIELD(row, name, width) \
  Field { offsetof(row, name), width }
constexpr Field kRowInterface = FIELD(CloneTargetRow, interface, BPF_W);
constexpr Field kRowIpSum = FIELD(CloneTargetRow, ip_sum, BPF_W);
constexpr Field kRowUdpSum = FIELD(CloneTargetRow, udp_sum, BPF_W);
constexpr Field kRowLastError = FIELD(CloneTargetRow, last_error, BPF_W);
constexpr Field kRowSent = FIELD(CloneTargetRow, sent, BPF_DW);
constexpr Field kRowRecoveredSent = FIELD(CloneTargetRow, recovered_sent, BPF_DW);
constexpr Field kRowRefused = FIELD(CloneTargetRow, refused, BPF_DW);
constexpr Field kJobCookie = FIELD(CloneJobRow, socket_cookie, BPF_DW);
constexpr Field kJobFirst = FIELD(CloneJobRow, first, BPF_W);
constexpr Field kJobCount = FIELD(CloneJobRow, count, BPF_W);
constexpr Field kJobStart = FIELD(CloneJobRow, start, BPF_W);
constexpr Field kJobTargets = FIELD(CloneJobRow, targets, BPF_W);
constexpr Field kJobDatagrams = FIELD(CloneJobRow, datagrams, BPF_W);
constexpr Field kJobRecovered = FIELD(CloneJobRow, recovered, BPF_W);
constexpr Field kJobRuns = FIELD(CloneJobRow, runs, BPF_DW);
constexpr Field kPacketLength = FIELD(__sk_buff, len, BPF_W);
constexpr Field kPacketProtocol = FIELD(__sk_buff, protocol, BPF_W);
constexpr Field kPacketData = FIELD(__sk_buff, data, BPF_W);
constexpr Field kPacketDataEnd = FIELD(__sk_buff, data_end, BPF_W);
#undef FIELD
static_assert(offsetof(CloneTargetRow, header) == 0,
              "headers are copied from the row's first byte on");

// Byte offsets of the header fields in a frame, per family.
struct HeaderLayout {
  uint16_t protocol;      // ETH_P_*
  uint16_t bytes;         // length of all three headers
  uint16_t ip_length_at;  // u16: total length (IPv4), payload length (IPv6)
  uint16_t ip_length_from;
  uint16_t ip_identification_at;  // 0: no identification and no checksum
  uint16_t ip_sum_at;
  uint16_t udp_at;
};
constexpr HeaderLayout kIpv4 = {ETH_P_IP, 42, 16, 14, 18, 24, 34};
constexpr HeaderLayout kIpv6 = {ETH_P_IPV6, 62, 18, 54, 0, 0, 54};
constexpr uint16_t kUdpPortAt = 2, kUdpLengthAt = 4, kUdpSumAt = 6;  // in the UDP header

constexpr Register kPacket = r6, kServed = r7, kRow = r8, kJob = r9, kStack = r10;
constexpr Field kKey = {static_cast<size_t>(-4), BPF_W};  // on the stack: index of a row
constexpr Field kIpLength = {static_cast<size_t>(-8), BPF_H};
constexpr Field kIpIdentification = {static_cast<size_t>(-12), BPF_H};
constexpr Field kUdpLength = {static_cast<size_t>(-16), BPF_H};

// Ones' complement: adds the carries of the 16-bit sum in `it`. Twice, because the first addition
// may carry again. Overwrites `scratch`.
void fold(Assembler& code, Register it, Register scratch) {
  for (int i = 0; i < 2; i++) {
    code.move(scratch, it);
    code.compute(BPF_RSH, scratch, 16);
    code.compute(BPF_AND, it, 0xffff);
    code.compute(BPF_ADD, it, scratch);
  }
}

// r2 = first byte of the packet; jumps to `otherwise` unless all headers are accessible.
void reach_headers(Assembler& code, const HeaderLayout& header, Assembler::Label otherwise) {
  code.load(r2, kPacket, kPacketData);
  code.load(r3, kPacket, kPacketDataEnd);
  code.move(r1, r2);
  code.compute(BPF_ADD, r1, header.bytes);
  code.jump_if(BPF_JGT, r1, r3, otherwise);
}

// kJob = the job of the trigger's UDP port; jumps to `drop` unless the job's own socket sent the
// trigger.
void find_job(Assembler& code, const HeaderLayout& header, int jobs_fd, Assembler::Label drop) {
  reach_headers(code, header, drop);
  code.load(r1, r2, {size_t{header.udp_at} + kUdpPortAt, BPF_H});
  code.swap_u16(r1);
  code.compute(BPF_SUB, r1, 1);  // port 0 becomes an index beyond all rows
  code.store(kStack, kKey, r1);
  code.find(jobs_fd, kKey.at);
  code.jump_if(BPF_JEQ, r0, 0, drop);
  code.move(kJob, r0);
  code.move(r1, kPacket);
  code.call(BPF_FUNC_get_socket_cookie);
  code.jump_if(BPF_JEQ, r0, 0, drop);  // no socket; an unused job has none either
  code.load(r1, kJob, kJobCookie);
  code.jump_if(BPF_JNE, r0, r1, drop);
}

// Writes to the stack the header fields that all clones share, in network order: lengths, and the
// identification that the kernel gave the trigger. It is unique per destination too; segmentation
// of a burst counts on from it.
void store_common(Assembler& code, const HeaderLayout& header, Assembler::Label drop) {
  if (header.ip_identification_at) {
    reach_headers(code, header, drop);
    code.load(r1, r2, {header.ip_identification_at, BPF_H});
    code.store(kStack, kIpIdentification, r1);
  }
  code.load(r1, kPacket, kPacketLength);
  code.move(r2, r1);
  code.compute(BPF_SUB, r1, header.ip_length_from);
  code.swap_u16(r1);
  code.store(kStack, kIpLength, r1);
  code.compute(BPF_SUB, r2, header.udp_at);
  code.swap_u16(r2);
  code.store(kStack, kUdpLength, r2);
}

// kRow = the next target: first + (start + served) % count; jumps to `drop` if it does not exist.
void find_target(Assembler& code, int targets_fd, Assembler::Label drop) {
  const Assembler::Label before_end = code.label();
  code.load(r1, kJob, kJobStart);
  code.compute(BPF_ADD, r1, kServed);
  code.load(r2, kJob, kJobCount);
  code.jump_if(BPF_JLT, r1, r2, before_end);
  code.compute(BPF_SUB, r1, r2);
  code.place(before_end);
  code.load(r2, kJob, kJobFirst);
  code.compute(BPF_ADD, r1, r2);
  code.store(kStack, kKey, r1);
  code.find(targets_fd, kKey.at);
  code.jump_if(BPF_JEQ, r0, 0, drop);
  code.move(kRow, r0);
}

// Overwrites the packet's headers with the target's, completed by lengths and checksums.
void write_headers(Assembler& code, const HeaderLayout& header, Assembler::Label drop) {
  // Pointers into the packet are invalid after a helper that may move it.
  reach_headers(code, header, drop);
  size_t at = 0;
  for (; at + 8 <= header.bytes; at += 8) {
    code.load(r1, kRow, {at, BPF_DW});
    code.store(r2, {at, BPF_DW}, r1);
  }
  if (at + 4 <= header.bytes) {
    code.load(r1, kRow, {at, BPF_W});
    code.store(r2, {at, BPF_W}, r1);
  }  // the rest is the UDP checksum
  code.load(r1, kStack, kIpLength);
  code.store(r2, {header.ip_length_at, BPF_H}, r1);
  if (header.ip_identification_at) {
    code.load(r3, kRow, kRowIpSum);
    code.compute(BPF_ADD, r1, r3);
    code.load(r3, kStack, kIpIdentification);
    code.store(r2, {header.ip_identification_at, BPF_H}, r3);
    code.compute(BPF_ADD, r1, r3);
    fold(code, r1, r3);
    code.compute(BPF_XOR, r1, 0xffff);
    code.store(r2, {header.ip_sum_at, BPF_H}, r1);
  }
  // The sum of the pseudo-header only, not inverted: the device, or the kernel for it, adds the
  // rest for each segment.
  code.load(r1, kStack, kUdpLength);
  code.store(r2, {size_t{header.udp_at} + kUdpLengthAt, BPF_H}, r1);
  code.load(r3, kRow, kRowUdpSum);
  code.compute(BPF_ADD, r1, r3);
  fold(code, r1, r3);
  code.store(r2, {size_t{header.udp_at} + kUdpSumAt, BPF_H}, r1);
}

// field += by; overwrites `scratch`.
void add_to(Assembler& code, Register base, Field field, Register by, Register scratch) {
  code.load(scratch, base, field);
  code.compute(BPF_ADD, scratch, by);
  code.store(base, field, scratch);
}

// Sends a clone and counts its result.
void clone_and_count(Assembler& code) {
  const Assembler::Label refused = code.label(), recovered = code.label(), counted = code.label();
  code.move(r1, kPacket);
  code.load(r2, kRow, kRowInterface);
  code.move(r3, 0);
  code.call(BPF_FUNC_clone_redirect);
  code.load(r1, kJob, kJobDatagrams);
  code.jump_if(BPF_JNE, r0, 0, refused);
  code.load(r2, kJob, kJobRecovered);
  code.jump_if(BPF_JNE, r2, 0, recovered);
  add_to(code, kRow, kRowSent, r1, r3);
  code.jump(counted);
  code.place(recovered);
  add_to(code, kRow, kRowRecoveredSent, r1, r3);
  code.jump(counted);
  code.place(refused);
  code.store(kRow, kRowLastError, r0);
  add_to(code, kRow, kRowRefused, r1, r3);
  code.place(counted);
}

void serve_family(Assembler& code, const HeaderLayout& header, int targets_fd, int jobs_fd,
                  Assembler::Label done, Assembler::Label drop) {
  find_job(code, header, jobs_fd, drop);
  store_common(code, header, drop);
  code.move(kServed, 0);
  const Assembler::Label next = code.label();
  code.place(next);
  code.load(r1, kJob, kJobTargets);
  code.jump_if(BPF_JGE, kServed, r1, done);
  find_target(code, targets_fd, drop);
  write_headers(code, header, drop);
  clone_and_count(code);
  code.compute(BPF_ADD, kServed, 1);
  // The verifier requires this bound; it checks each iteration.
  code.jump_if(BPF_JLT, kServed, static_cast<int>(kCloneTargetsPerJob), next);
  code.jump(done);
}

}  // namespace

std::vector<bpf_insn> clone_program(int targets_fd, int jobs_fd) {
  Assembler code;
  const Assembler::Label ipv4 = code.label(), done = code.label(), drop = code.label();
  code.move(kPacket, r1);
  code.load(r1, kPacket, kPacketProtocol);
  code.jump_if(BPF_JEQ, r1, htons(kIpv4.protocol), ipv4);
  code.jump_if(BPF_JNE, r1, htons(kIpv6.protocol), drop);
  serve_family(code, kIpv6, targets_fd, jobs_fd, done, drop);
  code.place(ipv4);
  serve_family(code, kIpv4, targets_fd, jobs_fd, done, drop);

  // Executed or not, no packet reaches the queue of the interface.
  code.place(done);
  code.move(r1, 1);
  add_to(code, kJob, kJobRuns, r1, r2);
  code.move(r0, TC_ACT_STOLEN);
  code.leave();
  code.place(drop);
  code.move(r0, TC_ACT_SHOT);
  code.leave();
  return code.finish();
}

}  // namespace shredway
