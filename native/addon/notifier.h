// ResultNotifier: how a native thread asks JavaScript to look for what waits.
//
// The only way from a native thread towards JavaScript, and nothing but a ring: the function that
// is called on the environment's own thread drains landings or results. It never keeps the process
// alive.
#pragma once

#include <napi.h>

#include "relay/deshred_thread.h"
#include "verify/signature_verifier.h"

namespace shredway::addon {

class NotifierHandle final : public LandingNotifier, public VerifierNotifier {
 public:
  // Calls `listener` without arguments on the environment's thread. What it throws is an uncaught
  // exception. `name` is for whoever inspects the process. Check valid() afterwards: the
  // environment may have no room.
  NotifierHandle(Napi::Env env, const Napi::Function& listener, const char* name);
  // Nobody may ring any more.
  ~NotifierHandle();
  NotifierHandle(const NotifierHandle&) = delete;
  NotifierHandle& operator=(const NotifierHandle&) = delete;
  bool valid() const { return function_ != nullptr; }

  // A ring that finds others waiting would say nothing new and is dropped.
  void notify() override;

 private:
  napi_threadsafe_function function_ = nullptr;
};

}  // namespace shredway::addon
