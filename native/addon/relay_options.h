// Relay options: reads the options object of a relay (NativeRelayOptions in
// src/relay/data-plane/native.ts).
#pragma once

#include <napi.h>

#include "relay/relay.h"

namespace shredway::addon {

// Throws in JavaScript and returns false if a value has the wrong type or is out of range.
bool read_relay_options(const Napi::Object& object, RelayOptions& options);

}  // namespace shredway::addon
