// Tier stream: decodes the shreds of one tier's sources for the subscribers of that tier.
//
// It exists while the tier has subscribers, and gets exactly the shreds that the tier's
// destinations get. A subscriber therefore receives nothing that only sources of other tiers, or
// sources for own use, delivered, and recovered shreds only if the tier's own shreds suffice. The
// deshred thread uses it.
#pragma once

#include <array>
#include <bitset>
#include <vector>

#include "deshred/deshredder.h"
#include "deshred/slot_restarts.h"
#include "stream/filter_index.h"
#include "stream/lookup_resolver.h"
#include "stream/stream_history.h"
#include "stream/stream_ring.h"

namespace shredway {

// Receives messages with the filters that they matched, and the addresses that a transaction loads.
class StreamSink {
 public:
  virtual void on_message(const StreamMessageHead& head, std::span<const uint16_t> filters,
                          std::span<const uint8_t> content, std::span<const uint8_t> loaded) = 0;
  // For the history, before the message. Each transaction of a slot is recorded once.
  virtual void on_record(const StreamMessageHead& head, std::span<const uint8_t> content) = 0;

 protected:
  ~StreamSink() = default;
};

// Signatures that were sent, with slot and batch. A block contains a transaction once, but a leader
// may repeat it. A newer signature overwrites the one in its place. On a chain with block markers,
// a transaction may come again in a later batch of its slot: a marker that is decoded later may
// withdraw the earlier one.
class SentSignatures {
 public:
  explicit SentSignatures(const HashKey& key) : key_(key), sent_(kPlaces) {}
  // Returns false if the signature was recorded in this slot, in batch `begin` or later, unless
  // `may_restart` and this batch is a later one.
  bool record(const uint8_t* signature, const BatchPlace& place, uint32_t begin, bool may_restart);

 private:
  static constexpr size_t kPlaces = 1u << 16;
  struct Sent {
    uint64_t hash = 0, slot = 0;
    uint32_t batch_index = 0;
  };
  HashKey key_;
  std::vector<Sent> sent_;
};

class TierStream final : private DeshredSink {
 public:
  // `sink` and `lookups` must outlive it.
  TierStream(uint8_t tier, StreamSink& sink, LookupResolver& lookups);

  // `index` must stay valid until the next call.
  void use(FilterIndex& index);
  // A shred that the tier's sources delivered, once.
  void add(const uint8_t* packet, const Shred& shred, uint64_t received_ns) {
    deshredder_.add(packet, shred, received_ns);
  }
  uint64_t repeated() const { return repeated_; }  // transactions that a block repeated

  // A transaction of the history with the filters that it matches now.
  struct Replayed {
    StreamMessageHead head;
    std::span<const uint16_t> filters;
    std::span<const uint8_t> loaded;
  };
  // Returns false if it matches none of `wanted`, or if an update-parent marker abandons it. The
  // result is valid until the next call of this class.
  bool match_record(const StreamHistory::Record& record,
                    const std::bitset<kStreamFilterIds>& wanted, Replayed& out);

 private:
  void on_entry(const BatchPlace& place, const Entry&) override {
    if (place.batch_index == 0) has_plain_blocks_ = true;
  }
  void on_transaction(const BatchPlace& place, const EntryTransaction& transaction) override;
  void on_marker(const BatchPlace& place, const BlockMarker& marker) override;
  void on_recovered(const FecSet&, uint64_t) override {}
  void on_batch(const BatchPlace& place, std::span<const uint8_t> bytes) override;
  void on_slot_begin(const SlotBegin& begin) override;
  void on_slot_complete(const BatchPlace& place) override;
  StreamMessageHead head_of(StreamMessageKind kind, const BatchPlace& place) const;
  void send_event(const StreamMessageHead& head, std::span<const uint8_t> content = {});
  bool is_recorded() const { return index_->history_tiers() >> tier_ & 1; }

  const uint8_t tier_;
  StreamSink& sink_;
  LookupResolver& lookups_;
  FilterIndex* index_ = nullptr;
  SlotRestarts restarts_;
  SentSignatures sent_;
  std::vector<uint16_t> matched_;
  std::array<uint64_t, Deshredder::kSlots> begun_{};  // slots whose beginning was reported
  bool has_plain_blocks_ = false;                     // a block began without a marker
  bool has_markers_ = false;                          // a block contained a marker
  uint64_t repeated_ = 0;
  Deshredder deshredder_;
};

}  // namespace shredway
