// Connection socket handle: the socket of QUIC connections (quic/connection_socket.h) as a
// JavaScript class.
#pragma once

#include <napi.h>

#include <optional>

#include "addon/packet_reader.h"
#include "quic/connection_ids.h"

namespace shredway::addon {

class ConnectionSocketHandle : public Napi::ObjectWrap<ConnectionSocketHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  // (descriptor, which it owns from now on; size of its buffers; key of ids, 32 bytes; memory for
  // packets; (number, slot, length, stranger?) => void). Number -1: a stray packet, with its
  // sender. Throws Error if the event loop refuses the descriptor.
  explicit ConnectionSocketHandle(const Napi::CallbackInfo& info);

 private:
  class Reader;

  Reader* reader() const;
  Napi::Value address(const Napi::CallbackInfo& info);
  Napi::Value new_id(const Napi::CallbackInfo& info);
  void know(const Napi::CallbackInfo& info);         // (id, number, endpoint)
  void admit(const Napi::CallbackInfo& info);        // (id)
  void forget(const Napi::CallbackInfo& info);       // (id)
  void send_packet(const Napi::CallbackInfo& info);  // (packet, endpoint)
  void flush(const Napi::CallbackInfo& info);
  Napi::Value counts(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);

  ReaderOwner owner_;
  std::optional<ConnectionIds> ids_;
};

}  // namespace shredway::addon
