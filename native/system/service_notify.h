// Service notifications: sends one datagram to the service manager's local socket.
//
// Node.js has no Unix datagram sockets. Protocol: sd_notify(3). Called on the event loop, so it
// waits only briefly.
#pragma once

#include <cstddef>
#include <string>

namespace shredway {

// `address`: a path, or "@" and an abstract name. Returns an error text, empty on success.
std::string notify_service_manager(const std::string& address, const char* data, size_t length);

}  // namespace shredway
