// Transaction handles: the inspector, the signature verifier, the co-signing check and base58 as
// JavaScript classes and functions.
//
// For the gateway. Every call is made on the environment's own thread.
#pragma once

#include <napi.h>

#include <memory>

#include "addon/notifier.h"
#include "system/base58.h"
#include "transaction/co_signing.h"
#include "transaction/inspector.h"
#include "verify/signature_verifier.h"

namespace shredway::addon {

// Result of inspect(): 144 bytes in the layout that data-plane/transactions.ts reads. Offsets are
// from the transaction's first byte.
struct InspectionRecord {
  uint64_t tip_lamports;           // 0
  uint64_t priority_fee_lamports;  // 8
  uint64_t got;                    // 16  refused: the received value
  uint32_t compute_unit_limit;     // 24
  uint16_t signature_begin;        // 28
  uint16_t fee_payer_begin;        // 30
  uint16_t lifetime_begin;         // 32
  uint16_t nonce_account_begin;    // 34  0: no durable nonce
  uint16_t nonce_authority_begin;  // 36
  uint16_t fault_offset;           // 38  refused: the offset of the fault
  uint8_t version;                 // 40  0 legacy, 1 v0, 2 v1
  uint8_t has_dont_front_key;      // 41
  uint8_t signature_text_length;   // 42
  uint8_t unused[5];               // 43
  char signature_text[88];         // 48  base58 of the first signature
  uint64_t compute_unit_price;     // 136 micro-lamports; 0 in version 1
};
static_assert(sizeof(InspectionRecord) == 144);

class TransactionInspectorHandle : public Napi::ObjectWrap<TransactionInspectorHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  // (tip addresses: 32 bytes each, don't-front ranges: first and last key, 64 bytes each)
  explicit TransactionInspectorHandle(const Napi::CallbackInfo& info);

 private:
  // (wire, into: an InspectionRecord) -> refusal number, 0 if accepted
  Napi::Value inspect(const Napi::CallbackInfo& info);

  std::unique_ptr<TransactionInspector> inspector_;
};

class SignatureVerifierHandle : public Napi::ObjectWrap<SignatureVerifierHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit SignatureVerifierHandle(const Napi::CallbackInfo& info);  // (threads, queueMax)
  ~SignatureVerifierHandle() override;

 private:
  // (ticket, wire) -> false if the queue is full
  Napi::Value submit(const Napi::CallbackInfo& info);
  Napi::Value verify_now(const Napi::CallbackInfo& info);
  // (Uint8Array) -> number of 8-byte results written to it, in the layout of VerifyResult
  Napi::Value drain(const Napi::CallbackInfo& info);
  Napi::Value on_results(const Napi::CallbackInfo& info);  // (function); callable once
  void close(const Napi::CallbackInfo& info);

  bool is_open(Napi::Env env) const;
  void end();
  static void end_with_environment(void* handle);

  std::unique_ptr<SignatureVerifier> verifier_;
  // The verifier's threads call it, so end() destroys it after they have ended.
  std::unique_ptr<NotifierHandle> notifier_;
  napi_env env_;
};

// Result of find_co_signing_place(): 56 bytes (data-plane/co-signing.ts). Offsets are from the
// transaction's first byte.
struct CoSigningRecord {
  uint64_t got;                 // 0   refused: the received value
  uint16_t signature_at;        // 8
  uint16_t message_begin;       // 10
  uint16_t message_end;         // 12
  uint16_t fault_offset;        // 14  refused: the offset of the fault
  uint8_t transaction_refusal;  // 16  why validators would refuse it; 0: they would not
  uint8_t unused[7];            // 17
  uint8_t lifetime[32];         // 24
};
static_assert(sizeof(CoSigningRecord) == 56);

// (wire, nonce account: 32 bytes, authority: 32 bytes, into: a CoSigningRecord) -> refusal number,
// 0 if a signature can be added
Napi::Value find_co_signing_place(const Napi::CallbackInfo& info);

// (Uint8Array) -> text
Napi::Value encode_base58(const Napi::CallbackInfo& info);
// (text, into: Uint8Array) -> number of bytes written to it, -1 if the text is not base58. `into`
// needs at most as many bytes as the text has characters.
Napi::Value decode_base58(const Napi::CallbackInfo& info);

}  // namespace shredway::addon
