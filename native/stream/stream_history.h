// Stream history: what tiers decoded in the last two minutes, so that a subscriber can resume.
//
// A ring of records in the order of decoding: transactions, and the events of slots. A record is a
// StreamMessageHead and its content, without filters and loaded addresses. Memory is bounded by the
// capacity and touched as it is needed; the oldest records are dropped first. A slot is available
// only as a whole: a dropped record makes its slot and all lower ones unavailable. The deshred
// thread uses it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "stream/stream_ring.h"

namespace shredway {

class StreamHistory {
 public:
  static constexpr uint64_t kLifetime_ns = 120'000'000'000;
  static constexpr size_t kTiers = 8;
  struct Record {
    StreamMessageHead head;
    std::span<const uint8_t> content;  // valid until the next append
  };

  // In bytes, at least kBytesMin. Returns nullptr if there is no memory.
  static std::unique_ptr<StreamHistory> create(size_t capacity);
  static constexpr size_t kBytesMin = 1u << 20;

  // The tier is recorded from now on. Lower slots than `first_slot` are not available, because a
  // part of them may have passed; 0: unknown, the slot after the first one.
  void begin_tier(uint8_t tier, uint64_t first_slot) { oldest_[tier] = first_slot; }
  void append(StreamMessageHead head, std::span<const uint8_t> content);

  // Positions of the oldest record and after the newest one. They only grow.
  uint64_t begin() const { return tail_; }
  uint64_t end() const { return head_; }
  // Reads the record at `position`, in [begin, end), and moves the position to the next one.
  Record read(uint64_t& position) const;
  // The lowest slot of the tier that is available as a whole; 0: unknown.
  uint64_t oldest(uint8_t tier) const { return oldest_[tier]; }
  uint64_t bytes() const { return head_ - tail_; }

 private:
  struct Free {
    void operator()(uint8_t* bytes) const;
  };
  using Memory = std::unique_ptr<uint8_t[], Free>;
  StreamHistory(size_t capacity, Memory bytes) : capacity_(capacity), bytes_(std::move(bytes)) {}
  uint8_t* at(uint64_t position) const { return bytes_.get() + position % capacity_; }
  uint64_t to_end(uint64_t position) const { return capacity_ - position % capacity_; }
  uint64_t skip_gap(uint64_t position) const;
  void drop_oldest();

  const size_t capacity_;
  // From the kernel as it is touched, in huge pages where it has them: with small ones, page faults
  // were an eighth of the processor time of recording (2026-11, two vCPUs).
  Memory bytes_;
  uint64_t head_ = 0, tail_ = 0;
  std::array<uint64_t, kTiers> oldest_{};
};

}  // namespace shredway
