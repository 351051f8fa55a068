// NotifierHandle: lets a native thread ask JavaScript to drain landings or results.
//
// The only way from a native thread to JavaScript. It passes no data: the listener runs on the
// environment's own thread and drains what waits. It never keeps the process alive.
#pragma once

#include <napi.h>

#include "relay/deshred_thread.h"
#include "verify/signature_verifier.h"

namespace shredway::addon {

class NotifierHandle final : public WakeUpNotifier, public VerifierNotifier {
 public:
  // Calls `listener` without arguments on the environment's thread. An exception in it is an
  // uncaught exception. `name` appears in diagnostics. Check valid() afterwards: the environment
  // may be out of memory.
  NotifierHandle(Napi::Env env, const Napi::Function& listener, const char* name);
  // No thread may call notify() any more.
  ~NotifierHandle();
  NotifierHandle(const NotifierHandle&) = delete;
  NotifierHandle& operator=(const NotifierHandle&) = delete;
  bool valid() const { return function_ != nullptr; }

  // A call is dropped if other calls are pending, because it would add no information.
  void notify() override;

 private:
  napi_threadsafe_function function_ = nullptr;
};

}  // namespace shredway::addon
