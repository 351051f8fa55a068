#include "addon/traffic_handles.h"

#include <algorithm>
#include <cstring>

#include "addon/arguments.h"

namespace shredway::addon {

// ---- paced sender ---------------------------------------------------------------------------

Napi::Function PacedSenderHandle::define(Napi::Env env) {
  return DefineClass(env, "NativePacedSender",
                     {InstanceMethod<&PacedSenderHandle::enqueue>("enqueue"),
                      InstanceMethod<&PacedSenderHandle::counts>("counts"),
                      InstanceMethod<&PacedSenderHandle::local>("local"),
                      InstanceMethod<&PacedSenderHandle::close>("close")});
}

PacedSenderHandle::PacedSenderHandle(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  PacedSenderOptions options;
  if (!read_endpoint(info[0], "to", options.to) || !read_endpoint(info[1], "from", options.from) ||
      !read_u32(info[2], "bufferBytes", 1u << 30, options.buffer_bytes))
    return;
  std::string error;
  sender_ = PacedSender::open(options, error);
  if (!sender_) Napi::Error::New(info.Env(), error).ThrowAsJavaScriptException();
}

bool PacedSenderHandle::is_open(Napi::Env env) const {
  if (!sender_)
    Napi::Error::New(env, "the sender is closed: open a new one").ThrowAsJavaScriptException();
  return sender_ != nullptr;
}

Napi::Value PacedSenderHandle::enqueue(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Bytes bytes{};
  if (!is_open(env) || !read_bytes(info[0], "packets", bytes)) return env.Undefined();
  const bool typed = info[1].IsTypedArray() && info[2].IsTypedArray() &&
                     info[1].As<Napi::TypedArray>().TypedArrayType() == napi_uint32_array &&
                     info[2].As<Napi::TypedArray>().TypedArrayType() == napi_biguint64_array &&
                     info[1].As<Napi::TypedArray>().ElementLength() ==
                         info[2].As<Napi::TypedArray>().ElementLength();
  if (!typed) {
    fail(env, "enqueue: expected a Uint32Array and a BigUint64Array of equal length");
    return env.Undefined();
  }
  const auto ends = info[1].As<Napi::Uint32Array>();
  const auto times = info[2].As<Napi::BigUint64Array>();
  PacedPackets packets;
  packets.bytes.assign(bytes.data, bytes.data + bytes.length);
  packets.offsets.assign(1, 0);
  packets.offsets.insert(packets.offsets.end(), ends.Data(), ends.Data() + ends.ElementLength());
  packets.times_ns.assign(times.Data(), times.Data() + times.ElementLength());
  if (!sender_->enqueue(std::move(packets)))
    fail(env, "enqueue: expected ascending ends within the bytes, and ascending times");
  return env.Undefined();
}

Napi::Value PacedSenderHandle::counts(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!is_open(env)) return env.Undefined();
  const PacedSenderCounts counts = sender_->counts();
  const auto object = Napi::Object::New(env);
  const auto set = [&](const char* name, uint64_t value) {
    object.Set(name, Napi::BigInt::New(env, value));
  };
  set("sent", counts.sent);
  set("failed", counts.failed);
  set("refused", counts.refused);
  set("lateMaxNs", counts.late_max_ns);
  set("queued", counts.queued);
  return object;
}

Napi::Value PacedSenderHandle::local(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  return endpoint_value(info.Env(), sender_->local());
}

void PacedSenderHandle::close(const Napi::CallbackInfo&) { sender_.reset(); }

// ---- shredder -------------------------------------------------------------------------------

Napi::Function ShredderHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeShredder",
                     {InstanceMethod<&ShredderHandle::public_key>("publicKey"),
                      InstanceMethod<&ShredderHandle::shred>("shred")});
}

ShredderHandle::ShredderHandle(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  Bytes bytes{};
  if (!read_bytes(info[0], "seed", bytes)) return;
  std::array<uint8_t, 32> seed;
  if (bytes.length != seed.size()) {
    fail(info.Env(), "seed: expected 32 bytes, got " + std::to_string(bytes.length));
    return;
  }
  std::memcpy(seed.data(), bytes.data, seed.size());
  key_ = std::make_unique<SigningKey>(seed);
  if (!key_->valid())
    Napi::Error::New(
        info.Env(),
        "no Ed25519 library found: neither libsodium nor libcrypto; install one of them")
        .ThrowAsJavaScriptException();
  shredder_ = std::make_unique<Shredder>(*key_);
}

Napi::Value ShredderHandle::public_key(const Napi::CallbackInfo& info) {
  const PublicKey& key = key_->public_key();
  return Napi::Buffer<uint8_t>::Copy(info.Env(), key.data(), key.size());
}

namespace {

bool read_position(const Napi::Value& value, SlotPosition& out) {
  if (!value.IsObject()) return fail(value.Env(), "position: expected an object" + received(value));
  const auto object = value.As<Napi::Object>();
  Bytes root{};
  uint32_t parent_offset = 0;
  uint32_t version = 0;
  Napi::Value values[5];
  constexpr const char* kNames[] = {"slot", "parentOffset", "version", "nextFecSetIndex",
                                    "chainedRoot"};
  for (size_t i = 0; i < std::size(values); i++)
    if (!read_property(object, kNames[i], values[i])) return false;
  if (!read_u64(values[0], kNames[0], out.slot) ||
      !read_u32(values[1], kNames[1], 65535, parent_offset) ||
      !read_u32(values[2], kNames[2], 65535, version) ||
      !read_u32(values[3], kNames[3], ~0u, out.next_fec_set_index) ||
      !read_bytes(values[4], kNames[4], root))
    return false;
  if (root.length != out.chained_root.size())
    return fail(value.Env(), "chainedRoot: expected 32 bytes, got " + std::to_string(root.length));
  std::memcpy(out.chained_root.data(), root.data, root.length);
  out.parent_offset = static_cast<uint16_t>(parent_offset);
  out.version = static_cast<uint16_t>(version);
  return true;
}

}  // namespace

Napi::Value ShredderHandle::shred(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Bytes entries{};
  SlotPosition position{};
  uint32_t reference_tick = 0;
  // Read the entries last: getters of the position run JavaScript, which may detach the entries.
  if (!read_position(info[1], position) ||
      !read_u32(info[2], "referenceTick", 255, reference_tick) ||
      !read_bytes(info[0], "entries", entries))
    return env.Undefined();
  PacketList packets;
  const bool made =
      shredder_->shred(entries.data, entries.length, static_cast<uint8_t>(reference_tick),
                       info[3].ToBoolean().Value(), position, packets);
  if (!made) {
    Napi::RangeError::New(
        env, "expected entries that fit into the slot and a valid position of the slot")
        .ThrowAsJavaScriptException();
    return env.Undefined();
  }
  auto ends = Napi::Uint32Array::New(env, packets.size());
  std::copy(packets.offsets.begin() + 1, packets.offsets.end(), ends.Data());
  const auto result = Napi::Object::New(env);
  result.Set("bytes", Napi::Buffer<uint8_t>::Copy(env, packets.bytes.data(), packets.bytes.size()));
  result.Set("ends", ends);
  result.Set("chainedRoot", Napi::Buffer<uint8_t>::Copy(env, position.chained_root.data(),
                                                        position.chained_root.size()));
  result.Set("nextFecSetIndex", Napi::Number::New(env, position.next_fec_set_index));
  return result;
}

}  // namespace shredway::addon
