#include "addon/packet_reader.h"

#include <string>
#include <utility>

#include "addon/arguments.h"
#include "quic/flood_filter.h"

namespace shredway::addon {
namespace {

constexpr uint64_t kPause_ms = 1;
constexpr size_t kBatchesAtOnce = 8;
constexpr uint64_t kAdjustment_ms = FloodShare::kPeriod_ns / 1'000'000;

template <typename Handle>
uv_handle_t* handle_of(Handle& handle) {
  return reinterpret_cast<uv_handle_t*>(&handle);
}

void close_with_environment(void* owner) { static_cast<ReaderOwner*>(owner)->close(); }

}  // namespace

PacketReader::PacketReader(Napi::Env env, Napi::Function listener, const char* name)
    : listener_(std::make_unique<Napi::FunctionReference>(Napi::Persistent(listener))),
      context_(std::make_unique<Napi::AsyncContext>(env, name)) {}

int PacketReader::open(uv_loop_t* loop) {
  if (const int error = uv_poll_init(loop, &poll_, fd()); error != 0) return error;
  uv_timer_init(loop, &pause_);
  uv_timer_init(loop, &adjustment_);
  for (uv_handle_t* handle : {handle_of(poll_), handle_of(pause_), handle_of(adjustment_)}) {
    open_handles_++;
    handle->data = this;
    uv_unref(handle);
  }
  watch();
  return 0;
}

void PacketReader::close() {
  is_closing_ = true;
  if (!is_passing_) release();
  // The loop still knows the handles, and the socket must not be reused before.
  for (uv_handle_t* handle : {handle_of(poll_), handle_of(pause_), handle_of(adjustment_)})
    uv_close(handle, closed);
}

void PacketReader::closed(uv_handle_t* handle) {
  auto* const reader = static_cast<PacketReader*>(handle->data);
  if (--reader->open_handles_ == 0) delete reader;
}

void PacketReader::release() {
  listener_.reset();
  context_.reset();
}

void PacketReader::watch() {
  uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t* handle, int, int) {
    static_cast<PacketReader*>(handle->data)->read();
  });
}

void PacketReader::read() {
  for (size_t batch = 0; batch < kBatchesAtOnce && !is_closing_ && read_batch(); batch++) {
  }
  if (is_closing_) return;
  adjust_again();
  if (!is_flooded()) return;
  uv_poll_stop(&poll_);
  const auto resume = [](uv_timer_t* timer) { static_cast<PacketReader*>(timer->data)->watch(); };
  uv_timer_start(&pause_, resume, kPause_ms, 0);
}

void PacketReader::adjust_again() {
  if (!adjust() || uv_is_active(handle_of(adjustment_)) != 0) return;
  const auto again = [](uv_timer_t* timer) {
    static_cast<PacketReader*>(timer->data)->adjust_again();
  };
  uv_timer_start(&adjustment_, again, kAdjustment_ms, 0);
}

void PacketReader::call(Napi::Env env, std::initializer_list<napi_value> arguments) {
  if (is_closing_) return;
  const napi_value nothing = env.Undefined();
  const napi_status status = napi_call_function(env, nothing, listener_->Value(), arguments.size(),
                                                arguments.begin(), nullptr);
  if (status != napi_pending_exception) return;
  napi_value thrown = nullptr;
  if (napi_get_and_clear_last_exception(env, &thrown) == napi_ok) napi_fatal_exception(env, thrown);
}

void ReaderOwner::open(Napi::Env env, std::unique_ptr<PacketReader> reader) {
  uv_loop_t* loop = nullptr;
  napi_get_uv_event_loop(env, &loop);
  if (const int error = reader->open(loop); error != 0) {
    Napi::Error::New(env, std::string("cannot watch a socket: ") + uv_strerror(error))
        .ThrowAsJavaScriptException();
    return;
  }
  env_ = env;
  reader_ = reader.release();
  napi_add_env_cleanup_hook(env, close_with_environment, this);
}

void ReaderOwner::close() {
  if (!reader_) return;
  napi_remove_env_cleanup_hook(env_, close_with_environment, this);
  std::exchange(reader_, nullptr)->close();
}

}  // namespace shredway::addon
