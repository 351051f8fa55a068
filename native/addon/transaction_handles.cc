#include "addon/transaction_handles.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "addon/arguments.h"

namespace shredway::addon {
namespace {

// A private copy: shared memory could change between check and use. A message that is longer than
// any transaction is refused before its bytes are read.
using WireCopy = std::array<uint8_t, kTransactionV1BytesMax>;

void copy_wire(const Bytes& wire, WireCopy& copy) {
  if (wire.length <= copy.size() && wire.length > 0)
    std::memcpy(copy.data(), wire.data, wire.length);
}

// Reads a byte array that is large enough for a record.
bool read_buffer(const Napi::Value& value, size_t record_bytes, Bytes& out) {
  if (!read_bytes(value, "into", out)) return false;
  return out.length >= record_bytes ||
         fail(value.Env(), "into: expected " + std::to_string(record_bytes) + " bytes, got " +
                               std::to_string(out.length));
}

bool read_key(const Napi::Value& value, const char* name, PublicKey& out) {
  Bytes bytes{};
  if (!read_bytes(value, name, bytes)) return false;
  if (bytes.length != out.size())
    return fail(value.Env(),
                std::string(name) + ": expected 32 bytes, got " + std::to_string(bytes.length));
  std::memcpy(out.data(), bytes.data, out.size());
  return true;
}

uint16_t key_offset(const Transaction& transaction, size_t place) {
  return static_cast<uint16_t>(transaction.keys_begin + place * kPublicKeyBytes);
}

void write_record(const uint8_t* wire, const Transaction& transaction,
                  const TransactionFacts& facts, InspectionRecord& out) {
  out.tip_lamports = facts.tip_lamports;
  out.priority_fee_lamports = facts.priority_fee_lamports;
  out.compute_unit_price = facts.compute_unit_price;
  out.compute_unit_limit = facts.compute_unit_limit;
  out.signature_begin = transaction.signatures_begin;
  out.fee_payer_begin = transaction.keys_begin;
  out.lifetime_begin = transaction.lifetime_begin;
  if (facts.uses_nonce) {
    out.nonce_account_begin = key_offset(transaction, facts.nonce_account);
    out.nonce_authority_begin = key_offset(transaction, facts.nonce_authority);
  }
  out.version = static_cast<uint8_t>(transaction.version);
  out.has_dont_front_key = facts.has_dont_front_key;
  std::array<char, kBase58TextMax> text;
  const size_t length =
      base58_encode(wire + transaction.signatures_begin, kTransactionSignatureBytes, text.data());
  out.signature_text_length = static_cast<uint8_t>(length);
  std::memcpy(out.signature_text, text.data(), length);
}

}  // namespace

// ---- inspector ------------------------------------------------------------------------------

Napi::Function TransactionInspectorHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeTransactionInspector",
                     {InstanceMethod<&TransactionInspectorHandle::inspect>("inspect")});
}

TransactionInspectorHandle::TransactionInspectorHandle(const Napi::CallbackInfo& info)
    : ObjectWrap(info) {
  std::vector<PublicKey> tip_addresses;
  std::vector<KeyRange> dont_front_keys;
  if (!read_elements(info[0], "tipAddresses", AddressSet::kAddressesMax, tip_addresses) ||
      !read_elements(info[1], "frontKeyRanges", KeyRanges::kRangesMax, dont_front_keys))
    return;
  inspector_ = std::make_unique<TransactionInspector>(tip_addresses, dont_front_keys);
}

Napi::Value TransactionInspectorHandle::inspect(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Bytes wire{};
  Bytes into{};
  if (!read_bytes(info[0], "wire", wire) || !read_buffer(info[1], sizeof(InspectionRecord), into))
    return env.Undefined();
  WireCopy copy;
  copy_wire(wire, copy);
  Transaction transaction;
  TransactionFacts facts;
  TransactionFault fault;
  InspectionRecord record{};
  if (inspector_->inspect(copy.data(), wire.length, transaction, facts, fault)) {
    write_record(copy.data(), transaction, facts, record);
  } else {
    record.got = fault.got;
    record.fault_offset = fault.offset;
  }
  std::memcpy(const_cast<uint8_t*>(into.data), &record, sizeof record);
  return Napi::Number::New(env, static_cast<uint32_t>(fault.refusal));
}

// ---- co-signing -----------------------------------------------------------------------------

Napi::Value find_co_signing_place(const Napi::CallbackInfo& info) {
  static const CoSigningCheck check;
  const Napi::Env env = info.Env();
  Bytes wire{};
  Bytes into{};
  PublicKey nonce_account;
  PublicKey authority;
  if (!read_bytes(info[0], "wire", wire) || !read_key(info[1], "nonceAccount", nonce_account) ||
      !read_key(info[2], "authority", authority) ||
      !read_buffer(info[3], sizeof(CoSigningRecord), into))
    return env.Undefined();
  WireCopy copy;
  copy_wire(wire, copy);
  CoSigningPlace place{};
  CoSigningFault fault;
  CoSigningRecord record{};
  if (check.place(copy.data(), wire.length, nonce_account, authority, place, fault)) {
    record.signature_at = place.signature_at;
    record.message_begin = place.message_begin;
    record.message_end = place.message_end;
    std::memcpy(record.lifetime, copy.data() + place.lifetime_begin, sizeof record.lifetime);
  } else {
    record.got = fault.got;
    record.fault_offset = fault.offset;
    record.transaction_refusal = static_cast<uint8_t>(fault.transaction.refusal);
  }
  std::memcpy(const_cast<uint8_t*>(into.data), &record, sizeof record);
  return Napi::Number::New(env, static_cast<uint32_t>(fault.refusal));
}

// ---- verifier -------------------------------------------------------------------------------

Napi::Function SignatureVerifierHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeSignatureVerifier",
                     {InstanceMethod<&SignatureVerifierHandle::submit>("submit"),
                      InstanceMethod<&SignatureVerifierHandle::verify_now>("verifyNow"),
                      InstanceMethod<&SignatureVerifierHandle::drain>("drain"),
                      InstanceMethod<&SignatureVerifierHandle::on_results>("onResults"),
                      InstanceMethod<&SignatureVerifierHandle::close>("close")});
}

SignatureVerifierHandle::SignatureVerifierHandle(const Napi::CallbackInfo& info)
    : ObjectWrap(info), env_(info.Env()) {
  uint32_t threads = 0;
  uint32_t queue_max = 0;
  if (!read_u32(info[0], "threads", kVerifierThreadsMax, threads) ||
      !read_u32(info[1], "queueMax", kVerifierQueueMax, queue_max))
    return;
  std::string error;
  verifier_ = SignatureVerifier::open(threads, queue_max, error);
  if (!verifier_) Napi::Error::New(info.Env(), error).ThrowAsJavaScriptException();
}

SignatureVerifierHandle::~SignatureVerifierHandle() { end(); }

// Ends the threads first, then the notifier that they call.
void SignatureVerifierHandle::end() {
  verifier_.reset();
  if (!notifier_) return;
  napi_remove_env_cleanup_hook(env_, end_with_environment, this);
  notifier_.reset();
}

void SignatureVerifierHandle::end_with_environment(void* handle) {
  static_cast<SignatureVerifierHandle*>(handle)->end();
}

bool SignatureVerifierHandle::is_open(Napi::Env env) const {
  if (!verifier_)
    Napi::Error::New(env, "the verifier is closed: open a new one").ThrowAsJavaScriptException();
  return verifier_ != nullptr;
}

Napi::Value SignatureVerifierHandle::submit(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  uint32_t ticket = 0;
  Bytes wire{};
  if (!is_open(env) || !read_u32(info[0], "ticket", ~0u, ticket) ||
      !read_bytes(info[1], "wire", wire))
    return env.Undefined();
  return Napi::Boolean::New(env, verifier_->submit(ticket, wire.data, wire.length));
}

Napi::Value SignatureVerifierHandle::verify_now(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Bytes wire{};
  if (!is_open(env) || !read_bytes(info[0], "wire", wire)) return env.Undefined();
  std::array<uint8_t, kTransactionV1BytesMax> copy;  // a private copy: shared memory could change
  if (wire.length == 0 || wire.length > copy.size()) return Napi::Boolean::New(env, false);
  std::memcpy(copy.data(), wire.data, wire.length);
  return Napi::Boolean::New(env, verifier_->verify_now(copy.data(), wire.length));
}

Napi::Value SignatureVerifierHandle::drain(const Napi::CallbackInfo& info) {
  Bytes into{};
  if (!is_open(info.Env()) || !read_bytes(info[0], "into", into)) return info.Env().Undefined();
  std::array<VerifyResult, 256> results;
  const size_t max = std::min(results.size(), into.length / sizeof(VerifyResult));
  const size_t count = verifier_->drain(results.data(), max);
  if (count > 0)
    std::memcpy(const_cast<uint8_t*>(into.data), results.data(), count * sizeof(VerifyResult));
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

Napi::Value SignatureVerifierHandle::on_results(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!is_open(env)) return env.Undefined();
  if (!info[0].IsFunction() || notifier_) {
    fail(env, notifier_ ? "onResults: expected to be called once, got a second call"
                        : "onResults: expected a function");
    return env.Undefined();
  }
  notifier_ =
      std::make_unique<NotifierHandle>(env, info[0].As<Napi::Function>(), "shredway signatures");
  if (!notifier_->valid()) {
    notifier_.reset();
    Napi::Error::New(
        env, "cannot register the listener: the environment is out of memory or shutting down")
        .ThrowAsJavaScriptException();
    return env.Undefined();
  }
  // As in relay_handle.cc: the threads must end before the environment frees the notifier's
  // function.
  napi_add_env_cleanup_hook(env_, end_with_environment, this);
  verifier_->set_notifier(notifier_.get());
  return env.Undefined();
}

void SignatureVerifierHandle::close(const Napi::CallbackInfo&) { end(); }

// ---- base58 ---------------------------------------------------------------------------------

Napi::Value encode_base58(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Bytes bytes{};
  if (!read_bytes(info[0], "bytes", bytes)) return env.Undefined();
  if (bytes.length > kBase58BytesMax) {
    fail(env, "bytes: expected at most " + std::to_string(kBase58BytesMax) + " bytes, got " +
                  std::to_string(bytes.length));
    return env.Undefined();
  }
  std::array<uint8_t, kBase58BytesMax> copy;  // a private copy: shared memory could change
  if (bytes.length > 0) std::memcpy(copy.data(), bytes.data, bytes.length);
  std::array<char, kBase58TextMax> text;
  const size_t length = base58_encode(copy.data(), bytes.length, text.data());
  napi_value value = nullptr;
  if (napi_create_string_latin1(env, text.data(), length, &value) != napi_ok)
    return env.Undefined();
  return {env, value};
}

Napi::Value decode_base58(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Bytes into{};
  if (!info[0].IsString()) {
    fail(env, "text: expected a string" + received(info[0]));
    return env.Undefined();
  }
  if (!read_bytes(info[1], "into", into)) return env.Undefined();
  // Three bytes (one UTF-8 character) more than the longest valid text, and the final zero: a
  // longer text is thus recognised. Characters beyond ASCII are bytes outside the alphabet.
  std::array<char, kBase58TextMax + 4> text;
  size_t length = 0;
  if (napi_get_value_string_utf8(env, info[0], text.data(), text.size(), &length) != napi_ok)
    return env.Undefined();
  std::array<uint8_t, kBase58TextMax> bytes;
  size_t count = 0;
  if (!base58_decode(text.data(), length, bytes.data(), count)) return Napi::Number::New(env, -1);
  if (count > into.length) {
    fail(env, "into: expected room for " + std::to_string(count) + " bytes, got " +
                  std::to_string(into.length));
    return env.Undefined();
  }
  if (count > 0) std::memcpy(const_cast<uint8_t*>(into.data), bytes.data(), count);
  return Napi::Number::New(env, static_cast<double>(count));
}

}  // namespace shredway::addon
