// The project's entries and transactions agree with those that an independent checker found in real
// shreds.
//
// Reads the captures (SHREDWAY_TESTDATA): batches from data shreds, fed in random pieces; counts,
// hashes and first signatures against kat.json. It verifies every signature of every transaction,
// which succeeds only if the offsets of message, keys and signatures are right.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "check.h"
#include "crypto/ed25519.h"
#include "crypto/sha256.h"
#include "shred/reed_solomon.h"
#include "transaction/inspector.h"
#include "transaction_support.h"

namespace {

using namespace shredway;
using namespace shredway::test;

struct Capture {
  const char* folder;
  const char* name;
  // Known counts of the captures that are not in kat.json.
  size_t batches, entries, transactions;
};
constexpr Capture kCaptures[] = {
    {"firedancer-demo", "demo-shreds", 1, 64, 1280},
    {"firedancer-testnet-385970984", "chained_resigned", 4, 37, 44},
    {"sig-testnet-356797362", "data", 15, 2357, 2293},
    {"sig-agave-fec34", "fec34", 1, 200, 100},
    {"firedancer-localnet", "localnet-slot0", 1, 64, 0},
    {"firedancer-localnet", "localnet-slot50", 8, 65, 1},
    {"radiance-mainnet-102815960", "legacy-shreds", 574, 881, 3177},
};

// The value of one field in the `deshred` object of a capture in kat.json.
std::string known(const Capture& capture, const std::string& field) {
  const Bytes bytes =
      read_file(testdata() + "/shreds/" + capture.folder + std::string("/kat.json"));
  const std::string text(bytes.begin(), bytes.end());
  size_t at = text.find('"' + std::string(capture.name) + "\": {");
  at = at == std::string::npos ? at : text.find("\"deshred\": {", at);
  at = at == std::string::npos ? at : text.find('"' + field + "\": ", at);
  if (at == std::string::npos) return "no " + field;
  const size_t begin = text.find_first_not_of(" \"", at + field.size() + 3);
  return text.substr(begin, text.find_first_of("\",\n}", begin) - begin);
}

// ---- recovery of missing data shreds ----

using Shards = std::map<size_t, Bytes>;  // by leaf: 0..31 data, 32..63 code

// Recovers the missing shards of a set with enough shards.
void recover(Shards& shards) {
  if (shards.size() < kFecSetShreds) return;
  const size_t bytes = shards.begin()->second.size();
  std::array<bool, kFecSetLeaves> present;
  std::array<uint8_t*, kFecSetLeaves> pointers;
  for (size_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    present[leaf] = shards.contains(leaf);
    shards[leaf].resize(bytes);
    pointers[leaf] = shards[leaf].data();
  }
  const ReedSolomon reed_solomon(kFecSetShreds, kFecSetShreds);
  CHECK(reed_solomon.recover(pointers.data(), present.data(), bytes));
}

// ---- batches ----

struct DataShred {
  Bytes body;
  bool completes_batch;
};
using DataShreds = std::map<uint32_t, DataShred>;  // by index

// `from_variant`: the shred from its variant byte on.
DataShred data_shred(const uint8_t* from_variant, size_t length) {
  const uint8_t* packet = from_variant - offset::kVariant;
  const size_t end = std::min<size_t>(load_u16(packet + offset::kSize), length + offset::kVariant);
  return {Bytes(packet + kDataHeaderBytes, packet + end),
          (packet[offset::kFlags] & kFlagDataComplete) != 0};
}

DataShreds data_shreds(const Capture& capture) {
  DataShreds shreds;
  std::map<uint32_t, Shards> sets;
  for (const Bytes& packet : read_lpb(testdata() + "/shreds/" + capture.folder + "/" +
                                      std::string(capture.name) + ".lpb")) {
    const uint8_t variant = packet[offset::kVariant];
    const uint32_t index = load_u32(&packet[offset::kIndex]);
    const bool is_data = variant == 0xa5 || (variant & 0xc0) == 0x80;
    if (is_data)
      shreds.emplace(index, data_shred(&packet[offset::kVariant], packet.size() - kSignatureBytes));
    if ((variant & 0x0f) != kProofEntries) continue;
    const Layout layout = layout_of(variant_of(variant));
    const size_t leaf = index % kFecSetShreds + (is_data ? 0 : kFecSetShreds);
    sets[load_u32(&packet[offset::kFecSetIndex])][leaf] =
        Bytes(packet.begin() + long(is_data ? kSignatureBytes : kCodeHeaderBytes),
              packet.begin() + layout.body_end);
  }
  for (auto& [first, set] : sets) {
    recover(set);
    for (uint32_t leaf = 0; leaf < kFecSetShreds && set.contains(leaf); leaf++)
      shreds.emplace(first + leaf, data_shred(set[leaf].data(), set[leaf].size()));
  }
  return shreds;
}

// From the first shred of the slot, or the first one after a DATA_COMPLETE.
std::vector<Bytes> batches(const DataShreds& shreds) {
  std::vector<Bytes> complete;
  Bytes batch;
  bool open = shreds.begin()->first == 0;
  uint32_t next = shreds.begin()->first;
  for (const auto& [index, shred] : shreds) {
    CHECK_EQ(index, next++);
    batch.insert(batch.end(), shred.body.begin(), shred.body.end());
    if (!shred.completes_batch) continue;
    if (open) complete.push_back(batch);
    batch.clear();
    open = true;
  }
  return complete;
}

// ---- content of batches ----

class CheckingSink final : public EntrySink {
 public:
  size_t entries = 0, ticks = 0, transactions = 0, verified = 0, refused = 0;
  Bytes hashes, first_signatures;
  void on_entry(const Entry& entry) override {
    entries++;
    ticks += entry.transaction_count == 0;
    hashes.insert(hashes.end(), entry.hash, entry.hash + kHashBytes);
  }
  void on_transaction(const EntryTransaction& entry_transaction) override {
    const Transaction& t = entry_transaction.transaction;
    const uint8_t* bytes = entry_transaction.bytes;
    transactions++;
    CHECK_EQ(t.signature_count, uint16_t{t.required_signatures});
    CHECK(t.signature_count <= t.key_count);
    check_inspector(bytes, t);
    first_signatures.insert(first_signatures.end(), bytes + t.signatures_begin,
                            bytes + t.signatures_begin + kTransactionSignatureBytes);
    for (size_t i = 0; i < t.signature_count; i++) {
      PublicKey key;
      std::memcpy(key.data(), bytes + t.keys_begin + i * kPublicKeyBytes, kPublicKeyBytes);
      const bool holds = VerifyingKey(key).verify(
          bytes + t.signatures_begin + i * kTransactionSignatureBytes, bytes + t.message_begin,
          size_t{t.message_end} - t.message_begin);
      (holds ? verified : refused)++;
    }
  }
  void on_marker(const BlockMarker&) override { CHECK(false); }

 private:
  // Every transaction of a real block must be accepted.
  void check_inspector(const uint8_t* bytes, const Transaction& transaction) {
    Transaction again{};
    TransactionFacts facts;
    TransactionFault fault;
    (void)inspector_.inspect(bytes, transaction.bytes, again, facts, fault);
    CHECK_EQ(std::string(transaction_refusal_name(fault.refusal)), "accepted");
    CHECK_EQ(difference(transaction, again), "");
  }

  const TransactionInspector inspector_{{}, {}};
};

std::string sha256_hex(const Bytes& bytes) {
  Sha256Digest digest;
  sha256(nullptr, 0, bytes.data(), bytes.size(), digest);
  return hex(digest.data(), digest.size());
}

}  // namespace

TEST(transaction_captures_decode_to_the_known_values) {
  if (testdata().empty()) SKIP("no testdata");
  std::mt19937_64 random(963);
  for (const Capture& capture : kCaptures) {
    CheckingSink sink;
    EntryStream stream;
    const std::vector<Bytes> complete = batches(data_shreds(capture));
    CHECK_EQ(complete.size(), capture.batches);
    for (const Bytes& batch : complete) {
      stream.reset();
      const uint64_t entries_before = sink.entries;
      for (size_t at = 0; at < batch.size();) {
        const size_t piece = std::min<size_t>(random() % 964, batch.size() - at);
        CHECK(stream.feed(batch.data() + at, piece, sink));
        at += piece;
      }
      CHECK(stream.end(sink));
      CHECK_EQ(stream.entries(), sink.entries - entries_before);
    }
    CHECK_EQ(sink.entries, capture.entries);
    CHECK_EQ(sink.transactions, capture.transactions);
    CHECK_EQ(std::to_string(sink.entries), known(capture, "entries"));
    CHECK_EQ(std::to_string(sink.ticks), known(capture, "ticks"));
    CHECK_EQ(std::to_string(sink.transactions), known(capture, "txs"));
    CHECK_EQ(std::to_string(sink.verified), known(capture, "txSigsVerified"));
    CHECK_EQ(sink.refused, size_t{0});
    CHECK_EQ(sha256_hex(sink.hashes), known(capture, "sha256EntryHashes"));
    CHECK_EQ(sha256_hex(sink.first_signatures), known(capture, "sha256TxSig0"));
  }
}

// The network's pieces, one data shred body each, and random pieces.
TEST(transaction_captures_same_events_in_any_pieces) {
  if (testdata().empty()) SKIP("no testdata");
  std::mt19937_64 random(964);
  for (const Capture& capture : kCaptures) {
    for (const Bytes& batch : batches(data_shreds(capture))) {
      const Report whole = read_batch(batch, std::vector<size_t>{});
      CHECK(whole.fed && whole.ended);
      for (const size_t piece_max : {40, 400, 963})
        CHECK(read_batch(batch, random, piece_max) == whole);
    }
  }
}
