// Retry packets and their tokens.
#include "quic/retry.h"

#include "check.h"
#include "support.h"

namespace shredway::test {
namespace {

const RetryKey kKey = {1, 2, 3};
const Endpoint kFrom = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1}, 9000};
const Endpoint kFromIpv6 = {{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 1};
constexpr uint64_t kNow_ns = 1'000'000'000;
constexpr uint64_t kLifetime_ns = 15'000'000'000;

Bytes bytes_between(uint8_t first, size_t count) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; i++) bytes[i] = static_cast<uint8_t>(first + i);
  return bytes;
}

struct Written {
  Bytes packet;
  Bytes token;
};

Written written_for(const Endpoint& from, const Bytes& client_id, const Bytes& original_id) {
  RetryRequest request{.from = from,
                       .client_id = client_id,
                       .original_id = original_id,
                       .own_id = {},
                       .now_ns = kNow_ns};
  request.own_id = {9, 8, 7, 6, 5, 4, 3, 2};
  RetryPacket packet;
  write_retry(request, kKey, packet);
  Written written;
  written.packet.assign(packet.bytes.begin(),
                        packet.bytes.begin() + static_cast<long>(packet.length));
  const auto token_at = static_cast<long>(7 + client_id.size() + request.own_id.size());
  written.token.assign(written.packet.begin() + token_at, written.packet.end() - 16);
  return written;
}

const Bytes kOwnId = {9, 8, 7, 6, 5, 4, 3, 2};

TEST(quic_retry_integrity_tag_is_that_of_rfc_9001) {
  const Bytes original = {0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08};
  const Bytes packet = {0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5,
                        0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74, 0x6f, 0x6b, 0x65, 0x6e};
  const std::array<uint8_t, 16> expected = {0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82,
                                            0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24, 0x96, 0xba};
  CHECK(retry_integrity_tag(original, packet) == expected);
}

TEST(quic_retry_packet_has_the_fields_of_version_1) {
  const Bytes client = bytes_between(1, 5);
  const Bytes original = bytes_between(20, 20);
  const auto [packet, token] = written_for(kFrom, client, original);
  Bytes expected = {0xf0, 0, 0, 0, 1, 5, 1, 2, 3, 4, 5, 8};
  expected.insert(expected.end(), kOwnId.begin(), kOwnId.end());
  CHECK(Bytes(packet.begin(), packet.begin() + static_cast<long>(expected.size())) == expected);
  const auto tag = retry_integrity_tag(original, ByteView(packet).first(packet.size() - 16));
  CHECK(std::equal(tag.begin(), tag.end(), packet.end() - 16));
  CHECK_EQ(token.size(), 8u + 20 + 32);
  CHECK(Bytes(token.begin() + 8, token.end() - 32) == original);
}

TEST(quic_retry_packet_fits_with_the_longest_ids) {
  const auto [packet, token] = written_for(kFromIpv6, bytes_between(1, 20), bytes_between(40, 20));
  CHECK(packet.size() <= kRetryPacketBytesMax);
  CHECK(is_retry_token(token, kFromIpv6, kOwnId, kNow_ns, kKey));
}

TEST(quic_retry_token_is_for_one_address_one_id_and_a_time) {
  for (const Endpoint& from : {kFrom, kFromIpv6}) {
    const Bytes token = written_for(from, {}, bytes_between(1, 8)).token;
    CHECK(is_retry_token(token, from, kOwnId, kNow_ns, kKey));
    CHECK(is_retry_token(token, from, kOwnId, kNow_ns + kLifetime_ns, kKey));
    CHECK(!is_retry_token(token, from, kOwnId, kNow_ns + kLifetime_ns + 1, kKey));
    Endpoint other = from;
    other.port++;
    CHECK(!is_retry_token(token, other, kOwnId, kNow_ns, kKey));
    other = from;
    other.address[15]++;
    CHECK(!is_retry_token(token, other, kOwnId, kNow_ns, kKey));
    CHECK(!is_retry_token(token, from, bytes_between(1, 8), kNow_ns, kKey));
    CHECK(!is_retry_token(token, from, kOwnId, kNow_ns, RetryKey{}));
  }
}

TEST(quic_retry_token_is_refused_with_any_other_bit_or_length) {
  const Bytes token = written_for(kFrom, {}, bytes_between(1, 8)).token;
  for (size_t bit = 0; bit < 8 * token.size(); bit++) {
    Bytes changed = token;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    CHECK(!is_retry_token(changed, kFrom, kOwnId, kNow_ns, kKey));
  }
  for (size_t length = 0; length < token.size(); length++)
    CHECK(!is_retry_token(ByteView(token).first(length), kFrom, kOwnId, kNow_ns, kKey));
  CHECK(!is_retry_token(Bytes(2000), kFrom, kOwnId, kNow_ns, kKey));
}

}  // namespace
}  // namespace shredway::test
