// Bell: how a native thread asks JavaScript to look for what waits.
//
// The only way from a native thread towards JavaScript, and nothing but a ring: the function that
// is called on the environment's own thread drains landings or results. It never keeps the process
// alive.
#pragma once

#include <napi.h>

#include "relay/deshred_thread.h"
#include "verify/signature_verifier.h"

namespace shredway::addon {

class BellHandle final : public LandingBell, public VerifierBell {
 public:
  // Calls `listener` without arguments on the environment's thread. What it throws is an uncaught
  // exception. `name` is for whoever inspects the process. Check valid() afterwards: the
  // environment may have no room.
  BellHandle(Napi::Env env, const Napi::Function& listener, const char* name);
  // Nobody may ring any more.
  ~BellHandle();
  BellHandle(const BellHandle&) = delete;
  BellHandle& operator=(const BellHandle&) = delete;
  bool valid() const { return function_ != nullptr; }

  // A ring that finds others waiting would say nothing new and is dropped.
  void ring() override;

 private:
  napi_threadsafe_function function_ = nullptr;
};

}  // namespace shredway::addon
