// Multicast sockets: receive sockets for joined groups, their memberships, and the kernel program
// by which each FEC set reaches one worker only.
//
// The kernel delivers a multicast datagram to every socket that joined its group, even if several
// share a port. Therefore each worker has its own socket, every socket joins, and a program
// on each socket drops the FEC sets of the other workers. The sets are steered like unicast ones
// (steering.h), so one worker gets a set from all sources. IP_MULTICAST_ALL is off: groups that
// other programs of the machine joined do not come in.
#pragma once

#include <cstdint>
#include <string>

#include "net/address.h"
#include "net/udp_batch.h"

namespace shredway {

// Sets the options of a socket that joins groups: only its own groups, with the destination of each
// datagram, on a port that other programs may use too. Returns an error text, empty on success.
std::string prepare_for_groups(int fd, bool ipv4);

// Attaches the program to the socket of `worker` among `workers`. It passes shreds of the worker's
// FEC sets to a multicast address, and heartbeats at worker 0. Returns an error text, empty on
// success.
std::string attach_group_steering(int fd, bool ipv4, uint32_t worker, uint32_t workers);

// A group on one interface. IPv4 also needs an address of the interface.
struct GroupMembership {
  AddressBytes group;
  uint32_t interface;  // index
  AddressBytes interface_address{};
};
bool is_multicast(const AddressBytes& address);
// Joins or leaves. Leaving works after the interface has disappeared. Returns an error text, empty
// on success and if the socket is already (or no longer) a member.
std::string join_group(int fd, const GroupMembership& membership);
std::string leave_group(int fd, const GroupMembership& membership);

// True for the datagram that a DoubleZero publisher sends every ten seconds (44 5a 00 01).
bool is_group_heartbeat(const ReceivedPacket& packet);

}  // namespace shredway
