// Probe handle: a reachability probe as a JavaScript class.
#pragma once

#include <napi.h>

#include <memory>

#include "net/reachability_probe.h"

namespace shredway::addon {

class ReachabilityProbeHandle : public Napi::ObjectWrap<ReachabilityProbeHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit ReachabilityProbeHandle(const Napi::CallbackInfo& info);  // (to: 18 bytes, datagram)

 private:
  Napi::Value check(const Napi::CallbackInfo& info);  // "pending", "answered" or "unreachable"
  Napi::Value local(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);
  bool is_open(Napi::Env env) const;

  std::unique_ptr<ReachabilityProbe> probe_;
};

}  // namespace shredway::addon
