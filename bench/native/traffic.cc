#include "traffic.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "options.h"
#include "report_line.h"

namespace shredway::bench {
namespace {

std::array<uint8_t, 32> seed_of(uint8_t byte) {
  std::array<uint8_t, 32> seed;
  seed.fill(byte);
  return seed;
}

}  // namespace

// For a chained set that does not end its slot (wire.h: body_end - body_begin of 0x96).
size_t set_entries_bytes() {
  constexpr uint8_t kChainedData = 0x96;
  const Layout layout = layout_of(variant_of(kChainedData));
  return kFecSetShreds * static_cast<size_t>(layout.body_end - layout.body_begin);
}

ShredStream::ShredStream(uint8_t leader_seed, uint32_t fec_sets_per_slot, ShredContents contents)
    : key_(seed_of(leader_seed)),
      shredder_(key_),
      position_{kFirstSlot, 1, kShredVersion, Root{}, 0},
      fec_sets_per_slot_(fec_sets_per_slot),
      contents_(contents),
      entries_(set_entries_bytes()) {
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (uint8_t& byte : entries_) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<uint8_t>(state);
  }
}

void ShredStream::make(size_t shreds, PacketList& out) {
  out.bytes.clear();
  out.offsets.assign(1, 0);
  signatures_.clear();
  const uint64_t transactions_before = entry_maker_.transactions();
  while (out.size() < shreds) {
    if (contents_ == ShredContents::entries) {
      entry_maker_.make(2 * set_entries_bytes(), entries_);
      const std::vector<TransactionSignature>& more = entry_maker_.signatures();
      signatures_.insert(signatures_.end(), more.begin(), more.end());
    }
    if (!shredder_.shred(entries_.data(), entries_.size(), 5, false, position_, out)) std::abort();
    if (position_.next_fec_set_index < fec_sets_per_slot_ * kFecSetShreds) continue;
    position_.slot++;
    position_.next_fec_set_index = 0;
  }
  transactions_ = entry_maker_.transactions() - transactions_before;
}

uint64_t ShredStream::number_of(const uint8_t* packet) const {
  const uint64_t slot = load_u64(packet + offset::kSlot) - kFirstSlot;
  const uint32_t fec_set_index = load_u32(packet + offset::kFecSetIndex);
  const uint32_t position = load_u32(packet + offset::kIndex) - fec_set_index;
  const bool code = variant_of(packet[offset::kVariant]).type == ShredType::code;
  return slot * shreds_per_slot() + 2 * fec_set_index + position + (code ? kFecSetShreds : 0);
}

std::vector<uint8_t> leader_table(const PublicKey& leader, uint32_t slots) {
  std::vector<uint8_t> bytes{'S', 'W', 'L', '1'};
  append(bytes, uint32_t{1});
  append(bytes, ShredStream::kFirstSlot);
  append(bytes, slots);
  bytes.insert(bytes.end(), leader.begin(), leader.end());
  bytes.resize(bytes.size() + size_t{slots} * sizeof(uint32_t));  // key index 0 everywhere
  return bytes;
}

std::vector<uint8_t> source_table(uint32_t sources) {
  std::vector<uint8_t> bytes{'S', 'W', 'S', '1'};
  append(bytes, sources);
  for (uint32_t i = 0; i < sources; i++) {
    append(bytes, static_cast<uint16_t>(i));
    append(bytes, uint16_t{128 << 8});  // tier 0, one address
    append(bytes, uint32_t{0});
    bytes.resize(bytes.size() + 10);
    append(bytes, uint16_t{0xffff});
    append(bytes, htonl(INADDR_LOOPBACK + i));
  }
  return bytes;
}

std::vector<uint8_t> fanout_table(const std::vector<Endpoint>& destinations) {
  std::vector<uint8_t> bytes{'S', 'W', 'F', '1'};
  append(bytes, static_cast<uint32_t>(destinations.size()));
  for (uint32_t i = 0; i < destinations.size(); i++) {
    append(bytes, i);
    append(bytes, uint16_t{0});
    const Endpoint& endpoint = destinations[i];
    bytes.insert(bytes.end(), endpoint.address.begin(), endpoint.address.end());
    append(bytes, endpoint.port);
  }
  return bytes;
}

Generator::Generator() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  const int buffer_bytes = 16 << 20;
  if (setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0)
    (void)setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
}

Generator::~Generator() { close(fd_); }

void Generator::bind_to(uint32_t from) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(from);
  (void)bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

void Generator::connect_to(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool Generator::send_burst(const PacketList& packets, size_t begin, size_t end) {
  constexpr size_t kAtOnce = 64;
  std::array<mmsghdr, kAtOnce> messages{};
  std::array<iovec, kAtOnce> parts;
  while (begin < end) {
    const size_t count = std::min(end - begin, kAtOnce);
    for (size_t i = 0; i < count; i++) {
      parts[i] = {const_cast<uint8_t*>(packets.packet(begin + i)), packets.packet_bytes(begin + i)};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    if (sendmmsg(fd_, messages.data(), static_cast<unsigned>(count), 0) != static_cast<int>(count))
      return false;
    begin += count;
  }
  return true;
}

void run_sample(const Bench&) {
  ShredStream stream;
  PacketList packets;
  stream.make(kFecSetLeaves, packets);
  for (size_t i = 0; i < packets.size(); i++) {
    std::string text;
    for (size_t at = 0; at < packets.packet_bytes(i); at++) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", packets.packet(i)[at]);
      text += digits;
    }
    ReportLine("sample").text("packet", text).print();
  }
}

}  // namespace shredway::bench
