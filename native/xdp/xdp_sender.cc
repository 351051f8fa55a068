#include "xdp/xdp_sender.h"

#include <cerrno>

#include "net/thread.h"

namespace shredway {
namespace {

// Calls in a row that changed nothing.
constexpr uint32_t kIdleCallsMax = 64;
// About half a millisecond: a driver that reads the ring itself sends a thousand frames meanwhile.
constexpr uint32_t kPausesMax = 10'000;

// True if the next call may succeed: too many frames for one call, a full queue, or no memory.
bool is_temporary(int error_number) {
  return error_number == EAGAIN || error_number == ENOBUFS || error_number == ENOMEM ||
         error_number == EINTR || error_number == EBUSY;
}

}  // namespace

// A frame whose position was taken can still be in use: the device reads it later.
bool XdpSender::is_free(uint32_t position) const {
  return position - socket_.taken() < kXdpFrames && !slots_[position % kXdpFrames].in_use;
}

uint8_t* XdpSender::reserve() {
  if (!is_free(committed_)) report_completed();
  if (usable_ && !stalled_ && !is_free(committed_)) wait_for_frame();
  return usable_ && is_free(committed_) ? socket_.frame(committed_) : nullptr;
}

void XdpSender::wait_for_frame() {
  const uint32_t tries = socket_.zero_copy() ? kPausesMax : 1;
  for (uint32_t i = 0; i < tries && usable_ && !is_free(committed_); i++) {
    if (i > 0) pause_briefly();
    send_committed();
  }
  stalled_ = !is_free(committed_);
}

void XdpSender::commit(uint32_t bytes, uint32_t tag, bool recovered) {
  slots_[committed_ % kXdpFrames] = {tag, true, recovered, false};
  socket_.set(committed_++, bytes);
}

void XdpSender::flush() {
  send_committed();
  stalled_ = false;
}

// In copy mode, the calls themselves send the frames. In zero-copy mode, one call wakes the driver
// if it asks for that.
void XdpSender::send_committed() {
  socket_.publish(committed_);
  for (uint32_t idle = 0; usable_ && socket_.taken() != committed_ && idle < kIdleCallsMax;) {
    if (!socket_.needs_wakeup()) break;
    const uint32_t taken = socket_.taken(), completed = socket_.completed();
    if (!wake()) idle++;
    report_completed();  // the kernel needs space for further completions
    if (socket_.zero_copy()) break;
    if (socket_.taken() != taken || socket_.completed() != completed) idle = 0;
  }
  report_completed();
}

// Returns true if the call ended because a frame was refused.
bool XdpSender::wake() {
  system_calls_++;
  if (calls_.send(socket_.fd(), nullptr, 0, MSG_DONTWAIT) >= 0) return false;
  const int error_number = errno;
  if (!is_temporary(error_number)) withdraw();
  // In copy mode: the interface refused one frame, which completed it, and the call ended there.
  const bool dropped = error_number == EBUSY && !socket_.zero_copy();
  if (dropped) slots_[socket_.last_completed()].dropped = true;
  return dropped;
}

// A later call would otherwise send old frames. A driver that reads the ring itself may be about to
// take them, so they stay there.
void XdpSender::withdraw() {
  usable_ = false;
  if (socket_.zero_copy()) return;
  report_completed();
  for (uint32_t position = socket_.taken(); position != committed_; position++) {
    Slot& slot = slots_[position % kXdpFrames];
    socket_.cancel(position);
    if (!slot.in_use) continue;  // completed, although the kernel has not reported it as taken
    slot.in_use = false;
    observer_.clone_failed(slot.tag, 1, SendFailure::unreachable);
  }
}

void XdpSender::report_completed() {
  for (uint32_t slot = 0; socket_.next_completed(slot);) report(slots_[slot]);
}

void XdpSender::report(Slot& slot) {
  if (!slot.in_use) return;
  slot.in_use = false;
  if (slot.dropped) observer_.clone_failed(slot.tag, 1, SendFailure::buffer_full);
  else observer_.cloned(slot.tag, slot.recovered ? 0 : 1, slot.recovered ? 1 : 0);
}

}  // namespace shredway
