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
  // Calls `listener` without arguments on the environment's thread. What it throws is an uncaught
  // exception. Check valid() afterwards: the environment may have no room.
  LandingBellHandle(Napi::Env env, const Napi::Function& listener);
  // Nobody may ring any more.
  ~LandingBellHandle();
  LandingBellHandle(const LandingBellHandle&) = delete;
  LandingBellHandle& operator=(const LandingBellHandle&) = delete;
  bool valid() const { return function_ != nullptr; }

  // A ring that finds others waiting would say nothing new and is dropped.
  void ring() override;

 private:
  napi_threadsafe_function function_ = nullptr;
};

}  // namespace shredway::addon
