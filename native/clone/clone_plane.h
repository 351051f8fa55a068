// Clone plane: one send, which the kernel clones for every destination of a list.
//
// Opened once per relay, with privileges that are not needed afterwards. It owns a TAP interface
// that exists as long as this process, and a small program at its egress hook. A worker sends a
// trigger packet (UDP over that interface, one shred or a GSO burst) whose port selects a job. The
// program clones it for each target of the job, writes the Ethernet, IP and UDP headers, and passes
// the clone to the target's interface. Targets, jobs and counts are in memory shared with the
// kernel: a worker writes and reads them without a system call. The program runs inside the
// worker's own send call and reads its memory only then.
//
// Interface, program and memory end with their descriptors, also on kill -9. Clones do not pass the
// OUTPUT chain of the firewall; they do pass the queue discipline of their interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net/udp_socket.h"

namespace shredway {

inline constexpr uint32_t kCloneTargetsMax = 4096;  // per worker
inline constexpr uint32_t kCloneJobsMax = 64;       // per flush
// Maximum of destinations in one run of the program: interrupts wait for it, and queues fill up.
inline constexpr uint32_t kCloneTargetsPerJob = 256;

// Row that the program reads and counts in (clone_program.cc has the offsets).
struct CloneTargetRow {
  uint8_t header[64];       // Ethernet, IP and UDP headers with all lengths and checksums 0
  uint32_t interface;       // interface index
  uint32_t ip_sum;          // checksum of the IPv4 header without total length; IPv6: unused
  uint32_t udp_sum;         // checksum of the pseudo-header without length
  int32_t last_error;       // result of the last refused clone: > 0 NET_XMIT_*, < 0 -errno
  uint64_t sent;            // datagrams since the row was set; written by the program
  uint64_t recovered_sent;  // recovered datagrams; not in `sent`
  uint64_t refused;         // datagrams
  uint64_t unused[3];
};
static_assert(sizeof(CloneTargetRow) == 128);

struct CloneJobRow {
  uint64_t socket_cookie;  // socket whose triggers are executed; no other packet runs the job
  uint32_t first;          // first row of the list
  uint32_t count;          // number of rows in the list
  uint32_t start;          // < count: the target to serve first; wraps to the list's first target
  uint32_t targets;        // targets to serve: 1 .. kCloneTargetsPerJob, at most `count`
  uint32_t datagrams;      // datagrams in the trigger
  uint32_t recovered;      // 1: count as recovered_sent
  uint64_t runs;           // number of runs; written by the program
  uint64_t unused2[3];
};
static_assert(sizeof(CloneJobRow) == 64);

// One worker's part of the plane.
struct CloneRegion {
  CloneTargetRow* targets = nullptr;  // kCloneTargetsMax
  CloneJobRow* jobs = nullptr;        // kCloneJobsMax
  uint32_t first_target = 0;          // index of targets[0] in the program's map
  uint32_t first_job = 0;             // a trigger to UDP port first_job + i + 1 runs jobs[i]
  int trigger_ipv4 = -1;              // send sockets of the trigger interface, owned by the plane
  int trigger_ipv6 = -1;              // -1: no IPv6
  bool gso = false;                   // bursts may be sent as one trigger
};

struct ClonePlaneOptions {
  uint32_t workers = 1;
  std::string interface = "shredway%d";  // %d: a number that the kernel chooses
};

class ClonePlane {
 public:
  // Returns nullptr and fills `error` on failure with the failed call, the reason and the privilege
  // to grant (CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON, /dev/net/tun). Tests the whole path with a
  // job without effect before it returns. Leaves nothing behind on failure.
  static std::unique_ptr<ClonePlane> open(const ClonePlaneOptions& options, std::string& error);
  ~ClonePlane();
  ClonePlane(const ClonePlane&) = delete;
  ClonePlane& operator=(const ClonePlane&) = delete;

  CloneRegion region(uint32_t worker) const;
  const std::string& interface() const;

 private:
  struct Resources;
  explicit ClonePlane(std::unique_ptr<Resources> resources);
  std::unique_ptr<Resources> resources_;
};

}  // namespace shredway
