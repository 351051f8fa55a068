// Event ring: rare events that the control plane reads one by one.
//
// One per worker: the worker pushes, the control plane's thread drains. Bounded: the worker counts
// an event that finds the ring full as lost. A shred causes at most one event.
#pragma once

#include <cstddef>
#include <cstdint>

#include "system/named_enum.h"
#include "system/spsc_ring.h"

namespace shredway {

// X(name): the comment says how subject, slot, FEC set index and detail are used.
#define SHREDWAY_EVENTS(X)                                                        \
  X(equivocation)    /* subject: source id; slot, FEC set index; detail: index */ \
  X(icmp_error)      /* subject: destination id; detail: errno */                 \
  X(window_anchored) /* subject: worker; slot: the highest known slot */

SHREDWAY_NAMED_ENUM(EventKind, uint32_t, kEventKindCount, event_name, SHREDWAY_EVENTS)

struct Event {
  uint64_t time_ns;  // CLOCK_REALTIME of the packet or of the discovery
  uint64_t slot;
  EventKind kind;
  uint32_t subject;
  uint32_t fec_set_index;
  uint32_t detail;
};
static_assert(sizeof(Event) == 32);

inline constexpr size_t kEventsMax = 1024;
using EventRing = SpscRing<Event, kEventsMax>;

}  // namespace shredway
