// A new API key of a gateway that a test has opened.

import type { GatewayService } from "../../../src/app/gateway-service.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { keyRandomBytes } from "../../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../../src/gateway/accounts/create-key.ts";

/** `more`: other fields of the key. Returns its text; it is in force after `start` or `refreshKeys`. */
export async function createdKey(gateway: GatewayService, more: object = {}): Promise<string> {
  const { text } = await createKey(
    gateway.keys,
    {
      accountName: "a",
      label: "",
      scopes: ["submit", "read"],
      requestsPerSecond: null,
      burst: null,
      allowedRanges: [],
      ...more,
    },
    { random: crypto.getRandomValues(new Uint8Array(keyRandomBytes)), nowNs: systemClock.nowNs() },
  );
  return text;
}
