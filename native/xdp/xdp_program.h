// XDP program: one that passes every packet to the network stack.
//
// Drivers send by AF_XDP without a copy only while an interface has a program. The kernel removes
// it with its descriptor, even after kill -9.
#pragma once

#include <cstdint>
#include <string>

#include "net/udp_socket.h"

namespace shredway {

// Attaches the program to the interface's driver, with CAP_NET_ADMIN and CAP_BPF. Returns an
// invalid descriptor and fills `error` if the kernel or the driver refuses, or if it has another
// program.
UdpSocket attach_pass_program(uint32_t interface, std::string& error);

}  // namespace shredway
