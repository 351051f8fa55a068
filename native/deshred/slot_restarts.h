// Slot restarts: where the block of a slot begins again.
//
// An update-parent marker (Alpenglow, SIMD-0337) abandons everything in its slot before its own
// batch: the leader began on a parent that lost, and begins again on another one. The marker may be
// decoded before or after the batches that it abandons. Used only by the deshred thread. Memory is
// constant; it holds a restart until another slot with a restart needs the place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "deshred/entry_stream.h"

namespace shredway {

// True for an update-parent marker whose payload has the known format.
bool is_update_parent(const BlockMarker& marker);

class SlotRestarts {
 public:
  static constexpr size_t kSlots = 4096;

  struct Restart {
    uint64_t slot = 0;
    uint64_t arrival_ns = 0;
    // First data shred of the marker's batch; 0: the entry is unused.
    uint32_t batch_index = 0;
    bool is_reported = true;
  };

  // Index of the batch where the slot's block begins; 0 unless a marker is known.
  uint32_t begin_of(uint64_t slot) const {
    const Restart& restart = restarts_[slot % kSlots];
    return restart.slot == slot ? restart.batch_index : 0;
  }
  // A higher slot keeps its entry. Of one slot, the highest batch counts.
  void add(uint64_t slot, uint32_t batch_index, uint64_t arrival_ns);

  // Calls report(restart) for each restart that was not reported yet, until it returns false.
  template <typename Report>
  void report(Report report) {
    for (size_t i = 0; unreported_ > 0 && i < kSlots; i++) {
      Restart& restart = restarts_[i];
      if (restart.is_reported) continue;
      if (!report(restart)) return;
      restart.is_reported = true;
      unreported_--;
    }
  }

 private:
  std::array<Restart, kSlots> restarts_{};
  size_t unreported_ = 0;
};

}  // namespace shredway
