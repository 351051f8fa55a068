#include "addon/connection_socket_handle.h"

#include <climits>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "addon/arguments.h"
#include "quic/connection_socket.h"

namespace shredway::addon {
namespace {

constexpr size_t kMemoryBytes = kConnectionBatchMax * kConnectionPacketBytesMax;

Napi::Value address_value(Napi::Env env, const Endpoint& endpoint) {
  const auto address = Napi::Object::New(env);
  address.Set("host", host_text(endpoint));
  address.Set("port", endpoint.port);
  return address;
}

}  // namespace

class ConnectionSocketHandle::Reader : public PacketReader {
 public:
  Reader(Napi::Env env, UdpSocket socket, Napi::Uint8Array memory, Napi::Function listener)
      : PacketReader(env, listener, "shredway connection packets"),
        socket_(std::move(socket)),
        memory_(std::make_unique<Napi::Reference<Napi::Uint8Array>>(Napi::Persistent(memory))) {}
  ConnectionSocket& socket() { return socket_; }

 protected:
  int fd() const override { return socket_.fd(); }
  bool is_flooded() const override { return socket_.is_flooded(); }
  void release() override {
    PacketReader::release();
    memory_.reset();
  }

  bool read_batch() override {
    pass([this](Napi::Env env) {
      Napi::Uint8Array memory = memory_->Value();
      if (memory.ByteLength() < kMemoryBytes) return;  // JavaScript has detached it
      for (const auto& packet : socket_.read_batch(memory.Data())) {
        const napi_value number =
            Napi::Number::New(env, packet.is_stray ? -1 : static_cast<double>(packet.number));
        const auto slot = Napi::Number::New(env, static_cast<double>(packet.slot));
        const auto length = Napi::Number::New(env, static_cast<double>(packet.length));
        if (packet.is_stray) call(env, {number, slot, length, address_value(env, packet.from)});
        else call(env, {number, slot, length});
      }
    });
    return socket_.was_full();
  }

 private:
  ConnectionSocket socket_;
  std::unique_ptr<Napi::Reference<Napi::Uint8Array>> memory_;
};

Napi::Function ConnectionSocketHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeConnectionSocket",
                     {InstanceMethod<&ConnectionSocketHandle::address>("address"),
                      InstanceMethod<&ConnectionSocketHandle::new_id>("newId"),
                      InstanceMethod<&ConnectionSocketHandle::know>("know"),
                      InstanceMethod<&ConnectionSocketHandle::admit>("admit"),
                      InstanceMethod<&ConnectionSocketHandle::forget>("forget"),
                      InstanceMethod<&ConnectionSocketHandle::send_packet>("send"),
                      InstanceMethod<&ConnectionSocketHandle::flush>("flush"),
                      InstanceMethod<&ConnectionSocketHandle::counts>("counts"),
                      InstanceMethod<&ConnectionSocketHandle::close>("close")});
}

ConnectionSocketHandle::ConnectionSocketHandle(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  uint32_t fd = 0;
  uint32_t buffer_bytes = 0;
  ConnectionIdKey key;
  Bytes memory{};
  if (!read_u32(info[0], "descriptor", INT_MAX, fd) ||
      !read_u32(info[1], "bufferBytes", INT_MAX, buffer_bytes) ||
      !read_key(info[2], "idKey", key) || !read_bytes(info[3], "memory", memory))
    return;
  if (memory.length < kMemoryBytes || !info[4].IsFunction()) {
    fail(info.Env(),
         "expected a memory of " + std::to_string(kMemoryBytes) + " bytes and a function");
    return;
  }
  const int descriptor = static_cast<int>(fd);
  set_buffers(descriptor, buffer_bytes);
  ids_.emplace(key);
  // Without the filter, ConnectionPackets still drops packets of strangers.
  (void)ids_->attach_filter(descriptor);
  owner_.open(info.Env(), std::make_unique<Reader>(info.Env(), UdpSocket(descriptor),
                                                   info[3].As<Napi::Uint8Array>(),
                                                   info[4].As<Napi::Function>()));
}

ConnectionSocketHandle::Reader* ConnectionSocketHandle::reader() const {
  return static_cast<Reader*>(owner_.get());
}

Napi::Value ConnectionSocketHandle::address(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!reader()) return env.Undefined();
  return address_value(env, local_endpoint(reader()->socket().fd()));
}

Napi::Value ConnectionSocketHandle::new_id(const Napi::CallbackInfo& info) {
  if (!ids_) return info.Env().Undefined();
  const ConnectionId id = ids_->make_random();
  return Napi::Buffer<uint8_t>::Copy(info.Env(), id.data(), id.size());
}

void ConnectionSocketHandle::know(const Napi::CallbackInfo& info) {
  Bytes id{};
  uint32_t number = 0;
  Endpoint remote;
  if (reader() && read_bytes(info[0], "id", id) && read_u32(info[1], "number", INT_MAX, number) &&
      read_endpoint(info[2], "remote", remote))
    reader()->socket().packets().know(text_of(id), number, remote);
}

void ConnectionSocketHandle::admit(const Napi::CallbackInfo& info) {
  Bytes id{};
  if (reader() && read_bytes(info[0], "id", id)) reader()->socket().packets().admit(text_of(id));
}

void ConnectionSocketHandle::forget(const Napi::CallbackInfo& info) {
  Bytes id{};
  if (reader() && read_bytes(info[0], "id", id)) reader()->socket().packets().forget(text_of(id));
}

void ConnectionSocketHandle::send_packet(const Napi::CallbackInfo& info) {
  Bytes packet{};
  Endpoint to;
  if (!reader() || !read_bytes(info[0], "packet", packet) || !read_endpoint(info[1], "to", to))
    return;
  if (packet.length > kConnectionPacketBytesMax) {
    fail(info.Env(), "packet: expected at most " + std::to_string(kConnectionPacketBytesMax) +
                         " bytes, got " + std::to_string(packet.length));
    return;
  }
  reader()->socket().send({packet.data, packet.length}, to);
}

void ConnectionSocketHandle::flush(const Napi::CallbackInfo&) {
  if (reader()) reader()->socket().flush();
}

Napi::Value ConnectionSocketHandle::counts(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto counts = reader() ? reader()->socket().counts() : ConnectionPacketCounts{};
  const auto failures = reader() ? reader()->socket().failures() : SendFailures{};
  auto value = counts_value(env, {{"received", counts.received},
                                  {"unknown", counts.unknown},
                                  {"limited", counts.limited},
                                  {"linkLocal", counts.link_local},
                                  {"failed", failures.packets}})
                   .As<Napi::Object>();
  value.Set("lastFailure", failures.last_error == 0
                               ? std::string()
                               : std::generic_category().message(failures.last_error));
  return value;
}

void ConnectionSocketHandle::close(const Napi::CallbackInfo&) { owner_.close(); }

}  // namespace shredway::addon
