// The way to the service manager: one datagram to the local socket that it named.
//
// Node has no datagram sockets of the local family. Protocol: sd_notify(3). Called from the event
// loop, so it waits for a short while at most.
#pragma once

#include <cstddef>
#include <string>

namespace shredway {

// `address`: a path, or "@" and a name without a file (abstract). Returns an error text, empty on
// success.
std::string notify_service_manager(const std::string& address, const char* data, size_t length);

}  // namespace shredway
