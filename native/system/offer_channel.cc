#include "system/offer_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

namespace shredway {

std::optional<OfferChannel> open_offer_channel() {
  std::array<int, 2> ends{};
  // Messages keep their borders.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return {};
  return OfferChannel{ends[0], ends[1]};
}

bool write_offer(int fd, const OfferHead& head, std::span<const uint8_t> bytes) {
  std::array<iovec, 2> parts{{{const_cast<OfferHead*>(&head), sizeof head},
                              {const_cast<uint8_t*>(bytes.data()), bytes.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof head + bytes.size());
}

OfferRead read_offer(int fd, OfferHead& head, std::span<uint8_t> into, size_t& length) {
  std::array<iovec, 2> parts{{{&head, sizeof head}, {into.data(), into.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t received = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return OfferRead::nothing;
  if (received < static_cast<ssize_t>(sizeof head)) return OfferRead::ended;
  const bool is_whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  length = is_whole ? static_cast<size_t>(received) - sizeof head : 0;
  return OfferRead::offer;
}

}  // namespace shredway
