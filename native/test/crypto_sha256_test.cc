// sha256 gives FIPS 180-4 digests for every length, split and lane, portable and accelerated.
//
// Known answers: FIPS 180-4 examples; the two digests of digests were computed with Python's
// hashlib over the same bytes.
#include "crypto/sha256.h"

#include <algorithm>
#include <string>

#include "check.h"

namespace {

using namespace shredway;
using test::hex;
using Bytes = std::vector<uint8_t>;

Bytes pattern(size_t length) {
  Bytes out(length);
  for (size_t i = 0; i < length; i++) out[i] = static_cast<uint8_t>(i * 131 + 7 + (i >> 8) * 17);
  return out;
}

std::string digest_hex(const Bytes& message) {
  Sha256Digest digest;
  sha256(nullptr, 0, message.data(), message.size(), digest);
  return hex(digest.data(), digest.size());
}

// Runs `body` with the portable code and, if the processor has them, with the SHA instructions.
template <typename Body>
void on_each_path(Body body) {
  for (const bool portable : {true, false}) {
    sha256_force_portable(portable);
    body();
  }
}

std::string digest_of_digests(size_t first, size_t end) {
  Bytes digests;
  for (size_t length = first; length < end; length++) {
    const Bytes message = pattern(length);
    Sha256Digest digest;
    sha256(message.data(), 0, message.data(), length, digest);
    digests.insert(digests.end(), digest.begin(), digest.end());
  }
  return digest_hex(digests);
}

}  // namespace

TEST(sha256_known_answers) {
  on_each_path([] {
    CHECK_EQ(digest_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_EQ(digest_hex({'a', 'b', 'c'}),
             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    CHECK_EQ(digest_hex({two_blocks.begin(), two_blocks.end()}),
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK_EQ(digest_hex(Bytes(1000000, 'a')),
             "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  });
}

TEST(sha256_every_length) {
  on_each_path([] {
    CHECK_EQ(digest_of_digests(0, 301),
             "b9873bc35a8f9ddeb93c60db11be22344b2b5a55411ceaa36861d65d172c8c75");
    CHECK_EQ(digest_of_digests(1000, 1201),
             "f9321501f6f4105520d950db365ad72825ed29035705f25894bc0f1a19d0a933");
  });
}

TEST(sha256_every_split_into_prefix_and_body) {
  on_each_path([] {
    for (const size_t length : {0u, 1u, 55u, 56u, 63u, 64u, 65u, 119u, 120u, 128u, 200u, 259u}) {
      const Bytes message = pattern(length);
      const std::string expected = digest_hex(message);
      for (size_t prefix = 0; prefix <= length; prefix++) {
        // Copies of exact size, so that AddressSanitizer detects any read beyond.
        const Bytes head(message.begin(), message.begin() + static_cast<ptrdiff_t>(prefix));
        const Bytes body(message.begin() + static_cast<ptrdiff_t>(prefix), message.end());
        Sha256Digest digest;
        sha256(head.data(), head.size(), body.data(), body.size(), digest);
        CHECK_EQ(hex(digest.data(), digest.size()), expected);
      }
    }
  });
}

TEST(sha256_lanes_of_equal_and_different_length) {
  constexpr size_t kLengths[] = {0, 1, 37, 38, 63, 64, 120, 128, 955, 1019, 1044, 1200};
  constexpr size_t kPrefixes[] = {0, 26, 64, 90};
  on_each_path([&] {
    uint32_t random = 1;
    for (int round = 0; round < 400; round++) {
      const size_t count = 1 + static_cast<size_t>(round) % kSha256Lanes;
      Bytes prefixes[kSha256Lanes], bodies[kSha256Lanes];
      Sha256Input inputs[kSha256Lanes];
      Sha256Digest digests[kSha256Lanes];
      for (size_t i = 0; i < count; i++) {
        random = random * 1664525 + 1013904223;
        prefixes[i] = pattern(kPrefixes[random >> 20 & 3]);
        bodies[i] = pattern(kLengths[(random >> 24) % std::size(kLengths)]);
        inputs[i] = {prefixes[i].data(), prefixes[i].size(), bodies[i].data(), bodies[i].size()};
      }
      sha256_lanes(inputs, count, digests);
      for (size_t i = 0; i < count; i++) {
        Bytes whole = prefixes[i];
        whole.insert(whole.end(), bodies[i].begin(), bodies[i].end());
        CHECK_EQ(hex(digests[i].data(), 32), digest_hex(whole));
      }
    }
  });
}

TEST(sha256_padded_lanes) {
  on_each_path([] {
    for (size_t count = 1; count <= kSha256Lanes; count++) {
      Bytes padded[kSha256Lanes];
      const uint8_t* messages[kSha256Lanes];
      Sha256Digest digests[kSha256Lanes];
      for (size_t i = 0; i < count; i++) {  // 66 + i bytes in two blocks
        padded[i] = pattern(66 + i);
        padded[i].push_back(0x80);
        padded[i].resize(128);
        padded[i][126] = static_cast<uint8_t>((66 + i) * 8 >> 8);
        padded[i][127] = static_cast<uint8_t>((66 + i) * 8);
        messages[i] = padded[i].data();
      }
      sha256_padded_lanes(messages, 2, count, digests);
      for (size_t i = 0; i < count; i++)
        CHECK_EQ(hex(digests[i].data(), 32), digest_hex(pattern(66 + i)));
    }
  });
}

TEST(sha256_path_is_switched) {
  sha256_force_portable(true);
  CHECK(!sha256_is_accelerated());
  sha256_force_portable(false);
  if (!sha256_is_accelerated()) SKIP("processor without SHA instructions");
}
