// Both libraries and prepared keys verify alike, and refuse the same inputs.
//
// Known answers: RFC 8032, 7.1, tests 1 to 3. The small-order and non-canonical cases were computed
// from the definition with Python's integers.
#include "crypto/ed25519.h"

#include <cstring>
#include <string>
#include <thread>

#include "ed25519_support.h"

namespace {

using namespace shredway;
using namespace shredway::test;

struct KnownAnswer {
  const char *seed, *public_key, *message, *signature;
};
constexpr KnownAnswer kKnownAnswers[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b"
     "4"
     "6bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11"
     "d"
     "8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc"
     "6"
     "594a7c15e9716ed28dc027beceea1ec40a"},
};

}  // namespace

TEST(ed25519_known_answers) {
  const size_t libraries = on_each_library([] {
    for (const KnownAnswer& known : kKnownAnswers) {
      const Bytes message = unhex(known.message);
      const SigningKey key(array_of<32>(known.seed));
      CHECK(key.valid());
      CHECK_EQ(hex(key.public_key().data(), 32), known.public_key);
      Signature signature{};
      CHECK(key.sign(message.data(), message.size(), signature));
      CHECK_EQ(hex(signature.data(), 64), known.signature);
      CHECK(verifies(key.public_key(), signature, message));
    }
  });
  if (libraries == 0) SKIP("neither libsodium nor OpenSSL here");
}

TEST(ed25519_refuses_altered_bytes) {
  on_each_library([] {
    Bytes message(32, 0x5a);
    const SigningKey key(array_of<32>(kKnownAnswers[0].seed));
    Signature signature{};
    CHECK(key.sign(message.data(), message.size(), signature));
    const BothKeys verifying(key.public_key());
    for (size_t bit = 0; bit < 512; bit += 3) {
      Signature altered = signature;
      altered[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      CHECK(!verifying.verify(altered, message));
    }
    for (size_t bit = 0; bit < 256; bit += 3) {
      message[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      CHECK(!verifying.verify(signature, message));
      PublicKey other = key.public_key();
      other[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      message[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      CHECK(!verifies(other, signature, message));
    }
    CHECK(!verifying.verify(signature, Bytes(message.begin(), message.end() - 1)));
    // After all these failures the valid signature still verifies.
    CHECK(verifying.verify(signature, message));
  });
}

TEST(ed25519_refuses_a_non_canonical_s) {
  // S + L gives the same point; only S < L is a signature.
  const Bytes order = unhex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
  on_each_library([&] {
    for (const KnownAnswer& known : kKnownAnswers) {
      Signature signature = array_of<64>(known.signature);
      unsigned carry = 0;
      for (size_t i = 0; i < 32; i++) {
        carry += signature[32 + i] + order[i];
        signature[32 + i] = static_cast<uint8_t>(carry);
        carry >>= 8;
      }
      CHECK(!verifies(array_of<32>(known.public_key), signature, unhex(known.message)));
    }
  });
}

TEST(ed25519_refuses_a_signature_that_holds_only_after_multiplication_by_the_cofactor) {
  // R of a valid signature plus a point of order 8.
  const char* signature =
      "e31bf514eb41af934cdb61a8ae588b29deeaf21be78382d8b9ac13493f1c262e"
      "d2051cc8ace3e337ae629de88ccceb457a210e6a4361c102475456f6c0536806";
  on_each_library([&] {
    const SigningKey key(array_of<32>(kKnownAnswers[0].seed));
    CHECK(!verifies(key.public_key(), array_of<64>(signature), {}));
  });
}

TEST(ed25519_refuses_points_of_small_order) {
  on_each_library([] {
    // Key 1 (the neutral point), R = 1, S = 0 satisfies the equation for every message.
    for (const char* key : {"0100000000000000000000000000000000000000000000000000000000000000",
                            "0100000000000000000000000000000000000000000000000000000000000080",
                            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"}) {
      Signature signature{};
      signature[0] = 1;
      CHECK(!verifies(array_of<32>(key), signature, {1, 2, 3}));
      // The same for R = 1 B, S = 1, where R is a valid point.
      signature.fill(0x66);
      signature[0] = 0x58;
      std::memset(&signature[32], 0, 32);
      signature[32] = 1;
      CHECK(!verifies(array_of<32>(key), signature, {1, 2, 3}));
    }
    // R = 1 and S = SHA-512(R, A, message) * a: the owner of a key can make these; the network
    // refuses them too.
    const Signature small_r = array_of<64>(
        "0100000000000000000000000000000000000000000000000000000000000000"
        "e89fd5b931daddab2f977d4a894ff659c0f5fc89d151e84b7dd3f800d58b7903");
    CHECK(!verifies(array_of<32>(kKnownAnswers[0].public_key), small_r, {'s', 'm', 'a', 'l', 'l'}));
  });
}

TEST(ed25519_refuses_keys_that_are_not_points) {
  on_each_library([] {
    Signature signature = array_of<64>(kKnownAnswers[0].signature);
    PublicKey key{};
    for (int first = 0; first < 64; first++) {
      key.fill(0x33);
      key[0] = static_cast<uint8_t>(first);
      CHECK(!verifies(key, signature, {}));
    }
    CHECK(
        !verifies(array_of<32>("f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
                  signature, {}));
  });
}

TEST(ed25519_without_a_library) {
  const Ed25519Library before = ed25519_library();
  CHECK(ed25519_use(Ed25519Library::none));
  CHECK_EQ(std::string(ed25519_library_name()), "none");
  const SigningKey key(array_of<32>(kKnownAnswers[0].seed));
  Signature signature{};
  CHECK(!key.valid());
  CHECK(!key.sign(nullptr, 0, signature));
  CHECK(!verifies(array_of<32>(kKnownAnswers[0].public_key),
                  array_of<64>(kKnownAnswers[0].signature), {}));
  ed25519_use(before);
}

TEST(ed25519_one_key_on_several_threads_and_moved) {
  on_each_library([] {
    const KnownAnswer& known = kKnownAnswers[2];
    const Bytes message = unhex(known.message);
    const Signature signature = array_of<64>(known.signature);
    VerifyingKey first(array_of<32>(known.public_key));
    VerifyingKey key(array_of<32>(kKnownAnswers[0].public_key));
    key = std::move(first);
    const VerifyingKey moved(std::move(key));
    std::vector<std::thread> threads;
    std::array<int, 4> verified{};
    for (int& count : verified)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; i++)
          count += moved.verify(signature.data(), message.data(), message.size());
      });
    for (std::thread& thread : threads) thread.join();
    for (const int count : verified) CHECK_EQ(count, 50);
  });
}
