// Support for XDP tests: open sockets on a cable, and the counts of a sender.
//
// Included by xdp_*_test.cc.
#pragma once

#include "clone_support.h"
#include "xdp/xdp.h"

namespace shredway::test {

inline std::unique_ptr<XdpPlane> open_xdp_plane(const std::vector<std::string>& interfaces,
                                                uint32_t workers = 1) {
  std::string error;
  auto plane = XdpPlane::open({.interfaces = interfaces, .workers = workers}, error);
  if (!plane) report_failure(__FILE__, __LINE__, error);
  return plane;
}

inline CloneHeader xdp_test_header() {
  CloneHeader header;
  header.source_port_ipv4 = 8001;
  header.source_port_ipv6 = 8002;
  header.ttl = 37;
  header.dscp = 46;
  return header;
}

// Lists of targets, and a batch that sends to them.
struct XdpSends {
  XdpSends(const XdpPlane& plane, const std::vector<std::vector<CloneTarget>>& targets,
           const SocketCalls& calls = system_socket_calls())
      : lists(targets, xdp_test_header(), {true, true}), batch(plane.senders(0), counts, calls) {
    batch.use_lists(lists);
  }
  void send(uint32_t list, Burst& burst, uint32_t start = 0, bool recovered = false) {
    batch.add(list, burst.group(), start, recovered);
    batch.flush();
  }
  CloneCounts counts;
  CloneLists lists;
  XdpBatch batch;
};

}  // namespace shredway::test
