#include "addon/first_packet_handle.h"

#include <arpa/inet.h>

#include <algorithm>
#include <climits>
#include <string>
#include <utility>

#include "addon/arguments.h"

namespace shredway::addon {
namespace {

// A wake-up for each packet of a flood would cost more than its packet.
constexpr uint64_t kPause_ms = 1;
constexpr size_t kBatchesAtOnce = 8;

std::string host_of(const Endpoint& endpoint) {
  std::array<char, INET6_ADDRSTRLEN> text;
  sockaddr_storage address;
  to_sockaddr(endpoint, address);
  const void* bytes =
      endpoint.is_ipv4()
          ? static_cast<const void*>(&reinterpret_cast<sockaddr_in&>(address).sin_addr)
          : &reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
  const char* written =
      inet_ntop(endpoint.is_ipv4() ? AF_INET : AF_INET6, bytes, text.data(), text.size());
  return written ? written : "";
}

}  // namespace

Napi::Function FirstPacketHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeFirstPackets",
                     {InstanceMethod<&FirstPacketHandle::know>("know"),
                      InstanceMethod<&FirstPacketHandle::forget>("forget"),
                      InstanceMethod<&FirstPacketHandle::counts>("counts"),
                      InstanceMethod<&FirstPacketHandle::close>("close")});
}

FirstPacketHandle::Reader::Reader(Napi::Env env, UdpSocket socket, const RetryKey& key,
                                  Napi::Function function)
    : first_packets(std::move(socket), key),
      listener(std::make_unique<Napi::FunctionReference>(Napi::Persistent(function))),
      context(std::make_unique<Napi::AsyncContext>(env, "shredway first packets")) {}

void FirstPacketHandle::Reader::stop() {
  is_closing = true;
  if (is_passing) return;
  listener.reset();
  context.reset();
}

FirstPacketHandle::FirstPacketHandle(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const Napi::Env env = info.Env();
  uint32_t fd = 0;
  uint32_t buffer_bytes = 0;
  Bytes bytes{};
  if (!read_u32(info[0], "descriptor", INT_MAX, fd) ||
      !read_u32(info[1], "bufferBytes", INT_MAX, buffer_bytes) ||
      !read_bytes(info[2], "key", bytes))
    return;
  if (bytes.length != kRetryKeyBytes || !info[3].IsFunction()) {
    fail(env, "expected a key of 32 bytes and a function");
    return;
  }
  RetryKey key;
  std::copy_n(bytes.data, key.size(), key.begin());
  set_buffers(static_cast<int>(fd), buffer_bytes);
  uv_loop_t* loop = nullptr;
  napi_get_uv_event_loop(env, &loop);
  auto reader = std::make_unique<Reader>(env, UdpSocket(static_cast<int>(fd)), key,
                                         info[3].As<Napi::Function>());
  if (const int error = reader->open(loop); error != 0) {
    Napi::Error::New(env, std::string("cannot watch a socket: ") + uv_strerror(error))
        .ThrowAsJavaScriptException();
    return;
  }
  reader_ = reader.release();
  napi_add_env_cleanup_hook(env, end_with_environment, this);
}

FirstPacketHandle::~FirstPacketHandle() { end(); }

void FirstPacketHandle::end_with_environment(void* handle) {
  static_cast<FirstPacketHandle*>(handle)->end();
}

void FirstPacketHandle::end() {
  if (!reader_) return;
  napi_remove_env_cleanup_hook(Env(), end_with_environment, this);
  Reader* reader = std::exchange(reader_, nullptr);
  reader->stop();
  // The loop still knows the handles, and the socket must not be reused before.
  uv_close(reinterpret_cast<uv_handle_t*>(&reader->poll), closed);
  uv_close(reinterpret_cast<uv_handle_t*>(&reader->pause), closed);
}

void FirstPacketHandle::closed(uv_handle_t* handle) {
  auto* const reader = static_cast<Reader*>(handle->data);
  if (--reader->open_handles == 0) delete reader;
}

int FirstPacketHandle::Reader::open(uv_loop_t* loop) {
  if (const int error = uv_poll_init(loop, &poll, first_packets.fd()); error != 0) return error;
  uv_timer_init(loop, &pause);
  open_handles = 2;
  poll.data = this;
  pause.data = this;
  uv_unref(reinterpret_cast<uv_handle_t*>(&poll));
  uv_unref(reinterpret_cast<uv_handle_t*>(&pause));
  watch();
  return 0;
}

void FirstPacketHandle::Reader::watch() {
  uv_poll_start(&poll, UV_READABLE,
                [](uv_poll_t* handle, int, int) { static_cast<Reader*>(handle->data)->read(); });
}

void FirstPacketHandle::Reader::read() {
  for (size_t batch = 0; batch < kBatchesAtOnce && read_batch(); batch++) {
  }
  if (is_closing || !first_packets.packets().is_flooded()) return;
  uv_poll_stop(&poll);
  const auto resume = [](uv_timer_t* timer) { static_cast<Reader*>(timer->data)->watch(); };
  uv_timer_start(&pause, resume, kPause_ms, 0);
}

bool FirstPacketHandle::Reader::read_batch() {
  const auto& passed = first_packets.handle_batch();
  if (!passed.empty()) {
    is_passing = true;
    call_listener(passed);
    is_passing = false;
    if (is_closing) stop();
  }
  return !is_closing && first_packets.was_full();
}

void FirstPacketHandle::Reader::call_listener(const std::vector<PassedPacket>& passed) {
  const Napi::Env env = listener->Env();
  const Napi::HandleScope handles(env);
  const Napi::CallbackScope callbacks(env, *context);
  for (const PassedPacket& packet : passed) {
    if (is_closing) return;
    const napi_value words[] = {
        Napi::Buffer<uint8_t>::Copy(env, packet.bytes.data(), packet.bytes.size()),
        Napi::String::New(env, host_of(packet.from)), Napi::Number::New(env, packet.from.port)};
    napi_value nothing = env.Undefined();
    if (napi_call_function(env, nothing, listener->Value(), std::size(words), words, nullptr) !=
        napi_pending_exception)
      continue;
    napi_value thrown = nullptr;
    if (napi_get_and_clear_last_exception(env, &thrown) == napi_ok)
      napi_fatal_exception(env, thrown);
  }
}

void FirstPacketHandle::know(const Napi::CallbackInfo& info) {
  Bytes id{};
  if (reader_ && read_bytes(info[0], "id", id))
    reader_->first_packets.packets().know({reinterpret_cast<const char*>(id.data), id.length});
}

void FirstPacketHandle::forget(const Napi::CallbackInfo& info) {
  Bytes id{};
  if (reader_ && read_bytes(info[0], "id", id))
    reader_->first_packets.packets().forget({reinterpret_cast<const char*>(id.data), id.length});
}

Napi::Value FirstPacketHandle::counts(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const FirstPacketCounts counts =
      reader_ ? reader_->first_packets.packets().counts() : FirstPacketCounts{};
  return counts_value(env, {{"received", counts.received},
                            {"retries", counts.retries},
                            {"invalidTokens", counts.invalid_tokens},
                            {"unknown", counts.unknown},
                            {"limited", counts.limited},
                            {"linkLocal", counts.link_local}});
}

void FirstPacketHandle::close(const Napi::CallbackInfo&) { end(); }

}  // namespace shredway::addon
