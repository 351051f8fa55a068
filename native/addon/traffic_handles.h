// Traffic handles: the shredder and the paced sender as JavaScript classes.
//
// For replay, the sandbox, tests and benchmarks; the relay needs neither.
#pragma once

#include <napi.h>

#include <memory>

#include "net/paced_sender.h"
#include "shred/shredder.h"

namespace shredway::addon {

class PacedSenderHandle : public Napi::ObjectWrap<PacedSenderHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit PacedSenderHandle(const Napi::CallbackInfo& info);  // (to, from: 18 bytes each, buffer)

 private:
  Napi::Value enqueue(const Napi::CallbackInfo& info);  // (bytes, Uint32Array ends, BigUint64Array)
  Napi::Value counts(const Napi::CallbackInfo& info);  // [sent, failed, refused, lateMaxNs, queued]
  Napi::Value local(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);
  bool is_open(Napi::Env env) const;

  std::unique_ptr<PacedSender> sender_;
};

class ShredderHandle : public Napi::ObjectWrap<ShredderHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit ShredderHandle(const Napi::CallbackInfo& info);  // (seed: 32 bytes)

 private:
  Napi::Value public_key(const Napi::CallbackInfo& info);
  // (entries, {slot, parentOffset, version, chainedRoot, nextFecSetIndex}, referenceTick,
  //  lastInSlot) -> { bytes, ends: Uint32Array, chainedRoot, nextFecSetIndex }
  Napi::Value shred(const Napi::CallbackInfo& info);

  std::unique_ptr<SigningKey> key_;
  std::unique_ptr<Shredder> shredder_;  // its Reed-Solomon matrix takes 0.5 ms to build
};

}  // namespace shredway::addon
