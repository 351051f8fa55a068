// First packet handle: the socket of first packets (quic/first_packet_socket.h) as a JavaScript
// class.
//
// Reads on the event loop, which it does not keep alive.
#pragma once

#include <napi.h>
#include <uv.h>

#include <memory>
#include <vector>

#include "quic/first_packet_socket.h"

namespace shredway::addon {

class FirstPacketHandle : public Napi::ObjectWrap<FirstPacketHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  // (descriptor, which it owns from now on; size of its buffers; key of 32 bytes;
  // (packet, host, port) => void). Throws Error if the event loop refuses the descriptor.
  explicit FirstPacketHandle(const Napi::CallbackInfo& info);
  ~FirstPacketHandle() override;

 private:
  // Lives until the event loop has closed both handles.
  struct Reader {
    Reader(Napi::Env env, UdpSocket socket, const RetryKey& key, Napi::Function listener);
    // Returns 0 or an error of libuv.
    int open(uv_loop_t* loop);
    void watch();
    // Handles what waits, and the next packets a moment later if there is a flood.
    void read();
    // Calls the listener. False: nothing waits any more, or it closed the handle.
    bool read_batch();
    void call_listener(const std::vector<PassedPacket>& passed);
    // Nothing is passed on any more.
    void stop();

    uv_poll_t poll{};
    uv_timer_t pause{};
    size_t open_handles = 0;
    FirstPacketSocket first_packets;
    // The environment may end earlier.
    std::unique_ptr<Napi::FunctionReference> listener;
    std::unique_ptr<Napi::AsyncContext> context;
    bool is_passing = false;
    bool is_closing = false;
  };

  void know(const Napi::CallbackInfo& info);    // (id)
  void forget(const Napi::CallbackInfo& info);  // (id)
  Napi::Value counts(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);
  static void closed(uv_handle_t* handle);
  static void end_with_environment(void* handle);
  void end();

  Reader* reader_ = nullptr;
};

}  // namespace shredway::addon
