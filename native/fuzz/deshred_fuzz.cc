// Fuzz target: shreds that a hostile leader signed, in any order, for a deshredder with little
// memory.
//
// The relay forwards only authentic shreds, but a leader may sign any bytes. The input therefore
// chooses fields and bodies of packets that follow the static rules, and their Merkle proofs are
// computed. No access may be out of bounds; each transaction is reported once.
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "deshred/deshredder.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

class Sink final : public DeshredSink {
 public:
  void on_entry(const BatchPlace& place, const Entry&) override { require(place.slot > 0); }
  void on_transaction(const BatchPlace& place, const EntryTransaction& seen) override {
    require(place.batch_index % kFecSetShreds == 0 && place.shred_index >= place.batch_index);
    Transaction again;
    require(parse_transaction(seen.bytes, seen.transaction.bytes, again) == ParseResult::complete);
    const std::string identity = std::to_string(place.slot) + " " +
                                 std::to_string(place.batch_index) + " " +
                                 std::to_string(seen.ordinal);
    require(reported_.insert(identity).second);
  }
  void on_marker(const BatchPlace&, const BlockMarker&) override {}
  void on_recovered(const FecSet& set, uint64_t missing) override {
    for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
      if (!(missing >> leaf & 1)) continue;
      Shred shred;
      require(check_packet(set.packet(leaf), leaf_shred_bytes(leaf), shred) == Verdict::first);
    }
  }

 private:
  std::set<std::string> reported_;
};

// Reads bytes of the input; zeros after its end.
class Input {
 public:
  Input(const uint8_t* bytes, size_t length) : bytes_(bytes), length_(length) {}
  bool ended() const { return length_ == 0; }
  uint8_t byte() {
    if (ended()) return 0;
    length_--;
    return *bytes_++;
  }
  void fill(uint8_t* to, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = byte();
  }

 private:
  const uint8_t* bytes_;
  size_t length_;
};

void store(uint8_t* to, uint64_t value, size_t bytes) { std::memcpy(to, &value, bytes); }

// One packet: one of a few slots and sets, any leaf, a body that repeats up to 40 bytes of the
// input.
void make_packet(Input& input, uint8_t* packet) {
  const uint8_t where = input.byte();
  const auto leaf = static_cast<uint8_t>(input.byte() % kFecSetLeaves);
  const uint8_t kind = input.byte();
  const bool is_data = leaf < kFecSetShreds;
  const bool resigned = (kind & 1) != 0;
  const uint32_t fec_set_index = (where >> 2 & 7) * kFecSetShreds;
  const uint64_t slot = 1 + (where & 3) + (where & 0x20 ? Deshredder::kSlots : 0);
  std::memset(packet, 0, kPacketBytesMax);
  packet[0] = static_cast<uint8_t>(where >> 6);  // two signatures per set
  packet[offset::kVariant] =
      static_cast<uint8_t>(is_data ? (resigned ? 0xb6 : 0x96) : (resigned ? 0x76 : 0x66));
  store(packet + offset::kSlot, slot, 8);
  store(packet + offset::kIndex, fec_set_index + leaf % kFecSetShreds, 4);
  store(packet + offset::kFecSetIndex, fec_set_index, 4);
  uint8_t pattern[40];
  const size_t pattern_bytes = kind >> 2 & 31 ? (kind >> 2 & 31) + 8u : 0;
  input.fill(pattern, pattern_bytes);
  const size_t begin = is_data ? kDataHeaderBytes : kCodeHeaderBytes;
  const Layout layout = layout_of(variant_of(packet[offset::kVariant]));
  for (size_t i = begin; i < layout.body_end && pattern_bytes > 0; i++)
    packet[i] = pattern[(i - begin) % pattern_bytes];
  if (is_data) {
    store(packet + offset::kParentOffset, 1, 2);
    const bool last = leaf == kFecSetShreds - 1;
    packet[offset::kFlags] = last && (kind & 2) ? kFlagDataComplete : 0;
    const size_t space = layout.body_end - begin;
    store(packet + offset::kSize, begin + std::min<size_t>(space, input.byte() * 5u), 2);
  } else {
    store(packet + offset::kDataCount, kFecSetShreds, 2);
    store(packet + offset::kCodeCount, kFecSetShreds, 2);
    store(packet + offset::kPosition, leaf - kFecSetShreds, 2);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  Sink sink;
  Input input(bytes, length);
  Deshredder deshredder({6, 4, 1000}, sink);
  uint64_t now_ns = 1;
  while (!input.ended()) {
    uint8_t packet[kPacketBytesMax];
    make_packet(input, packet);
    Shred shred;
    require(check_packet(packet, sizeof packet, shred) == Verdict::first);
    const DeshredCounts before = deshredder.counts();
    deshredder.add(packet, shred, now_ns);
    const DeshredCounts& after = deshredder.counts();
    // Each shred is counted exactly once as accepted, late or conflicting.
    require(before.shreds + before.shreds_late + before.shreds_conflicting + 1 ==
            after.shreds + after.shreds_late + after.shreds_conflicting);
    now_ns += input.byte() * 20'000'000ull;
  }
  return 0;
}
