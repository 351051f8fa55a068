// Streams: the part of the deshred thread that serves subscribers of decoded streams.
//
// The control plane publishes the filters of all subscribers and drains the messages that match
// them. The deshred thread decodes nothing for streams while there are no subscribers. It never
// waits for the control plane: a message that finds the ring full is lost and counted for each
// filter that it matched, so that its subscriber learns of the gap.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "stream/stream_history.h"
#include "stream/stream_replays.h"
#include "stream/stream_ring.h"
#include "stream/tier_stream.h"

namespace shredway {

// Numbers of lost messages since the start, in the layout that the control plane reads.
struct StreamLosses {
  std::array<uint64_t, kStreamFilterIds> by_filter{};
  std::array<uint64_t, kStreamTiersMax> entries{};  // batches, by tier
  std::array<uint64_t, kStreamTiersMax> events{};   // begin, end and restart of slots, by tier
};
inline constexpr size_t kStreamLossWords = kStreamFilterIds + 2 * kStreamTiersMax;
static_assert(sizeof(StreamLosses) == 8 * kStreamLossWords);

// Contents of the history, in the layout that the control plane reads.
struct StreamHistoryCounts {
  uint64_t bytes = 0;
  uint64_t replayed = 0;                           // messages since the start
  std::array<uint64_t, kStreamTiersMax> oldest{};  // first available slot by tier; 0: none
};
inline constexpr size_t kStreamHistoryWords = 2 + kStreamTiersMax;
static_assert(sizeof(StreamHistoryCounts) == 8 * kStreamHistoryWords);

class Streams final : private StreamSink {
 public:
  // ---- control thread ----

  // Replaces the filters of all subscribers. A message filters_applied with `generation` follows
  // the last one that was matched with the former filters; those after it carry `generation`.
  // Returns an error text, empty on success; the previous filters then stay in force.
  std::string publish(const uint8_t* table, size_t length, uint32_t generation);
  StreamRing& message_ring() { return ring_; }
  uint64_t lost() const { return lost_total_.load(std::memory_order_acquire); }
  void read_losses(StreamLosses& out) const;
  // Bits of the tiers with subscribers; the workers read it.
  const std::atomic<uint8_t>& wanted_tiers() const { return wanted_tiers_; }
  uint64_t messages() const { return messages_.load(std::memory_order_relaxed); }
  uint64_t repeated() const { return repeated_.load(std::memory_order_relaxed); }
  // Memory of the history, from the next publish on; 0: none.
  void set_history_bytes(size_t bytes) { history_bytes_.store(bytes, std::memory_order_relaxed); }
  // See StreamReplays; before the replay is published, and then as its subscriber reads.
  void grant_replay(uint16_t id, uint64_t bytes) { replays_.grant(id, bytes); }
  void read_history(StreamHistoryCounts& out) const;
  // Its calls belong to the same threads as those of this class.
  LookupResolver& lookups() { return lookups_; }

  // ---- deshred thread ----

  // Puts published filters and lookup tables into force.
  void update();
  bool is_active() const { return active_tiers_ != 0; }
  // Somebody waits for messages; otherwise the tiers are only recorded.
  bool is_live() const { return is_live_; }
  // For every shred, before add().
  void see(const Shred& shred) {
    if (shred.slot > newest_slot_) newest_slot_ = shred.slot;
  }
  // Continues one replay by a bounded part. Returns whether one of them progressed.
  bool replay_some();
  // `tiers`: bits of the tiers that this shred is new for.
  void add(const uint8_t* packet, const Shred& shred, uint8_t tiers, uint64_t received_ns);
  // True if messages were written since the last call.
  bool take_written();

 private:
  using LossCounter = std::atomic<uint64_t>;
  void on_message(const StreamMessageHead& head, std::span<const uint16_t> filters,
                  std::span<const uint8_t> content, std::span<const uint8_t> loaded) override;
  void on_record(const StreamMessageHead& head, std::span<const uint8_t> content) override;
  void use_history();
  void report_applied();
  bool replay(StreamReplays::Replay& replay);
  bool replay_record(StreamReplays::Replay& replay, const StreamHistory::Record& record);
  bool push_replayed(StreamReplays::Replay& replay, StreamMessageHead head,
                     std::span<const uint16_t> filters = {}, std::span<const uint8_t> content = {},
                     std::span<const uint8_t> loaded = {});
  bool finish(StreamReplays::Replay& replay, StreamMessageKind kind, uint64_t slot,
              uint64_t parent);
  void count_loss(const StreamMessageHead& head, std::span<const uint16_t> filters);

  std::mutex mutex_;
  std::unique_ptr<FilterIndex> published_;  // guarded by the mutex; nullptr: in force
  uint32_t published_generation_ = 0;       // guarded by the mutex
  std::atomic<bool> is_published_{false};
  std::atomic<uint8_t> wanted_tiers_{0};

  std::unique_ptr<FilterIndex> index_;  // in force; deshred thread
  uint32_t generation_ = 0;
  uint8_t active_tiers_ = 0;
  bool is_live_ = false;
  bool applied_waits_ = false;  // filters_applied found the ring full
  bool written_ = false;
  uint64_t newest_slot_ = 0;
  uint8_t history_tiers_ = 0;
  std::unique_ptr<StreamHistory> history_;  // nullptr: no tier is recorded
  std::vector<uint16_t> live_;              // filters of a message without those of replays
  StreamReplays replays_;
  std::atomic<size_t> history_bytes_{0};
  std::atomic<uint64_t> history_used_{0}, replayed_{0};
  std::array<std::atomic<uint64_t>, kStreamTiersMax> oldest_{};
  StreamRing ring_;
  std::array<LossCounter, kStreamFilterIds> lost_by_filter_{};
  std::array<LossCounter, kStreamTiersMax> lost_entries_{}, lost_events_{};
  LossCounter lost_total_{0};
  std::atomic<uint64_t> messages_{0}, repeated_{0};
  LookupResolver lookups_;
  std::array<std::unique_ptr<TierStream>, kStreamTiersMax> tiers_;  // nullptr: no subscriber
};

}  // namespace shredway
