// Fast path handle: the offers of the QUIC process.
#include <climits>

#include "addon/fast_path_handle.h"
#include "system/offer_channel.h"

namespace shredway::addon {

Napi::Value write_offer_of(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t fd = 0;
  OfferHead head{};
  Bytes bytes{};
  if (!read_u32(info[0], "descriptor", INT_MAX, fd) ||
      !read_safe_integer(info[1], "sequence", head.sequence) ||
      !read_safe_integer(info[2], "connection", head.connection) ||
      !read_bytes(info[3], "bytes", bytes))
    return env.Undefined();
  return Napi::Boolean::New(env,
                            write_offer(static_cast<int>(fd), head, {bytes.data, bytes.length}));
}

Napi::Value FastPathHandle::open_offers(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return path_ ? Napi::Number::New(env, path_->open_offers().value_or(-1)) : env.Undefined();
}

void FastPathHandle::watch_offers(const Napi::CallbackInfo& info) {
  uint64_t connection = 0;
  uint32_t key = 0;
  uint64_t until_ns = 0;
  if (path_ && read_safe_integer(info[0], "connection", connection) &&
      read_u32(info[1], "key", kFastPathKeysMax - 1, key) && read_u64(info[2], "until", until_ns))
    path_->watch_offers(connection, key, until_ns);
}

void FastPathHandle::forget_offers(const Napi::CallbackInfo& info) {
  uint64_t connection = 0;
  if (path_ && read_safe_integer(info[0], "connection", connection))
    path_->forget_offers(connection);
}

Napi::Value FastPathHandle::claim_offer(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint64_t sequence = 0;
  Bytes wire{};
  Bytes into{};
  if (!path_ || !read_safe_integer(info[0], "sequence", sequence) ||
      !read_bytes(info[1], "transaction", wire) || !read_record(info[2], into))
    return env.Undefined();
  const auto claim = path_->claim_offer(sequence, {wire.data, wire.length});
  if (!claim) return Napi::Number::New(env, 0);
  const Napi::Value sends = write_record(env, claim->taken, into);
  return claim->is_same ? sends : Napi::Number::New(env, -1);
}

Napi::Value FastPathHandle::is_offer_taken(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint64_t sequence = 0;
  if (!path_ || !read_safe_integer(info[0], "sequence", sequence)) return env.Undefined();
  return Napi::Boolean::New(env, path_->is_offer_taken(sequence));
}

Napi::Value FastPathHandle::end_offers(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Bytes into{};
  if (!path_ || !read_record(info[0], into)) return env.Undefined();
  return write_record(env, path_->end_offers(), into);
}

}  // namespace shredway::addon
