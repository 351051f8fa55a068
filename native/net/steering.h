// Steering: the kernel program that sends all shreds of one FEC set to one worker.
//
// Attached once to a group of SO_REUSEPORT sockets (classic BPF: no privilege needed). It reads
// slot and FEC set index from the payload and selects the socket by its index in the group, which
// is the order of bind. The FEC sets of a slot go to the sockets in turn; the mixed slot number
// selects the first one. Datagrams that are too short go to socket 0.
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstdint>
#include <string>

namespace shredway {

// Socket that the program selects among `workers`: the same arithmetic in C++, for tests and for
// the paced sender's estimates.
uint32_t steered_worker(uint64_t slot, uint32_t fec_set_index, uint32_t workers);

// Factors of the mixed slot number, for the program of AF_XDP. Odd, so that each multiplication is
// reversible.
inline constexpr uint32_t kSteeringMixFirst = 0x9e3779b1;
inline constexpr uint32_t kSteeringMixSecond = 0x85ebca6b;

// Instructions that leave the number of the worker in the accumulator, for programs that continue
// with it. `payload_at`: offset of the UDP payload in what the program sees. workers >= 1.
using SteeringSteps = std::array<sock_filter, 20>;
SteeringSteps steering_steps(uint32_t payload_at, uint32_t workers);

// Attaches the program to the group of `fd`. workers >= 1. Returns an error text, empty on success.
std::string attach_steering(int fd, uint32_t workers);

}  // namespace shredway
