// Signature checks of a worker: their order and number, pending shreds, and replaced signatures.
#include <algorithm>
#include <random>

#include "loopback_relay.h"

using namespace shredway;
using namespace shredway::test;

TEST(worker_altered_bytes_under_a_known_signature_cost_no_verification) {
  LoopbackRelay relayed;
  auto packets = make_slot({.slot = kSlot}).packets;
  relayed.tier1_source.send(relayed.in(), packets[0]);
  relayed.counts(1);
  for (size_t i = 1; i < 64; i++) {
    packets[i][600] ^= 0x10;
    relayed.tier1_source.send(relayed.in(), packets[i]);
  }
  const auto counts = relayed.counts(64);
  CHECK_EQ(counts.verdicts.at("root_mismatch"), 63u);
  CHECK_EQ(counts.signature_checks, 1u);
}

namespace {

Bytes forged_copy(Bytes packet, std::mt19937_64& random) {
  for (size_t at = 0; at < 64; at++) packet[at] = static_cast<uint8_t>(random());
  return packet;
}

// As above, and with another Merkle root.
Bytes forged_shred(const Bytes& packet, std::mt19937_64& random) {
  Bytes forged = forged_copy(packet, random);
  store(forged, 600, random());
  return forged;
}

}  // namespace

TEST(worker_with_a_backlog_limits_a_source_with_too_many_failed_checks) {
  WorkerOptions options = LoopbackRelay::default_worker();
  options.failed_checks_per_second = 10;
  LoopbackRelay relayed(options);
  std::mt19937_64 random(1);
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 16});
  std::vector<Bytes> forged;
  for (const Bytes& packet : slot.packets) forged.push_back(forged_shred(packet, random));
  // A check takes longer than a send, so packets queue up.
  for (const Bytes& packet : forged) relayed.tier1_source.send(relayed.in(), packet);
  for (const Bytes& packet : slot.packets) relayed.tier2_source.send(relayed.in(), packet);
  CHECK(sorted(relayed.tier2.receive(1024)) == sorted(slot.packets));
  auto counts = relayed.counts(2048);
  CHECK(counts.verdicts["source_over_budget"] > 0);
  CHECK_EQ(counts.verdicts["first"], 1024u);
}

TEST(worker_without_backlog_loses_no_real_shred_to_spoofed_forgeries) {
  WorkerOptions options = LoopbackRelay::default_worker();
  options.failed_checks_per_second = 10;
  LoopbackRelay relayed(options);
  std::mt19937_64 random(1);
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 2});
  for (size_t i = 0; i < 100; i++) {
    relayed.tier1_source.send(relayed.in(), forged_copy(slot.packets[i], random));
    relayed.counts(i + 1);
  }
  for (size_t i = 0; i < 128; i++) {
    relayed.tier1_source.send(relayed.in(), slot.packets[i]);
    if (i % 16 == 15) relayed.counts(100 + i + 1);
  }
  CHECK(sorted(relayed.tier1.receive(128)) == sorted(slot.packets));
  // The forged copies differ from the real shreds only by their signature. They arrive as real
  // shreds once the root is known.
  const auto counts = relayed.counts(228);
  CHECK(counts.signature_checks < 100u);
  CHECK_EQ(counts.verdicts.at("first"), 128u);
}

// Correct Ed25519 signing is deterministic. A leader who chooses other nonces can sign one root any
// number of times: these are five more signatures over the root of the set below, made by RFC
// 8032's equations with other nonces.
constexpr const char* kOtherSignatures[] = {
    "163674d784692904d04f731b8b170483997b732de0ed6b010eade67c08b25c04"
    "483d433723e5804c2d284941fb2e12b62923c8a14426071d3736a8c940ca910a",
    "a6127e1e8e2440fc2ba4ace2af433a220cab1e52031d8093c42cee276bfebcaa"
    "ac2f33c99479ebc03aa8b41a01e7edc398ad5069c81a28586e368d1352fffb02",
    "b7e68dc6ecba0eb18151ac2ca33fa6f2b3cfddd2856bc00fde0ea685eee82b3f"
    "031b12b99c6d82896e159ae0473622ab14e3f34e5df20543c2ca037e0e8dc10f",
    "716904ae995835e6e5dce5bca8e45c4bf394b02b17ffda40437a6fc42489161d"
    "bd403f29075356940d7f4da5e12293b6e1fa114f3f2213db2f2fa6e4fc647508",
    "1887d402bf0b03563c42a02421cd03e0cd15b078b16f345932c692f29350abd9"
    "ac6d4911763dbf25a98d045fb61bbd465b1d50f09421331822c8811b9cdfb70e"};

TEST(worker_accepts_any_signature_over_a_verified_root_and_sends_the_verified_one) {
  LoopbackRelay relayed;
  auto packets = make_slot({.slot = kSlot}).packets;
  for (size_t i = 0; i < packets.size(); i++) {
    const size_t which = i % 6;  // 0: the original signature
    for (size_t byte = 0; byte < kSignatureBytes && which > 0; byte++) {
      const std::string digits(kOtherSignatures[which - 1] + 2 * byte, 2);
      packets[i][byte] = static_cast<uint8_t>(std::stoi(digits, nullptr, 16));
    }
    relayed.tier1_source.send(relayed.in(), packets[i]);
  }
  const auto counts = relayed.counts(64);
  CHECK_EQ(counts.signature_checks, 1u);
  CHECK_EQ(counts.verdicts.at("first"), 64u);
  CHECK_EQ(counts.signatures_replaced, 64u - 11);  // the original signature is on eleven shreds
  CHECK(sorted(relayed.tier1.receive(64)) == sorted(make_slot({.slot = kSlot}).packets));
}
