// XDP socket: an AF_XDP socket that sends and receives frames by one queue of an interface.
//
// The XDP plane opens it with CAP_NET_RAW; its use needs no privilege. It owns its frames and its
// rings: frames to send, completed ones, received ones, and free ones that the kernel fills (the
// fill ring). Several sockets of one queue share the frames and the fill ring of the first one;
// each has its own ring of received frames. XdpSender decides what to send, XdpReceiver reads what
// came. The kernel ends everything with the descriptor. One thread for each socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "net/udp_socket.h"

namespace shredway {

inline constexpr uint32_t kXdpFrames = 2048;  // sent and in flight at a time, per socket
// Frames of a queue that receives: in the rings of the card, or waiting for a worker.
inline constexpr uint32_t kXdpReceiveFrames = 8192;
inline constexpr uint32_t kXdpFrameBytes = 2048;

// Error text "call: reason", with the privilege or setting that repairs it if known.
std::string xdp_error(const std::string& call, int error_number);

struct XdpSocketOptions {
  uint32_t interface = 0;
  uint32_t queue = 0;
  bool zero_copy = false;  // the driver reads the frames itself; otherwise the kernel copies them
  uint32_t send_buffer_bytes = 16u << 20;
  bool sends = true;
  bool receives = false;
  // It has frames to receive into, for itself or for the sockets that share them.
  bool has_receive_frames = false;
  bool counts_for_queue = false;  // one socket of a queue reports the counts of the queue
  // Open socket of the same queue whose frames this one shares.
  class XdpSocket* owner = nullptr;
};

// Numbers of the kernel, since the socket was opened.
struct XdpReceiveDrops {
  uint64_t datagrams = 0;        // for this socket, because no frame was free or its ring was full
  uint64_t fill_ring_empty = 0;  // times that the kernel found no free frame of the queue
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

  // Removes one received frame; false if none waits. The caller owns it until refill(). `frame`
  // lies at least kXdpHeadroomBytes behind the beginning of its memory.
  static constexpr uint32_t kXdpHeadroomBytes = 8;
  bool next_received(uint8_t*& frame, uint32_t& bytes);
  // Returns the frames to the kernel, any byte of each. False: another socket of the queue does so
  // now, and nothing was returned; try again later. There is space for all kXdpReceiveFrames.
  bool refill(std::span<uint8_t* const> frames);
  // The driver waits for a call since it found no free frame (zero-copy).
  bool needs_receive_wakeup() const;
  XdpReceiveDrops receive_drops() const;

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
  std::string create_memory();
  std::string create_rings();
  std::string map_rings();
  std::string bind_to_queue();
  void fill_all();
  uint32_t fill_ring_entries() const;
  uint32_t completed_slot(uint32_t entry) const;
  bool map(Ring& ring, uint64_t place, uint64_t producer, uint64_t consumer, uint64_t flags,
           uint64_t entries, size_t bytes);

  XdpSocketOptions options_;
  UdpSocket socket_;
  uint8_t* frames_ = nullptr;  // of the owner, if there is one
  size_t frames_bytes_ = 0;
  uint32_t send_frames_ = 0;  // the first ones
  uint32_t fill_frames_ = 0;  // the others
  Ring send_, completed_, fill_, receive_;
  std::atomic_flag filling_;  // only for sockets that share the fill ring
};

}  // namespace shredway
