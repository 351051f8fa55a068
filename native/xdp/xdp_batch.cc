#include "xdp/xdp_batch.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "xdp/xdp_frame.h"

namespace shredway {
namespace {

constexpr uint32_t kPayloadBytesMax = kXdpFrameBytes - kXdpHeaderBytesMax;

uint16_t random_number() {
  uint16_t number = 0;
  (void)!getrandom(&number, sizeof number, GRND_NONBLOCK);
  return number;
}

}  // namespace

XdpBatch::XdpBatch(std::span<XdpSocket* const> sockets, ListObserver& observer,
                   const SocketCalls& calls)
    : observer_(observer), identification_(random_number()) {
  for (XdpSocket* socket : sockets)
    senders_.push_back(std::make_unique<XdpSender>(*socket, observer, calls));
}

// New lists follow a change of a link too, so that every sender is tried again.
void XdpBatch::use_lists(const CloneLists& lists) {
  flush();
  lists_ = &lists;
  forget_refusals();
}

void XdpBatch::forget_refusals() {
  for (const auto& sender : senders_) sender->resume();
}

XdpSender* XdpBatch::sender_of(uint32_t interface) const {
  const auto found = std::find_if(senders_.begin(), senders_.end(), [&](const auto& sender) {
    return sender->interface() == interface;
  });
  return found != senders_.end() && (*found)->is_usable() ? found->get() : nullptr;
}

void XdpBatch::add(uint32_t list, const PayloadGroup& group, uint32_t start, bool recovered) {
  const CloneLists::List& targets = lists_->lists()[list];
  if (targets.size == 0 || group.count > payload_sums_.size()) return;
  for (uint32_t i = 0; i < group.count; i++)
    payload_sums_[i] = xdp_payload_sum(static_cast<const uint8_t*>(group.payloads[i].iov_base),
                                       group.payload_bytes);
  for (uint32_t i = 0; i < targets.size; i++) {
    const auto position = static_cast<uint32_t>((uint64_t{start} + i) % targets.size);
    const size_t row = size_t{targets.first} + position;
    XdpSender* sender = sender_of(lists_->rows()[row].interface);
    if (sender && group.payload_bytes <= kPayloadBytesMax)
      send(*sender, row, group, targets.ipv4, recovered);
    else observer_.not_cloned(list, position, 1, group, EAGAIN);  // the next group is tried again
  }
  identification_ = static_cast<uint16_t>(identification_ + group.count);
}

void XdpBatch::send(XdpSender& sender, size_t row, const PayloadGroup& group, bool ipv4,
                    bool recovered) {
  const uint32_t tag = lists_->tags()[row];
  for (uint32_t i = 0; i < group.count; i++) {
    uint8_t* const frame = sender.reserve();
    if (!frame) {
      observer_.clone_failed(
          tag, group.count - i,
          sender.is_usable() ? SendFailure::buffer_full : SendFailure::unreachable);
      return;
    }
    const uint32_t bytes = write_xdp_frame(
        frame, lists_->rows()[row], ipv4, static_cast<const uint8_t*>(group.payloads[i].iov_base),
        group.payload_bytes, payload_sums_[i], static_cast<uint16_t>(identification_ + i));
    sender.commit(bytes, tag, recovered);
  }
}

void XdpBatch::flush() {
  for (const auto& sender : senders_) sender->flush();
}

uint64_t XdpBatch::system_calls() const {
  uint64_t sum = 0;
  for (const auto& sender : senders_) sum += sender->system_calls();
  return sum;
}

}  // namespace shredway
