// Kernel clock: the synchronisation state and accuracy of the system's wall clock.
//
// `shredway doctor` reads it with adjtimex(2); nothing is set.
#pragma once

#include <cstdint>

namespace shredway {

struct KernelClock {
  bool known = false;  // false: the call is not permitted, and the other fields are invalid
  bool synchronised = false;
  int64_t offset_ns = 0;  // remaining offset to slew
  uint64_t estimated_error_us = 0;
  uint64_t maximum_error_us = 0;
};

KernelClock read_kernel_clock();

}  // namespace shredway
