// HTTP message boundaries: the small part of HTTP/1.1 that the load generator and the sink need.
//
// For messages of programs under test on loopback: Content-Length, no chunks.
#pragma once

#include <cstddef>
#include <string_view>

namespace shredway::bench {

struct HttpMessage {
  size_t head_bytes;  // including the empty line
  size_t body_bytes;
  size_t bytes() const { return head_bytes + body_bytes; }
};

// Parses the beginning of `text`; returns false if the headers are not complete.
bool read_http_message(std::string_view text, HttpMessage& out);
// Status of a response, 0 if it is not a response.
int http_status(std::string_view head);

}  // namespace shredway::bench
