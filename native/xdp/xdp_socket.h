// XDP socket: an AF_XDP socket that sends frames by one queue of an interface.
//
// The XDP plane opens it with CAP_NET_RAW; sending needs no privilege. It owns its frames, the ring
// of frames to send and the ring of completed ones. XdpSender decides what to send. The kernel ends
// everything with the descriptor. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/udp_socket.h"

namespace shredway {

inline constexpr uint32_t kXdpFrames = 2048;  // in flight at a time, per socket
inline constexpr uint32_t kXdpFrameBytes = 2048;

// Error text "call: reason", with the privilege or setting that repairs it if known.
std::string xdp_error(const std::string& call, int error_number);

struct XdpSocketOptions {
  uint32_t interface = 0;
  uint32_t queue = 0;
  bool zero_copy = false;  // the driver reads the frames itself; otherwise the kernel copies them
  uint32_t send_buffer_bytes = 16u << 20;
};

class XdpSocket {
 public:
  // Returns nullptr and fills `error` on failure. errno then is that of the failed call.
  static std::unique_ptr<XdpSocket> open(const XdpSocketOptions& options, std::string& error);
  // Creates a socket with its memory and rings, but takes no queue. Returns an error text, empty on
  // success.
  static std::string try_out();
  ~XdpSocket();
  XdpSocket(const XdpSocket&) = delete;
  XdpSocket& operator=(const XdpSocket&) = delete;

  int fd() const { return socket_.fd(); }
  uint32_t interface() const { return options_.interface; }
  uint32_t queue() const { return options_.queue; }
  bool zero_copy() const { return options_.zero_copy; }

  // Positions count up without end; the frame of a position is used again kXdpFrames later.
  uint8_t* frame(uint32_t position) const;
  void set(uint32_t position, uint32_t bytes);  // the frame to send at this position
  void cancel(uint32_t position);               // the kernel skips the position
  void publish(uint32_t end);                   // the kernel may take all positions before `end`
  uint32_t published() const;
  // Positions before it were taken. Some kernels report it late.
  uint32_t taken() const;
  bool needs_wakeup() const;
  // Removes one completed frame: the device has finished with it. `slot`: its position modulo
  // kXdpFrames. False if no frame was completed.
  bool next_completed(uint32_t& slot);
  uint32_t completed() const;       // number of frames that were completed
  uint32_t last_completed() const;  // slot of the latest one

 private:
  struct Ring {
    uint32_t* producer = nullptr;
    uint32_t* consumer = nullptr;
    uint32_t* flags = nullptr;
    uint8_t* entries = nullptr;
    void* memory = nullptr;
    size_t bytes = 0;
  };

  XdpSocket() = default;
  std::string create();
  std::string create_rings(uint32_t fill_frames);
  std::string bind_to_queue();
  void fill(Ring& ring, uint32_t fill_frames);
  uint32_t completed_slot(uint32_t entry) const;
  bool map(Ring& ring, uint64_t place, uint64_t producer, uint64_t consumer, uint64_t flags,
           uint64_t entries, size_t bytes);

  XdpSocketOptions options_;
  UdpSocket socket_;
  uint8_t* frames_ = nullptr;
  size_t frames_bytes_ = 0;
  Ring send_, completed_, fill_;
};

}  // namespace shredway
