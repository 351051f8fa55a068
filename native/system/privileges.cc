#include "system/privileges.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>

namespace shredway {
namespace {

// The C library has no wrappers for these calls, and a row of zeros does not need libcap.
__user_cap_header_struct this_thread() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

}  // namespace

void drop_privileges_of_this_thread() {
  __user_cap_header_struct header = this_thread();
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  // Dropping is always permitted; in a sandbox that forbids the call, the thread stays unchanged.
  (void)syscall(SYS_capset, &header, none);
}

void drop_network_privileges_of_this_thread() {
  __user_cap_header_struct header = this_thread();
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return;
  for (const int capability : {CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF}) {
    __user_cap_data_struct& set = sets[CAP_TO_INDEX(capability)];
    const uint32_t others = ~CAP_TO_MASK(static_cast<uint32_t>(capability));
    set.effective &= others;
    set.permitted &= others;
    set.inheritable &= others;
  }
  (void)syscall(SYS_capset, &header, sets);
}

bool thread_has_privileges() {
  __user_cap_header_struct header = this_thread();
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  for (const __user_cap_data_struct& set : sets)
    if (set.effective || set.permitted) return true;
  return false;
}

}  // namespace shredway
