// Pending shreds: copies of shreds that wait for a signature check of their Merkle root.
//
// A source whose checks fail may cause only a few checks. Its other shreds wait here until a check
// of their root succeeds, which a second shred with that root and signature usually causes. Forged
// single shreds therefore cost few checks, and no shred of the source whose address they have.
// The oldest copy makes room for a new one. One per worker, used by its thread only; no allocation
// after construction.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "relay/source_table.h"
#include "shred/merkle.h"
#include "shred/wire.h"
#include "system/memory_lock.h"

namespace shredway {

class PendingShreds {
 public:
  static constexpr size_t kPlaces = 1024;
  static constexpr int64_t kKeptFor_ns = 100'000'000;

  struct Item {
    Source source;
    Shred shred;
    Root root;
    uint64_t received_ns;
    std::array<uint8_t, kPacketBytesMax> packet;
  };

  PendingShreds() : items_(std::make_unique<std::array<Item, kPlaces>>()) {}

  void lock_memory(MemoryLock& lock) const { lock.add(items_.get(), sizeof *items_); }

  bool empty() const { return count_ == 0; }
  // True if another shred of the same FEC set waits under this root, with the same signature.
  bool confirms(const Shred& shred, const Root& root, const uint8_t* signature) const;
  // Copies the shred. If this takes the place of another one, calls drop(source id) for that one.
  template <typename Drop>
  void add(const Source& source, const Shred& shred, const Root& root, const uint8_t* packet,
           uint64_t received_ns, Drop drop) {
    const size_t place = next_++ % kPlaces;
    Item& item = (*items_)[place];
    if (keys_[place] != kFree) drop(item.source.id);
    else count_++;
    keys_[place] = key_of(root);
    item.source = source;
    item.shred = shred;
    item.root = root;
    item.received_ns = received_ns;
    std::memcpy(item.packet.data(), packet, shred.bytes);
  }
  // Removes the shreds of the FEC set under this root and calls use(item) for each. An item stays
  // valid until the next add().
  template <typename Use>
  void take(const Shred& shred, const Root& root, Use use) {
    if (empty()) return;
    const uint64_t key = key_of(root);
    for (size_t place = 0; place < kPlaces; place++) {
      if (keys_[place] != key || !matches((*items_)[place], shred, root)) continue;
      free(place);
      use((*items_)[place]);
    }
  }
  // Removes the shreds that have waited for too long and calls drop(source id) for each.
  template <typename Drop>
  void expire(uint64_t now_ns, Drop drop) {
    for (size_t place = 0; place < kPlaces && !empty(); place++) {
      if (keys_[place] == kFree) continue;
      const Item& item = (*items_)[place];
      const auto age_ns = static_cast<int64_t>(now_ns - item.received_ns);
      if (age_ns >= 0 && age_ns < kKeptFor_ns) continue;
      free(place);
      drop(item.source.id);
    }
  }

 private:
  static constexpr uint64_t kFree = 0;
  static uint64_t key_of(const Root& root) { return load_u64(root.data()) | 1; }
  static bool matches(const Item& item, const Shred& shred, const Root& root) {
    return item.root == root && item.shred.slot == shred.slot &&
           item.shred.fec_set_index == shred.fec_set_index;
  }
  void free(size_t place) {
    keys_[place] = kFree;
    count_--;
  }

  std::array<uint64_t, kPlaces> keys_{};  // kFree or the key of the root, for a fast search
  std::unique_ptr<std::array<Item, kPlaces>> items_;
  size_t next_ = 0;
  size_t count_ = 0;
};

}  // namespace shredway
