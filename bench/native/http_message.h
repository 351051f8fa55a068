// The little of HTTP/1.1 that load and sink need: where a message ends.
//
// For messages of programs under test on loopback: a length in Content-Length, no chunks.
#pragma once

#include <cstddef>
#include <string_view>

namespace shredway::bench {

struct HttpMessage {
  size_t head_bytes;  // with the empty line
  size_t body_bytes;
  size_t bytes() const { return head_bytes + body_bytes; }
};

// The message that `text` begins with; false when its head is not complete.
bool read_http_message(std::string_view text, HttpMessage& out);
// Status of an answer, 0 when it is none.
int http_status(std::string_view head);

}  // namespace shredway::bench
