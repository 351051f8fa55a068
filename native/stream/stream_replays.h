// Stream replays: which subscribers read the history before they continue live.
//
// A subscriber's filters belong to its replay until the replay has reached the end of the history.
// Live transactions leave these filters out meanwhile, because the replay will find them in the
// history. The deshred thread writes both, so the seam neither repeats nor loses a record. The
// control thread grants credit: a subscriber that reads slowly delays only its own replay.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <vector>

#include "stream/filter_index.h"

namespace shredway {

class StreamReplays {
 public:
  struct Replay {
    uint16_t id = 0;  // 0: the place is free
    uint8_t tier = 0;
    bool is_started = false;
    bool is_done = false;  // its subscriber is live, or was refused
    uint64_t from_slot = 0;
    uint64_t position = 0;    // in the history
    uint64_t sent_bytes = 0;  // counted as the control thread counts them
    std::bitset<kStreamFilterIds> filters;
  };

  // Any thread. Bytes that the replay may send since its beginning.
  void grant(uint16_t id, uint64_t bytes) {
    credits_[id % kStreamReplaysMax].store(bytes, std::memory_order_relaxed);
  }
  uint64_t credit_of(const Replay& replay) const {
    return credits_[replay.id % kStreamReplaysMax].load(std::memory_order_relaxed);
  }

  // Begins the replays of the index that are new, and ends those that it does not have.
  void use(const FilterIndex& index);
  // The next replay that is not done, in turn; nullptr: none.
  Replay* next();
  void finish(Replay& replay);
  bool owns(uint16_t filter) const { return owned_[filter]; }
  bool is_active() const { return active_ > 0; }

 private:
  void recount();

  std::array<Replay, kStreamReplaysMax> replays_{};
  std::array<std::atomic<uint64_t>, kStreamReplaysMax> credits_{};
  std::bitset<kStreamFilterIds> owned_;  // filters of replays that are not done
  size_t active_ = 0;
  size_t turn_ = 0;
};

}  // namespace shredway
