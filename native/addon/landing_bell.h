// Bell: how the deshred thread asks JavaScript to look for landings.
//
// The only way from a native thread towards JavaScript, and nothing but a ring: the function that
// is called on the environment's own thread drains what waits. It never keeps the process alive.
#pragma once

#include <napi.h>

#include "relay/deshred_thread.h"

namespace shredway::addon {

class LandingBellHandle final : public LandingBell {
 public:
  // `listener` is called without arguments on the environment's thread.
  LandingBellHandle(Napi::Env env, const Napi::Function& listener)
      : function_(Napi::ThreadSafeFunction::New(env, listener, "shredway landings", kRingsMax, 1)) {
    function_.Unref(env);
  }
  // Nobody may ring any more.
  ~LandingBellHandle() { function_.Release(); }
  LandingBellHandle(const LandingBellHandle&) = delete;
  LandingBellHandle& operator=(const LandingBellHandle&) = delete;

  // A ring that finds another one waiting would say nothing new.
  void ring() override { function_.NonBlockingCall(); }

 private:
  static constexpr size_t kRingsMax = 2;
  Napi::ThreadSafeFunction function_;
};

}  // namespace shredway::addon
