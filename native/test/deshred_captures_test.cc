// The deshredder finds in real blocks what an independent decoder found.
//
// Real captures with their known answers: counts and the SHA-256 over all entry hashes and over all
// first signatures, for any order of shreds, and from any half of every set's shreds.
#include <algorithm>

#include "check.h"
#include "crypto/sha256.h"
#include "deshred_support.h"

namespace {

using namespace shredway;
using test::Bytes;
using test::DeshredRecorder;
using Packets = std::vector<Bytes>;

struct KnownBlock {
  std::vector<const char*> files;  // under testdata/shreds, data and code shreds
  size_t sets;
  uint64_t batches, entries, ticks, transactions;
  const char* entry_hashes;
  const char* first_signatures;
};

const KnownBlock kTestnetBlock = {
    {"sig-testnet-356797362/data.lpb", "sig-testnet-356797362/code-reconstructed.lpb"},
    31,
    15,
    2357,
    64,
    2293,
    "9ef7f1229b35a23aecf4ee02ea054d82690d401af29222b1f25e882790fb8b94",
    "806191400248c981f4a24cb3dec8e8614b36aea4549c316784833984f8397d3f"};
const KnownBlock kDemoBlock = {{"firedancer-demo/demo-shreds.lpb"},
                               8,
                               1,
                               64,
                               0,
                               1280,
                               "ccb72558835e51ee515f06f6cddf67ccc74106425e3f9c2e9157a47dfa68063d",
                               "84c0c3fe6ff049915f31547967d8038efef5c3c3afe782870f7173f793f26b90"};

const KnownBlock kMiddleOfBlock = {
    {"firedancer-testnet-385970984/chained_resigned.lpb"},
    5,
    4,
    37,
    31,
    44,
    "4fd59b2a243a32d92d4bb532361552eddcd6bb24841bfacf6daa531584ddf1c6",
    "54ea5a867a081eec38f2e72d345a2792c90aae87b53c62a71093310cc4b50b90"};

Packets packets_of(const KnownBlock& block) {
  Packets out;
  for (const char* file : block.files)
    for (Bytes& packet : test::read_lpb(test::testdata() + "/shreds/" + file))
      out.push_back(std::move(packet));
  return out;
}

std::string sha256_of(const std::string& bytes) {
  Sha256Digest digest;
  sha256(nullptr, 0, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digest);
  return test::hex(digest.data(), digest.size());
}

std::string from_hex(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return out;
}

void check_block(const KnownBlock& block, const Packets& packets) {
  DeshredRecorder sink;
  Deshredder deshredder({}, sink);
  uint64_t now_ns = 1;
  for (const Bytes& packet : packets) test::add_packet(deshredder, packet, now_ns++);
  const DeshredCounts& counts = deshredder.counts();
  CHECK_EQ(counts.batches, block.batches);
  CHECK_EQ(counts.entries, block.entries);
  CHECK_EQ(counts.transactions, block.transactions);
  CHECK_EQ(sink.ticks, block.ticks);
  CHECK_EQ(counts.sets_whole + counts.sets_recovered, block.sets);
  CHECK_EQ(counts.batches_malformed + counts.sets_refused + counts.sets_given_up, 0u);
  std::string hashes, signatures;
  for (const auto& [batch, batch_hashes] : sink.hashes) hashes += batch_hashes;
  auto order = sink.transactions;
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.batch_index < b.batch_index; });
  for (const auto& seen : order) signatures += from_hex(seen.signature);
  CHECK_EQ(sha256_of(hashes), block.entry_hashes);
  CHECK_EQ(sha256_of(signatures), block.first_signatures);
}

// Any 32 of each set's 64 shreds, in any order.
Packets half_of(Packets packets, std::mt19937& random) {
  std::shuffle(packets.begin(), packets.end(), random);
  std::map<uint32_t, unsigned> taken;
  std::erase_if(packets, [&](const Bytes& packet) {
    return taken[load_u32(&packet[offset::kFecSetIndex])]++ >= kFecSetShreds;
  });
  return packets;
}

void check_in_many_ways(const KnownBlock& block) {
  if (test::testdata().empty()) SKIP("needs the real captures");
  std::mt19937 random(11);
  Packets packets = packets_of(block);
  check_block(block, packets);
  std::reverse(packets.begin(), packets.end());
  check_block(block, packets);
  for (int round = 0; round < 5; round++) {
    std::shuffle(packets.begin(), packets.end(), random);
    check_block(block, packets);
  }
  if (packets.size() < block.sets * kFecSetLeaves) return;  // some never arrived
  for (int round = 0; round < 5; round++) check_block(block, half_of(packets, random));
  Packets code = packets;
  std::erase_if(code, [](const Bytes& packet) {
    return variant_of(packet[offset::kVariant]).type == ShredType::data;
  });
  check_block(block, code);
}

}  // namespace

TEST(deshred_captures_testnet_block) { check_in_many_ways(kTestnetBlock); }
TEST(deshred_captures_demo_block) { check_in_many_ways(kDemoBlock); }

// Recovered packets equal the leader's byte for byte, including proofs.
TEST(deshred_captures_recovered_packets_equal_the_originals) {
  if (test::testdata().empty()) SKIP("needs the real captures");
  for (const KnownBlock* block : {&kTestnetBlock, &kDemoBlock}) {
    std::mt19937 random(12);
    const Packets packets = packets_of(*block);
    std::map<std::string, Bytes> by_identity;
    const auto identity_of = [](const Bytes& packet) {
      return test::hex(&packet[offset::kVariant], offset::kVersion - offset::kVariant);
    };
    for (const Bytes& packet : packets) by_identity[identity_of(packet)] = packet;
    DeshredRecorder sink;
    Deshredder deshredder({}, sink);
    for (const Bytes& packet : half_of(packets, random)) test::add_packet(deshredder, packet, 1);
    CHECK(sink.recovered_shreds > block->sets * 20);
    for (const Bytes& packet : sink.recovered) {
      const Bytes& real = by_identity[identity_of(packet)];
      // The retransmitter's signature comes from any of the received shreds.
      const size_t proof_end = layout_of(variant_of(packet[offset::kVariant])).proof_end;
      CHECK(std::equal(packet.begin(), packet.begin() + long(proof_end), real.begin()));
    }
  }
}

// A capture that begins in the middle of its slot, with copies by many retransmitters: the
// beginning of its first batch is unknown.
TEST(deshred_captures_in_the_middle_of_a_slot) { check_in_many_ways(kMiddleOfBlock); }
