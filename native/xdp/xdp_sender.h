// XDP sender: sends a worker's frames by one AF_XDP socket and reports the fate of each.
//
// Frames leave in the order of commit(). Every frame is reported once: as sent when the device has
// finished with it, or as failed. If the device takes no frame for a while, further frames fail as
// buffer_full until the next flush. One thread; no allocation after construction.
#pragma once

#include <array>
#include <cstdint>

#include "clone/clone.h"
#include "net/socket_calls.h"
#include "xdp/xdp_socket.h"

namespace shredway {

class XdpSender {
 public:
  XdpSender(XdpSocket& socket, ListObserver& observer, const SocketCalls& calls)
      : socket_(socket), observer_(observer), calls_(calls), committed_(socket.published()) {}

  uint32_t interface() const { return socket_.interface(); }
  // False after the interface went down: frames that the kernel had not taken have failed, and
  // no new one is accepted until resume().
  bool is_usable() const { return usable_; }
  void resume() { usable_ = true; }

  // Memory for the next frame; nullptr if none is free, or if the sender is not usable.
  uint8_t* reserve();
  // Adds the reserved frame.
  void commit(uint32_t bytes, uint32_t tag, bool recovered);
  // Sends what was added, and reports the frames that were completed.
  void flush();

  uint64_t system_calls() const { return system_calls_; }

 private:
  struct Slot {
    uint32_t tag;
    bool in_use;
    bool recovered;
    bool dropped;  // the interface has refused it
  };

  bool is_free(uint32_t position) const;
  void wait_for_frame();
  void send_committed();
  bool wake();
  void report_completed();
  void report(Slot& slot);
  void withdraw();

  XdpSocket& socket_;
  ListObserver& observer_;
  const SocketCalls& calls_;
  std::array<Slot, kXdpFrames> slots_{};
  uint32_t committed_;  // position of the next frame
  bool usable_ = true;
  bool stalled_ = false;  // the device took nothing: do not wait for it again before a flush
  uint64_t system_calls_ = 0;
};

}  // namespace shredway
