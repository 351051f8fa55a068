#include "addon/fast_path_handle.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace shredway::addon {
namespace {

std::string_view view_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.length};
}

bool read_text(const Napi::Value& value, const char* name, std::string& out) {
  if (!value.IsString())
    return fail(value.Env(), std::string(name) + ": expected a string" + received(value));
  out = value.As<Napi::String>().Utf8Value();
  return true;
}

bool read_number(const Napi::CallbackInfo& info, size_t place, const char* name, uint32_t& out) {
  return read_u32(info[place], name, UINT32_MAX, out);
}

}  // namespace

bool FastPathHandle::read_record(const Napi::Value& value, Bytes& into) {
  if (!read_bytes(value, "into", into)) return false;
  if (into.length >= sizeof(TakenRecord)) return true;
  return fail(value.Env(), "into: expected " + std::to_string(sizeof(TakenRecord)) +
                               " bytes, got " + std::to_string(into.length));
}

Napi::Value FastPathHandle::write_record(Napi::Env env, const std::optional<TakenRequest>& taken,
                                         const Bytes& into) {
  if (!taken) return Napi::Number::New(env, 0);
  // Only what is used is written: the rest of the record is up to 4 KB.
  const auto write = [record = const_cast<uint8_t*>(into.data)](size_t at, const void* from,
                                                                size_t length) {
    std::memcpy(record + at, from, length);
  };
  const uint64_t wire_length = std::min(taken->wire.size(), sizeof(TakenRecord::wire));
  write(offsetof(TakenRecord, taken_ns), &taken->taken_ns, sizeof(uint64_t));
  write(offsetof(TakenRecord, signature_length), &taken->signature_length, sizeof(uint32_t));
  write(offsetof(TakenRecord, send_count), &taken->send_count, sizeof(uint32_t));
  write(offsetof(TakenRecord, signature), taken->signature.data(), taken->signature_length);
  write(offsetof(TakenRecord, sends), taken->sends.data(), taken->send_count * sizeof(FastSend));
  write(offsetof(TakenRecord, wire_length), &wire_length, sizeof wire_length);
  write(offsetof(TakenRecord, wire), taken->wire.data(), wire_length);
  return Napi::Number::New(env, taken->send_count);
}

std::vector<Napi::ClassPropertyDescriptor<FastPathHandle>> FastPathHandle::methods() {
  return {InstanceMethod<&FastPathHandle::set_rules>("setRules"),
          InstanceMethod<&FastPathHandle::pause>("pause"),
          InstanceMethod<&FastPathHandle::allow>("allow"),
          InstanceMethod<&FastPathHandle::note>("note"),
          InstanceMethod<&FastPathHandle::send_now>("sendNow"),
          InstanceMethod<&FastPathHandle::watch>("watch"),
          InstanceMethod<&FastPathHandle::learn>("learn"),
          InstanceMethod<&FastPathHandle::forget>("forget"),
          InstanceMethod<&FastPathHandle::forget_all>("forgetAll"),
          InstanceMethod<&FastPathHandle::arm>("arm"),
          InstanceMethod<&FastPathHandle::claim>("claim"),
          InstanceMethod<&FastPathHandle::is_taken>("isTaken"),
          InstanceMethod<&FastPathHandle::unwatch>("unwatch"),
          InstanceMethod<&FastPathHandle::open_offers>("openOffers"),
          InstanceMethod<&FastPathHandle::watch_offers>("watchOffers"),
          InstanceMethod<&FastPathHandle::forget_offers>("forgetOffers"),
          InstanceMethod<&FastPathHandle::claim_offer>("claimOffer"),
          InstanceMethod<&FastPathHandle::is_offer_taken>("isOfferTaken"),
          InstanceMethod<&FastPathHandle::end_offers>("endOffers"),
          InstanceMethod<&FastPathHandle::set_route>("setRoute"),
          InstanceMethod<&FastPathHandle::lend>("lend"),
          InstanceMethod<&FastPathHandle::lend_again>("lendAgain"),
          InstanceMethod<&FastPathHandle::reclaim>("reclaim"),
          InstanceMethod<&FastPathHandle::release>("release"),
          InstanceMethod<&FastPathHandle::counts>("counts"),
          InstanceMethod<&FastPathHandle::close>("close")};
}

Napi::Function FastPathHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeFastPath", methods());
}

FastPathHandle::FastPathHandle(const Napi::CallbackInfo& info)
    : ObjectWrap(info), env_(info.Env()) {
  if (info.Data()) streams_ = std::make_unique<MemoryStreams>();
  std::string error;
  path_ = streams_ ? FastPath::simulate(*streams_) : FastPath::open(error);
  if (!path_) {
    Napi::Error::New(env_, error).ThrowAsJavaScriptException();
    return;
  }
  napi_add_env_cleanup_hook(env_, end_with_environment, this);
}

FastPathHandle::~FastPathHandle() { end(); }

void FastPathHandle::end() {
  if (!path_) return;
  napi_remove_env_cleanup_hook(env_, end_with_environment, this);
  path_.reset();
}

void FastPathHandle::end_with_environment(void* handle) {
  static_cast<FastPathHandle*>(handle)->end();
}

// ---- what may be sent -----------------------------------------------------------------------

void FastPathHandle::set_rules(const Napi::CallbackInfo& info) {
  std::vector<PublicKey> tip_addresses;
  std::vector<KeyRange> dont_front_keys;
  uint64_t minimum_tip = 0;
  if (!path_ || !read_elements(info[0], "tipAddresses", AddressSet::kAddressesMax, tip_addresses) ||
      !read_elements(info[1], "frontKeyRanges", KeyRanges::kRangesMax, dont_front_keys) ||
      !read_u64(info[2], "minimumTip", minimum_tip))
    return;
  path_->set_rules(std::make_shared<const TransactionInspector>(tip_addresses, dont_front_keys),
                   minimum_tip);
}

void FastPathHandle::pause(const Napi::CallbackInfo&) {
  if (path_) path_->set_rules(nullptr, 0);
}

void FastPathHandle::allow(const Napi::CallbackInfo& info) {
  uint32_t key = 0;
  uint32_t calls = 0;
  if (path_ && read_u32(info[0], "key", kFastPathKeysMax - 1, key) &&
      read_number(info, 1, "calls", calls))
    path_->allow(key, calls);
}

void FastPathHandle::note(const Napi::CallbackInfo& info) {
  if (!path_) return;
  // One more than the longest signature, so that a longer text is another one.
  char text[90];
  size_t length = 0;
  if (napi_get_value_string_latin1(info.Env(), info[0], text, sizeof text, &length) == napi_ok)
    path_->note({text, length});
  else fail(info.Env(), "signature: expected a string" + received(info[0]));
}

Napi::Value FastPathHandle::send_now(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Bytes wire{};
  Bytes into{};
  if (!path_ || !read_bytes(info[0], "transaction", wire) || !read_record(info[1], into))
    return env.Undefined();
  return write_record(env, path_->send_now({wire.data, wire.length}), into);
}

// ---- callers' connections -------------------------------------------------------------------

Napi::Value FastPathHandle::watch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t fd = 0;
  if (!path_ || !read_u32(info[0], "descriptor", INT_MAX, fd)) return env.Undefined();
  const auto number = path_->watch(static_cast<int>(fd));
  return Napi::Number::New(env, number ? static_cast<double>(*number) : -1);
}

Napi::Value FastPathHandle::learn(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t connection = 0;
  Bytes head{};
  Bytes body{};
  uint32_t key = 0;
  uint64_t until_ns = 0;
  if (!path_ || !read_number(info, 0, "connection", connection) ||
      !read_bytes(info[1], "head", head) || !read_bytes(info[2], "body", body) ||
      !read_u32(info[4], "key", kFastPathKeysMax - 1, key) || !read_u64(info[5], "until", until_ns))
    return env.Undefined();
  const auto encoding = info[3].ToBoolean().Value() ? TransactionTextEncoding::base58
                                                    : TransactionTextEncoding::base64;
  return Napi::Boolean::New(
      env, path_->learn(connection, view_of(head), view_of(body), encoding, key, until_ns));
}

void FastPathHandle::forget(const Napi::CallbackInfo& info) {
  uint32_t connection = 0;
  if (path_ && read_number(info, 0, "connection", connection)) path_->forget(connection);
}

void FastPathHandle::forget_all(const Napi::CallbackInfo&) {
  if (path_) path_->forget_all();
}

void FastPathHandle::arm(const Napi::CallbackInfo& info) {
  uint32_t connection = 0;
  uint32_t received_bytes = 0;
  if (path_ && read_number(info, 0, "connection", connection) &&
      read_number(info, 1, "received", received_bytes))
    path_->arm(connection, received_bytes);
}

Napi::Value FastPathHandle::claim(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t connection = 0;
  uint32_t begin = 0;
  Bytes into{};
  if (!path_ || !read_number(info, 0, "connection", connection) ||
      !read_number(info, 1, "begin", begin) || !read_record(info[2], into))
    return env.Undefined();
  const auto claim = path_->claim(connection, begin);
  if (!claim) return Napi::Number::New(env, path_->take_difference(connection) ? -1 : 0);
  const Napi::Value sends = write_record(env, claim->taken, into);
  return claim->is_same ? sends : Napi::Number::New(env, -2);
}

Napi::Value FastPathHandle::is_taken(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t connection = 0;
  uint32_t begin = 0;
  if (!path_ || !read_number(info, 0, "connection", connection) ||
      !read_number(info, 1, "begin", begin))
    return env.Undefined();
  return Napi::Boolean::New(env, path_->is_taken(connection, begin));
}

void FastPathHandle::unwatch(const Napi::CallbackInfo& info) {
  uint32_t connection = 0;
  if (path_ && read_number(info, 0, "connection", connection)) path_->unwatch(connection);
}

// ---- connections to partners ----------------------------------------------------------------

void FastPathHandle::set_route(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t number = 0;
  FastRoute route;
  if (!path_ || !read_u32(info[0], "route", kFastPathRoutesMax - 1, number)) return;
  if (!info[1].IsArray()) {
    fail(env, "texts: expected an array" + received(info[1]));
    return;
  }
  const auto texts = info[1].As<Napi::Array>();
  uint32_t place = 0;
  for (std::string* text : {&route.head, &route.before_id, &route.before_text, &route.after_text}) {
    Napi::Value value;
    if (!read_element(texts, place++, value) || !read_text(value, "texts", *text)) return;
  }
  if (!read_u64(info[2], "minimumTip", route.minimum_tip) ||
      !read_number(info, 3, "bytesMax", route.bytes_max))
    return;
  path_->set_route(number, std::move(route));
}

Napi::Value FastPathHandle::lend(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t route = 0;
  uint32_t fd = 0;
  uint64_t until_ns = 0;
  if (!path_ || !read_u32(info[0], "route", kFastPathRoutesMax - 1, route) ||
      !read_u32(info[1], "descriptor", INT_MAX, fd) || !read_u64(info[2], "until", until_ns))
    return env.Undefined();
  const auto loan = path_->lend(route, static_cast<int>(fd), until_ns);
  return Napi::Number::New(env, loan ? static_cast<double>(*loan) : -1);
}

void FastPathHandle::lend_again(const Napi::CallbackInfo& info) {
  uint32_t loan = 0;
  uint64_t until_ns = 0;
  if (path_ && read_number(info, 0, "loan", loan) && read_u64(info[1], "until", until_ns))
    path_->lend_again(loan, until_ns);
}

Napi::Value FastPathHandle::reclaim(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t loan = 0;
  if (!path_ || !read_number(info, 0, "loan", loan)) return env.Undefined();
  return Napi::Boolean::New(env, path_->reclaim(loan));
}

void FastPathHandle::release(const Napi::CallbackInfo& info) {
  uint32_t loan = 0;
  if (path_ && read_number(info, 0, "loan", loan)) path_->release(loan);
}

Napi::Value FastPathHandle::counts(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!path_) return env.Undefined();
  const FastPathCounts counts = path_->counts();
  return counts_value(env, {{"taken", counts.taken},
                            {"direct", counts.direct},
                            {"different", counts.different},
                            {"rejected", counts.rejected},
                            {"late", counts.late},
                            {"connections", counts.connections},
                            {"loans", counts.loans},
                            {"unclaimed", counts.unclaimed}});
}

void FastPathHandle::close(const Napi::CallbackInfo&) { end(); }

}  // namespace shredway::addon
