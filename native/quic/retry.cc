#include "quic/retry.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "crypto/sha256.h"
#include "net/address.h"

namespace shredway {
namespace {

constexpr uint64_t kLifetime_ns = 15'000'000'000;
constexpr std::array<uint8_t, 4> kVersion1Bytes = {0, 0, 0, 1};
constexpr size_t kTimeBytes = 8;
constexpr size_t kMacBytes = 32;
constexpr size_t kShaBlockBytes = 64;
constexpr size_t kTagBytes = 16;
// Length bytes, the body of a token, an id, and an address as text.
constexpr size_t kMacInputBytesMax = 192;

// Appends to a fixed buffer that is large enough.
class Writer {
 public:
  explicit Writer(uint8_t* begin) : begin_(begin), at_(begin) {}
  void add(uint8_t byte) { *at_++ = byte; }
  void add(ByteView bytes) { at_ = std::copy(bytes.begin(), bytes.end(), at_); }
  void add_big_endian(uint64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8) add(static_cast<uint8_t>(value >> shift));
  }
  size_t size() const { return static_cast<size_t>(at_ - begin_); }
  ByteView written() const { return {begin_, size()}; }

 private:
  uint8_t* begin_;
  uint8_t* at_;
};

// As Node.js writes it: "192.0.2.1 9000".
void add_address(const Endpoint& from, Writer& out) {
  std::array<char, INET6_ADDRSTRLEN> text;
  sockaddr_storage address;
  to_sockaddr(from, address);
  if (from.is_ipv4())
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(),
              text.size());
  else
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text.data(),
              text.size());
  for (const char* c = text.data(); *c != 0; c++) out.add(static_cast<uint8_t>(*c));
  out.add(' ');
  std::array<char, 5> port;
  const auto end = std::to_chars(port.begin(), port.end(), from.port).ptr;
  for (const char* c = port.data(); c != end; c++) out.add(static_cast<uint8_t>(*c));
}

// HMAC-SHA256 (RFC 2104) with a key shorter than a block.
Sha256Digest hmac(const RetryKey& key, ByteView message) {
  std::array<uint8_t, kShaBlockBytes> inner{}, outer{};
  std::copy(key.begin(), key.end(), inner.begin());
  std::copy(key.begin(), key.end(), outer.begin());
  for (uint8_t& byte : inner) byte ^= 0x36;
  for (uint8_t& byte : outer) byte ^= 0x5c;
  Sha256Digest digest;
  sha256(inner.data(), inner.size(), message.data(), message.size(), digest);
  sha256(outer.data(), outer.size(), digest.data(), digest.size(), digest);
  return digest;
}

// The lengths are included, so that no byte can move from one part to the other.
Sha256Digest mac_of(ByteView body, const Endpoint& from, ByteView own_id, const RetryKey& key) {
  std::array<uint8_t, kMacInputBytesMax> input;
  Writer writer(input.data());
  writer.add(static_cast<uint8_t>(body.size()));
  writer.add(static_cast<uint8_t>(own_id.size()));
  writer.add(body);
  writer.add(own_id);
  add_address(from, writer);
  return hmac(key, writer.written());
}

// ---- AES-128-GCM with the fixed key and nonce of RFC 9001, 5.8 ------------------------------
//
// Nothing is encrypted. The tag is GHASH of the packet, combined with one block of AES that never
// changes.

// 128 bits; the first bit is the highest one of `high`.
struct Block {
  uint64_t high, low;
  constexpr Block operator^(const Block& other) const {
    return {high ^ other.high, low ^ other.low};
  }
};

constexpr Block kHashKey = {0x72956a454ffaff54, 0x85a13a1244d01d47};     // AES of zero
constexpr Block kFirstBlock = {0x555e4b7493556eea, 0xaf75d35bd7fba5d8};  // AES of nonce || 1
constexpr uint64_t kPolynomial = 0xe1ULL << 56;

constexpr Block times_x(Block block) {
  const bool has_last = (block.low & 1) != 0;
  Block next = {block.high >> 1, block.low >> 1 | block.high << 63};
  if (has_last) next.high ^= kPolynomial;
  return next;
}
constexpr Block times_x4(Block block) { return times_x(times_x(times_x(times_x(block)))); }

struct GhashTables {
  std::array<Block, 16> products;    // of four bits and the hash key
  std::array<Block, 16> reductions;  // of four bits behind the last ones
};

constexpr GhashTables make_tables() {
  GhashTables tables{};
  Block power = kHashKey;
  for (const size_t bit : {8U, 4U, 2U, 1U}) {
    tables.products[bit] = power;
    power = times_x(power);
  }
  for (size_t bits = 1; bits < 16; bits++)
    for (const size_t bit : {8U, 4U, 2U, 1U})
      if ((bits & bit) != 0 && bits != bit)
        tables.products[bits] = tables.products[bits] ^ tables.products[bit];
  for (uint64_t bits = 0; bits < 16; bits++) tables.reductions[bits] = times_x4({0, bits});
  return tables;
}
constexpr GhashTables kTables = make_tables();

Block times_hash_key(const Block& block) {
  Block sum = {0, 0};
  const auto add = [&sum](uint64_t bits) {
    const Block& reduction = kTables.reductions[sum.low & 15];
    sum = Block{sum.high >> 4, sum.low >> 4 | sum.high << 60} ^ reduction ^ kTables.products[bits];
  };
  for (int shift = 0; shift < 64; shift += 4) add(block.low >> shift & 15);
  for (int shift = 0; shift < 64; shift += 4) add(block.high >> shift & 15);
  return sum;
}

uint64_t read_big_endian(const uint8_t* bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; i++) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

std::array<uint8_t, kTagBytes> retry_integrity_tag(ByteView original_id, ByteView packet) {
  std::array<uint8_t, kQuicIdBytesMax + 1 + kRetryPacketBytesMax + kTagBytes> input{};
  Writer writer(input.data());
  writer.add(static_cast<uint8_t>(original_id.size()));
  writer.add(original_id);
  writer.add(packet);
  Block sum = {0, 0};
  for (size_t at = 0; at < writer.size(); at += kTagBytes)
    sum = times_hash_key(
        sum ^ Block{read_big_endian(input.data() + at), read_big_endian(input.data() + at + 8)});
  sum = times_hash_key(sum ^ Block{uint64_t{writer.size()} * 8, 0}) ^ kFirstBlock;
  std::array<uint8_t, kTagBytes> tag;
  Writer out(tag.data());
  out.add_big_endian(sum.high);
  out.add_big_endian(sum.low);
  return tag;
}

void write_retry(const RetryRequest& request, const RetryKey& key, RetryPacket& out) {
  std::array<uint8_t, kTimeBytes + kQuicIdBytesMax> body;
  Writer token(body.data());
  token.add_big_endian(request.now_ns + kLifetime_ns);
  token.add(request.original_id);
  Writer packet(out.bytes.data());
  packet.add(0xf0);  // a Retry packet; the other bits are unused
  packet.add(kVersion1Bytes);
  packet.add(static_cast<uint8_t>(request.client_id.size()));
  packet.add(request.client_id);
  packet.add(static_cast<uint8_t>(request.own_id.size()));
  packet.add(request.own_id);
  packet.add(token.written());
  packet.add(mac_of(token.written(), request.from, request.own_id, key));
  packet.add(retry_integrity_tag(request.original_id, packet.written()));
  out.length = packet.size();
}

bool is_retry_token(ByteView token, const Endpoint& from, ByteView own_id, uint64_t now_ns,
                    const RetryKey& key) {
  constexpr size_t kBytesMin = kTimeBytes + kMacBytes;
  const bool has_length = token.size() >= kBytesMin &&
                          token.size() <= kBytesMin + kQuicIdBytesMax &&
                          own_id.size() <= kQuicIdBytesMax;
  if (!has_length) return false;
  const ByteView body = token.first(token.size() - kMacBytes);
  const Sha256Digest mac = mac_of(body, from, own_id, key);
  unsigned difference = 0;  // in constant time
  for (size_t i = 0; i < kMacBytes; i++)
    difference |= static_cast<unsigned>(mac[i] ^ token[body.size() + i]);
  return difference == 0 && read_big_endian(token.data()) >= now_ns;
}

}  // namespace shredway
