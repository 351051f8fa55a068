// Every method of the gateway by its name.
//
// Called by exchange.ts and raw.ts. A test holds docs/gateway.md to it.

import { ShredwayError } from "../../core/errors.ts";
import type { Method, MethodTable } from "../method.ts";
import { destinationMethods } from "./destinations.ts";
import { regionMethods } from "./regions.ts";
import { registrationMethods } from "./registrations.ts";
import { sendBatch } from "./send-batch.ts";
import { sendBundle } from "./send-bundle.ts";
import { sendTransaction } from "./send-transaction.ts";
import { statusMethods } from "./statuses.ts";
import { tierMethods } from "./tiers.ts";

export const methods: MethodTable = {
  sendTransaction,
  sendBundle,
  sendBatch,
  getHealth: { scopes: [], run: () => "ok" },
  ...statusMethods,
  ...regionMethods,
  ...tierMethods,
  ...destinationMethods,
  ...registrationMethods,
};

/** Of the service's protocol, but not of this version. */
export const laterMethods: ReadonlySet<string> = new Set(["sendIdeal", "getNonce", "sendAlt"]);

const byName: ReadonlyMap<string, Method> = new Map(Object.entries(methods));

/** undefined: not one of these. */
export function findMethod(name: string): Method | undefined {
  return byName.get(name);
}

export function laterMethod(name: string): ShredwayError {
  return new ShredwayError("method_unknown", `${name} is not available in this version`);
}
