// What the kernel knows of its wall clock: whether something disciplines it, and how well.
//
// Read for `shredway doctor`; nothing is set. adjtimex(2).
#pragma once

#include <cstdint>

namespace shredway {

struct KernelClock {
  bool known = false;  // false: the call is not allowed here, the rest says nothing
  bool synchronised = false;
  int64_t offset_ns = 0;  // what is left to be slewed
  uint64_t estimated_error_us = 0;
  uint64_t maximum_error_us = 0;
};

KernelClock read_kernel_clock();

}  // namespace shredway
