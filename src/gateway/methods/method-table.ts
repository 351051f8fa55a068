// The table of the gateway's methods by name.
//
// Used by request-context.ts and description/*. A test compares it with docs/gateway.md.
// rpc.discover is not in the table, because it returns the document about these methods.

import { word } from "../schema/json-schema.ts";
import { destinationMethods } from "./destinations.ts";
import { discover, discoverName } from "./discover.ts";
import { type Method, type MethodTable, openMethod } from "./method.ts";
import { nonceMethods } from "./nonces.ts";
import { publicKeyMethods } from "./public-keys.ts";
import { receiptMethods } from "./receipts.ts";
import { regionMethods } from "./regions.ts";
import { registrationMethods } from "./registrations.ts";
import { sendAlt } from "./send-alt.ts";
import { sendBatch } from "./send-batch.ts";
import { sendBundle } from "./send-bundle.ts";
import { sendIdeal } from "./send-ideal.ts";
import { sendTransaction } from "./send-transaction.ts";
import { statusMethods } from "./statuses.ts";
import { tierMethods } from "./tiers.ts";
import { transactionPushMethods } from "./transaction-pushes.ts";

export const methods: MethodTable = {
  sendTransaction,
  sendBundle,
  sendBatch,
  sendIdeal,
  sendAlt,
  getHealth: openMethod({
    summary: "Reports that the service responds.",
    description: "Calls are not counted; use it to keep connections open.",
    result: { name: "health", schema: word("ok") },
    errors: [],
    example: { params: [], result: "ok" },
    answer: () => "ok",
  }),
  ...statusMethods,
  ...receiptMethods,
  ...regionMethods,
  ...tierMethods,
  ...destinationMethods,
  ...registrationMethods,
  ...publicKeyMethods,
  ...nonceMethods,
  ...transactionPushMethods,
};

const byName: ReadonlyMap<string, Method> = new Map([
  ...Object.entries(methods),
  [discoverName, discover],
]);

/** undefined: not a method of the gateway. */
export function findMethod(name: string): Method | undefined {
  return byName.get(name);
}
