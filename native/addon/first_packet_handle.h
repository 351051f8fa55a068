// First packet handle: the socket of first packets (quic/first_packet_socket.h) as a JavaScript
// class.
#pragma once

#include <napi.h>

#include "addon/packet_reader.h"

namespace shredway::addon {

class FirstPacketHandle : public Napi::ObjectWrap<FirstPacketHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  // (descriptor, which it owns from now on; size of its buffers; key of tokens and key of ids, 32
  // bytes each; (packet, host, port) => void). Throws Error if the event loop refuses the
  // descriptor.
  explicit FirstPacketHandle(const Napi::CallbackInfo& info);

 private:
  class Reader;

  Reader* reader() const;
  void know(const Napi::CallbackInfo& info);    // (id)
  void forget(const Napi::CallbackInfo& info);  // (id)
  Napi::Value counts(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);

  ReaderOwner owner_;
};

}  // namespace shredway::addon
