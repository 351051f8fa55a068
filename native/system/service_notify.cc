#include "system/service_notify.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace shredway {
namespace {

// A manager that does not read must not block the event loop.
constexpr timeval kSendMax = {0, 200'000};

std::string failure(const char* call, int error_number) {
  return std::string(call) + ": " + std::strerror(error_number);
}

}  // namespace

std::string notify_service_manager(const std::string& address, const char* data, size_t length) {
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  const bool known = !address.empty() && (address[0] == '/' || address[0] == '@');
  if (!known) return "expected a path or @name, got an empty or relative address";
  if (address.size() >= sizeof to.sun_path)
    return "expected at most " + std::to_string(sizeof to.sun_path - 1) +
           " bytes of address, got " + std::to_string(address.size());
  std::memcpy(to.sun_path, address.data(), address.size());
  if (address[0] == '@') to.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return failure("socket", errno);
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kSendMax, sizeof kSendMax);
  const auto to_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  const ssize_t sent =
      sendto(fd, data, length, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), to_bytes);
  const int error_number = errno;
  close(fd);
  return sent < 0 ? failure("sendto", error_number) : "";
}

}  // namespace shredway
