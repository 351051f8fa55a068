// Stream ring: messages of streams on their way from the deshred thread to the control plane.
//
// One writing and one reading thread, without locks or waiting. A message is a header, the ids of
// the filters that it matched, its content, and the addresses that a transaction loads. A message
// that finds the ring full is lost; the writer counts it for every filter that it matched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "stream/lookup_resolver.h"
#include "system/named_enum.h"

namespace shredway {

// X(name): content of the message.
#define SHREDWAY_STREAM_MESSAGES(X)                                                                \
  X(transaction)    /* wire format of a transaction */                                             \
  X(entries)        /* bytes of a batch, as the leader wrote them */                               \
  X(slot_begin)     /* the first shred of a slot arrived; `parent` is 0 if it is unknown */        \
  X(slot_complete)  /* all batches of a slot were read */                                          \
  X(restart)        /* update-parent marker: what precedes batch_index in the slot is withdrawn;   \
                       32 bytes of the parent's block id */                                        \
  X(replay_end)     /* the subscriber of the replay is live from now on; `parent` is the number of \
                      events that its tier lost before */                                          \
  X(replay_refused) /* the history begins at `slot` (0: unknown) and ends at `parent` */           \
  X(replay_overtaken) /* what the replay needed next was dropped */                                \
  X(filters_applied)  /* no later message was matched with filters before `generation` */

SHREDWAY_NAMED_ENUM(StreamMessageKind, uint8_t, kStreamMessageKindCount, stream_message_name,
                    SHREDWAY_STREAM_MESSAGES)

// In the layout that the control plane reads. The filter ids (u16 each), the content and the loaded
// addresses (32 bytes each, writable ones first) follow, and zero bytes up to a multiple of 8.
struct StreamMessageHead {
  uint32_t bytes;  // of the whole message
  StreamMessageKind kind;
  uint8_t tier;
  uint16_t filter_count;
  uint64_t slot;
  uint64_t parent;      // parent slot; of slot_begin and restart
  uint64_t arrival_ns;  // receive time (CLOCK_REALTIME) of the last shred that it needed
  uint32_t generation;  // of the filters that it was matched with
  uint32_t batch_index;
  uint32_t ordinal;      // index among the transactions of the batch
  uint32_t shred_index;  // data shred that completed it
  uint32_t content_bytes;
  uint8_t is_vote;
  LookupState lookups;
  uint16_t loaded_writable;  // loaded addresses; 0 unless all of them are known
  uint16_t loaded_readonly;
  uint16_t replay;  // only the subscriber of this replay gets the message; 0: it is live
  uint16_t unused[2];
};
static_assert(sizeof(StreamMessageHead) == 64);

class StreamRing {
 public:
  static constexpr size_t kBytes = 16u << 20;  // touched as it is needed
  static constexpr size_t kMessageBytesMax = kBytes / 4;

  // Writer. Fills in `bytes`, `filter_count` and `content_bytes`; the length of `loaded` must be
  // that of the head. Returns false if the ring is full.
  bool push(StreamMessageHead head, std::span<const uint16_t> filters,
            std::span<const uint8_t> content, std::span<const uint8_t> loaded = {});
  // Reader. Moves whole messages, oldest first, and returns the number of bytes. A message that
  // does not fit into `max` stays. Stops after the message that reaches `enough` bytes.
  size_t drain(uint8_t* out, size_t max, size_t enough = SIZE_MAX);
  // Reader. Length of the oldest message; 0: the ring is empty.
  size_t next_bytes();

 private:
  uint8_t* at(uint64_t position) const { return bytes_.get() + position % kBytes; }
  static size_t to_end(uint64_t position) { return kBytes - position % kBytes; }

  std::unique_ptr<uint8_t[]> bytes_{new uint8_t[kBytes]};
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace shredway
