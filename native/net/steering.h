// Steering: the kernel program that gives all shreds of one FEC set to one worker.
//
// Attached once to a group of SO_REUSEPORT sockets (classic BPF: no privilege needed). Reads slot
// and FEC set index from the payload and picks the socket by its place in the group, which is the
// order of bind: the sets of a slot go round the sockets, from a start that the mixed slot gives.
// Datagrams that are too short go to socket 0.
#pragma once

#include <cstdint>
#include <string>

namespace shredway {

// Socket that the program chooses for such a shred among `workers`; the same arithmetic in C++, for
// tests and for the paced sender's estimates.
uint32_t steered_worker(uint64_t slot, uint32_t fec_set_index, uint32_t workers);

// Attaches the program to the group that `fd` belongs to. workers >= 1. Returns an error text,
// empty on success.
std::string attach_steering(int fd, uint32_t workers);

}  // namespace shredway
