#include "system/kernel_clock.h"

#include <sys/timex.h>

namespace shredway {

KernelClock read_kernel_clock() {
  timex state = {};  // modes 0: read only
  const int clock_state = adjtimex(&state);
  if (clock_state < 0) return {};
  KernelClock clock;
  clock.known = true;
  clock.synchronised = clock_state != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  clock.offset_ns = (state.status & STA_NANO) != 0 ? state.offset : state.offset * 1000;
  clock.estimated_error_us = static_cast<uint64_t>(state.esterror);
  clock.maximum_error_us = static_cast<uint64_t>(state.maxerror);
  return clock;
}

}  // namespace shredway
