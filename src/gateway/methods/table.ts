// Every method of the gateway by its name.
//
// Called by exchange.ts and raw.ts. A test holds docs/gateway.md to it.

import type { Method, MethodTable } from "../method.ts";
import { destinationMethods } from "./destinations.ts";
import { nonceMethods } from "./nonces.ts";
import { regionMethods } from "./regions.ts";
import { registrationMethods } from "./registrations.ts";
import { sendAlt } from "./send-alt.ts";
import { sendBatch } from "./send-batch.ts";
import { sendBundle } from "./send-bundle.ts";
import { sendIdeal } from "./send-ideal.ts";
import { sendTransaction } from "./send-transaction.ts";
import { statusMethods } from "./statuses.ts";
import { tierMethods } from "./tiers.ts";

export const methods: MethodTable = {
  sendTransaction,
  sendBundle,
  sendBatch,
  sendIdeal,
  sendAlt,
  getHealth: { scopes: [], run: () => "ok" },
  ...statusMethods,
  ...regionMethods,
  ...tierMethods,
  ...destinationMethods,
  ...registrationMethods,
  ...nonceMethods,
};

const byName: ReadonlyMap<string, Method> = new Map(Object.entries(methods));

/** undefined: not one of these. */
export function findMethod(name: string): Method | undefined {
  return byName.get(name);
}
