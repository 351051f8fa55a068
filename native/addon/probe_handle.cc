#include "addon/probe_handle.h"

#include "addon/arguments.h"

namespace shredway::addon {

Napi::Function ReachabilityProbeHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeReachabilityProbe",
                     {InstanceMethod<&ReachabilityProbeHandle::check>("check"),
                      InstanceMethod<&ReachabilityProbeHandle::local>("local"),
                      InstanceMethod<&ReachabilityProbeHandle::close>("close")});
}

ReachabilityProbeHandle::ReachabilityProbeHandle(const Napi::CallbackInfo& info)
    : ObjectWrap(info) {
  Endpoint to;
  Bytes datagram{};
  if (!read_endpoint(info[0], "to", to) || !read_bytes(info[1], "datagram", datagram)) return;
  if (datagram.length < ReachabilityProbe::kSecretBytes) {
    fail(info.Env(), "datagram: expected at least " +
                         std::to_string(ReachabilityProbe::kSecretBytes) + " bytes, got " +
                         std::to_string(datagram.length));
    return;
  }
  std::string error;
  probe_ = ReachabilityProbe::open(to, {datagram.data, datagram.length}, error);
  if (!probe_) Napi::Error::New(info.Env(), error).ThrowAsJavaScriptException();
}

bool ReachabilityProbeHandle::is_open(Napi::Env env) const {
  if (!probe_)
    Napi::Error::New(env, "the probe is closed: open a new one").ThrowAsJavaScriptException();
  return probe_ != nullptr;
}

Napi::Value ReachabilityProbeHandle::check(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!is_open(env)) return env.Undefined();
  switch (probe_->check()) {
    case ProbeResult::answered:
      return Napi::String::New(env, "answered");
    case ProbeResult::unreachable:
      return Napi::String::New(env, "unreachable");
    case ProbeResult::pending:
      break;
  }
  return Napi::String::New(env, "pending");
}

Napi::Value ReachabilityProbeHandle::local(const Napi::CallbackInfo& info) {
  if (!is_open(info.Env())) return info.Env().Undefined();
  return endpoint_value(info.Env(), probe_->local());
}

void ReachabilityProbeHandle::close(const Napi::CallbackInfo&) { probe_.reset(); }

}  // namespace shredway::addon
