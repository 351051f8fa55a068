#include "http_message.h"

#include <strings.h>

#include <cstdlib>

namespace shredway::bench {
namespace {

constexpr std::string_view kLengthName = "content-length:";

size_t content_length(std::string_view head) {
  for (size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at)) {
    at += 2;
    if (head.size() - at < kLengthName.size()) break;
    if (strncasecmp(head.data() + at, kLengthName.data(), kLengthName.size()) == 0)
      return std::strtoul(head.data() + at + kLengthName.size(), nullptr, 10);
  }
  return 0;
}

}  // namespace

bool read_http_message(std::string_view text, HttpMessage& out) {
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return false;
  out = {end + 4, content_length(text.substr(0, end + 2))};
  return true;
}

int http_status(std::string_view head) { return head.size() > 12 ? std::atoi(head.data() + 9) : 0; }

}  // namespace shredway::bench
