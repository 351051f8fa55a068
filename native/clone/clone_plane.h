// Clone plane: one send, cloned inside the kernel for every destination of a list.
//
// Opened once per relay, with privileges that are not needed afterwards. It owns a TAP interface
// that exists as long as this process, and a small program at its egress hook. A worker sends a
// trigger packet (UDP over that interface, one shred or a GSO burst): the program clones it for
// each target of the job that the trigger names, gives each clone its Ethernet, IP and UDP head,
// and hands it to the target's interface. Targets, jobs and counts are memory shared with the
// kernel: a worker writes and reads them without a system call. The program runs inside the
// worker's own send call, so nothing of a worker's memory is read when it does not send.
//
// Nothing stays behind: interface, program and memory end with their descriptors, also on kill -9.
// The clones do not pass the OUTPUT chain of the firewall; they do pass the queue discipline of
// their interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net/udp_socket.h"

namespace shredway {

inline constexpr uint32_t kCloneTargetsMax = 4096;  // of one worker
inline constexpr uint32_t kCloneJobsMax = 64;       // of one flush
// Destinations of one run of the program: interrupts wait for it, and queues fill up meanwhile.
inline constexpr uint32_t kCloneTargetsPerJob = 256;

// As the program reads and counts it (clone_program.cc has the offsets).
struct CloneTargetRow {
  uint8_t head[64];    // Ethernet, IP and UDP head with all lengths and checksums 0
  uint32_t interface;  // index
  uint32_t ip_sum;     // of the IPv4 head without total length; IPv6: unused
  uint32_t udp_sum;    // of the pseudo-header without length
  int32_t last_error;  // what the last refused clone came back with: > 0 NET_XMIT_*, < 0 -errno
  uint64_t sent;       // datagrams, since the row was set; written by the program
  uint64_t recovered_sent;  // apart from `sent`
  uint64_t refused;         // datagrams
  uint64_t unused[3];
};
static_assert(sizeof(CloneTargetRow) == 128);

struct CloneJobRow {
  uint64_t socket_cookie;  // whose triggers are obeyed: nobody else can make the program run
  uint32_t first;          // of the list's rows
  uint32_t count;          // of the list's rows
  uint32_t start;          // < count: the first one served; after the last comes the first
  uint32_t targets;        // served by this job: 1 .. kCloneTargetsPerJob, at most `count`
  uint32_t datagrams;      // in the trigger
  uint32_t recovered;      // 1: counts as recovered_sent
  uint64_t runs;           // how often the program did this job; written by the program
  uint64_t unused2[3];
};
static_assert(sizeof(CloneJobRow) == 64);

// What one worker gets of the plane.
struct CloneRegion {
  CloneTargetRow* targets = nullptr;  // kCloneTargetsMax
  CloneJobRow* jobs = nullptr;        // kCloneJobsMax
  uint32_t first_target = 0;          // number of targets[0] in the program's count
  uint32_t first_job = 0;             // a trigger to UDP port first_job + i + 1 asks for jobs[i]
  int trigger_ipv4 = -1;              // send sockets of the trigger interface, owned by the plane
  int trigger_ipv6 = -1;              // -1: no IPv6 here
  bool gso = false;                   // bursts may be triggered as one message
};

struct ClonePlaneOptions {
  uint32_t workers = 1;
  std::string interface = "shredway%d";  // %d: the kernel counts
};

class ClonePlane {
 public:
  // Returns nullptr and fills `error` when something is missing: which call failed, why, and what
  // to grant (CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON, /dev/net/tun). Tries the whole way with a job
  // of no effect before it says that it works. Leaves nothing behind when it fails.
  static std::unique_ptr<ClonePlane> open(const ClonePlaneOptions& options, std::string& error);
  ~ClonePlane();
  ClonePlane(const ClonePlane&) = delete;
  ClonePlane& operator=(const ClonePlane&) = delete;

  CloneRegion region(uint32_t worker) const;
  const std::string& interface() const;

 private:
  struct Resources;
  explicit ClonePlane(std::unique_ptr<Resources> parts);
  std::unique_ptr<Resources> parts_;
};

}  // namespace shredway
