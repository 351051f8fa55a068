#include "addon/notifier.h"

namespace shredway::addon {
namespace {

constexpr size_t kPendingCallsMax = 2;

// node-addon-api's own wrapper ends the process if the environment is terminated during the call.
// No JavaScript can run then, and every call except these plain ones fails.
void call_listener(napi_env env, napi_value listener, void*, void*) {
  if (!env) return;  // the environment has ended
  napi_value nothing = nullptr;
  if (napi_get_undefined(env, &nothing) != napi_ok) return;
  if (napi_call_function(env, nothing, listener, 0, nullptr, nullptr) != napi_pending_exception)
    return;
  napi_value thrown = nullptr;
  if (napi_get_and_clear_last_exception(env, &thrown) == napi_ok) napi_fatal_exception(env, thrown);
}

}  // namespace

NotifierHandle::NotifierHandle(Napi::Env env, const Napi::Function& listener, const char* name) {
  const auto text = Napi::String::New(env, name);
  if (napi_create_threadsafe_function(env, listener, nullptr, text, kPendingCallsMax, 1, nullptr,
                                      nullptr, nullptr, call_listener, &function_) != napi_ok) {
    function_ = nullptr;
    return;
  }
  napi_unref_threadsafe_function(env, function_);
}

NotifierHandle::~NotifierHandle() {
  if (function_) napi_release_threadsafe_function(function_, napi_tsfn_release);
}

void NotifierHandle::notify() {
  napi_call_threadsafe_function(function_, nullptr, napi_tsfn_nonblocking);
}

}  // namespace shredway::addon
