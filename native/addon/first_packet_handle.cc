#include "addon/first_packet_handle.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <utility>

#include "addon/arguments.h"
#include "quic/first_packet_socket.h"

namespace shredway::addon {

class FirstPacketHandle::Reader : public PacketReader {
 public:
  Reader(Napi::Env env, UdpSocket socket, const RetryKey& key, const ConnectionIds& ids,
         Napi::Function listener)
      : PacketReader(env, listener, "shredway first packets"),
        socket_(std::move(socket), key, ids) {}
  FirstPacketSocket& socket() { return socket_; }

 protected:
  int fd() const override { return socket_.fd(); }
  bool is_flooded() const override { return socket_.is_flooded(); }

  bool read_batch() override {
    const auto& passed = socket_.handle_batch();
    if (!passed.empty()) {
      pass([&](Napi::Env env) {
        for (const auto& [bytes, from] : passed)
          call(env, {Napi::Buffer<uint8_t>::Copy(env, bytes.data(), bytes.size()),
                     Napi::String::New(env, host_text(from)), Napi::Number::New(env, from.port)});
      });
    }
    return socket_.was_full();
  }

  bool adjust() override {
    socket_.adjust();
    return socket_.is_dropping();
  }

 private:
  FirstPacketSocket socket_;
};

Napi::Function FirstPacketHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeFirstPackets",
                     {InstanceMethod<&FirstPacketHandle::know>("know"),
                      InstanceMethod<&FirstPacketHandle::forget>("forget"),
                      InstanceMethod<&FirstPacketHandle::counts>("counts"),
                      InstanceMethod<&FirstPacketHandle::close>("close")});
}

FirstPacketHandle::FirstPacketHandle(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  uint32_t fd = 0;
  uint32_t buffer_bytes = 0;
  RetryKey key;
  ConnectionIdKey id_key;
  if (!read_u32(info[0], "descriptor", INT_MAX, fd) ||
      !read_u32(info[1], "bufferBytes", INT_MAX, buffer_bytes) || !read_key(info[2], "key", key) ||
      !read_key(info[3], "idKey", id_key))
    return;
  if (!info[4].IsFunction()) {
    fail(info.Env(), "expected a function");
    return;
  }
  set_buffers(static_cast<int>(fd), buffer_bytes);
  owner_.open(info.Env(),
              std::make_unique<Reader>(info.Env(), UdpSocket(static_cast<int>(fd)), key,
                                       ConnectionIds(id_key), info[4].As<Napi::Function>()));
}

FirstPacketHandle::Reader* FirstPacketHandle::reader() const {
  return static_cast<Reader*>(owner_.get());
}

void FirstPacketHandle::know(const Napi::CallbackInfo& info) {
  Bytes id{};
  if (reader() && read_bytes(info[0], "id", id)) reader()->socket().packets().know(text_of(id));
}

void FirstPacketHandle::forget(const Napi::CallbackInfo& info) {
  Bytes id{};
  if (reader() && read_bytes(info[0], "id", id)) reader()->socket().packets().forget(text_of(id));
}

Napi::Value FirstPacketHandle::counts(const Napi::CallbackInfo& info) {
  const FirstPacketCounts counts = reader() ? reader()->socket().counts() : FirstPacketCounts{};
  return counts_value(info.Env(), {{"received", counts.received},
                                   {"retries", counts.retries},
                                   {"invalidTokens", counts.invalid_tokens},
                                   {"unknown", counts.unknown},
                                   {"limited", counts.limited},
                                   {"limitedPackets", counts.limited_packets},
                                   {"linkLocal", counts.link_local}});
}

void FirstPacketHandle::close(const Napi::CallbackInfo&) { owner_.close(); }

}  // namespace shredway::addon
