// Packet reader: reads the packets of a UDP socket on the event loop, for JavaScript.
//
// The base of first_packet_handle.h and connection_socket_handle.h. It does not keep the event loop
// alive. In a flood it pauses for a millisecond after each reading, because a wake-up for each
// packet would cost more than the packet.
#pragma once

#include <napi.h>
#include <uv.h>

#include <initializer_list>
#include <memory>

namespace shredway::addon {

// Lives until the event loop has closed its handles.
class PacketReader {
 public:
  PacketReader(Napi::Env env, Napi::Function listener, const char* name);
  virtual ~PacketReader() = default;
  PacketReader(const PacketReader&) = delete;
  PacketReader& operator=(const PacketReader&) = delete;

  // Returns 0, or an error of libuv; nothing is open then.
  int open(uv_loop_t* loop);
  // Nothing is passed on any more. The object deletes itself when the handles are closed.
  void close();

 protected:
  virtual int fd() const = 0;
  // Reads one batch, and calls `pass` for it. False: nothing waits any more.
  virtual bool read_batch() = 0;
  virtual bool is_flooded() const = 0;
  // Called after each reading. Returns whether it is to be called again after a period without one.
  virtual bool adjust() { return false; }

  // Lets `calls` call the listener, in a callback of its own.
  template <typename Calls>
  void pass(Calls calls) {
    const Napi::Env env = listener_->Env();
    is_passing_ = true;
    {
      const Napi::HandleScope handles(env);
      const Napi::CallbackScope callbacks(env, *context_);
      calls(env);
    }
    is_passing_ = false;
    if (is_closing_) release();
  }
  // Only in `pass`. Does nothing when the reader was closed meanwhile.
  void call(Napi::Env env, std::initializer_list<napi_value> arguments);
  // Gives up everything of JavaScript.
  virtual void release();

 private:
  static void closed(uv_handle_t* handle);
  void watch();
  void read();
  void adjust_again();

  uv_poll_t poll_{};
  uv_timer_t pause_{};
  uv_timer_t adjustment_{};
  size_t open_handles_ = 0;
  // The environment may end earlier.
  std::unique_ptr<Napi::FunctionReference> listener_;
  std::unique_ptr<Napi::AsyncContext> context_;
  bool is_passing_ = false;
  bool is_closing_ = false;
};

// Closes a reader with its JavaScript object, or with the environment.
class ReaderOwner {
 public:
  ReaderOwner() = default;
  ~ReaderOwner() { close(); }
  ReaderOwner(const ReaderOwner&) = delete;
  ReaderOwner& operator=(const ReaderOwner&) = delete;

  // Throws into JavaScript if the event loop refuses the socket.
  void open(Napi::Env env, std::unique_ptr<PacketReader> reader);
  void close();
  // null: closed.
  PacketReader* get() const { return reader_; }

 private:
  napi_env env_ = nullptr;
  PacketReader* reader_ = nullptr;
};

}  // namespace shredway::addon
