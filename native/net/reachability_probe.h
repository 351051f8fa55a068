// Reachability probe: asks a destination whether its port is closed, with an answer that cannot be
// forged.
//
// Sends one datagram with a secret from a fresh connected socket. An ICMP error counts only if it
// quotes that secret, so only a host that has seen the datagram can cause it: the destination, or a
// router on the path. ICMP errors about other datagrams prove nothing, because shreds are public.
// Used by the control plane, never on the packet path.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/udp_socket.h"

namespace shredway {

enum class ProbeResult : uint8_t {
  pending,      // nothing yet
  answered,     // the destination returned the datagram
  unreachable,  // an ICMP error quoted the secret, or this machine has no route
};

class ReachabilityProbe {
 public:
  // The shortest part of the datagram that an ICMP error must quote and an answer must return.
  static constexpr size_t kSecretBytes = 24;

  // Sends `datagram`, of at least kSecretBytes. Returns nullptr and fills `error` if the system has
  // no socket for it.
  static std::unique_ptr<ReachabilityProbe> open(const Endpoint& to,
                                                 std::span<const uint8_t> datagram,
                                                 std::string& error);
  // Reads all that has arrived since the last call; never blocks.
  ProbeResult check();
  Endpoint local() const { return local_endpoint(socket_.fd()); }

 private:
  ReachabilityProbe(UdpSocket socket, std::span<const uint8_t> datagram)
      : socket_(std::move(socket)), datagram_(datagram.begin(), datagram.end()) {}
  void read_answers();
  void read_errors();
  bool is_quoted_in(std::span<const uint8_t> bytes) const;

  UdpSocket socket_;
  std::vector<uint8_t> datagram_;
  ProbeResult result_ = ProbeResult::pending;
};

}  // namespace shredway
