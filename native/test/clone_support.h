// Support for clone tests: a cable with many addresses behind it, receivers that report datagrams
// with their header fields, and devices with and without offloads.
//
// Included by clone_*_test.cc and other tests that clone. Everything exists in the namespaces of a
// Lab (route_support.h) and ends with them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clone/clone_batch.h"
#include "clone/clone_plane.h"
#include "net_support.h"
#include "route_support.h"

namespace shredway::test {

inline constexpr const char* kNeedsClone =
    "network namespaces, veth, ip(8), /dev/net/tun, CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON are "
    "needed";

// Addresses behind a cable, all owned by "theirs": 10.77.x.y and fd77::x:y.
Endpoint behind_cable(bool is_ipv4, uint32_t number, uint16_t port);

// A cable with 10.<number>.0.1/16 and fd00:<number>::1/64 on our side and a route to the addresses
// of behind_cable().
struct CloneCable {
  CloneCable(const Lab& lab, const std::string& name, int number);
  NextHop hop(bool is_ipv4) const;
  CloneTarget target(uint32_t tag, const Endpoint& destination) const {
    return {tag, destination, hop(destination.is_ipv4())};
  }
  // Targets behind the cable; tags and numbers count from `first`.
  std::vector<CloneTarget> targets(bool is_ipv4, uint32_t count, uint16_t port,
                                   uint32_t first = 0) const;
  // Selects whether the device or the kernel segments bursts and computes checksums.
  void set_offload(bool segmentation, bool checksums) const;
  std::string name;
  int number;
  uint32_t interface;
};

// Routes the IPv4 addresses of behind_cable() through the cable "cable" with the number 1, with a
// next hop that never expires.
void lead_behind_cable(const Lab& lab);

struct CloneArrival {
  Bytes bytes;
  Endpoint from;
  Endpoint to;
  int ttl;            // or IPv6 hop limit
  int traffic_class;  // TOS or traffic class
};

// A UDP socket in "theirs" that receives all datagrams for its port, whatever the address.
class CloneReceiver {
 public:
  CloneReceiver(const Lab& lab, bool is_ipv4);
  uint16_t port() const { return port_; }
  int fd() const { return socket_.fd(); }
  // Reads until `expected` datagrams or nothing more arrive for a while; returns extra datagrams
  // too.
  std::vector<CloneArrival> read(size_t expected);

 private:
  UdpSocket socket_;
  uint16_t port_ = 0;
};

// Counts by tag.
struct CloneCounts final : CloneObserver {
  struct NotCloned {
    uint32_t list, from, count, datagrams;
    int error_number;
  };
  std::map<uint32_t, uint64_t> sent;
  std::map<uint32_t, uint64_t> recovered;
  std::map<uint32_t, std::map<SendFailure, uint64_t>> refused;
  std::vector<NotCloned> not_executed;
  void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) override {
    sent[tag] += datagrams;
    recovered[tag] += recovered_datagrams;
  }
  void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) override {
    refused[tag][failure] += datagrams;
  }
  void not_cloned(uint32_t list, uint32_t from, uint32_t count, const PayloadGroup& group,
                  int error_number) override {
    not_executed.push_back({list, from, count, group.count, error_number});
  }
};

// Random payloads of one length; they live as long as the group.
struct Burst {
  Burst(Random& random, uint32_t count, uint16_t payload_bytes);
  PayloadGroup group() {
    return {parts.data(), static_cast<uint32_t>(parts.size()), payload_bytes};
  }
  uint16_t payload_bytes;
  std::vector<Bytes> payloads;
  std::vector<iovec> parts;
};

// Opens a plane in this thread's namespace; on failure returns nullptr and reports the reason.
std::unique_ptr<ClonePlane> open_plane(uint32_t workers = 1);
// Runs the body in a lab that can clone; skips the test if privileges are missing.
void in_clone_lab(const std::function<void(Lab&)>& body);

}  // namespace shredway::test
