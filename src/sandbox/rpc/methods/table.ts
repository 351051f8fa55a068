// All HTTP methods of the endpoint, by name.
//
// Called by dispatch.ts; tests use it to check that each method handles any parameters. Other names
// get the error -32601.

import type { MethodTable } from "../method.ts";
import { accountMethods } from "./accounts.ts";
import { feeMethods } from "./fees.ts";
import { historyMethods } from "./history.ts";
import { nodeMethods } from "./node.ts";
import { slotMethods } from "./slots.ts";
import { tokenMethods } from "./tokens.ts";
import { transactionMethods } from "./transactions.ts";

export const methods: MethodTable = {
  ...nodeMethods,
  ...slotMethods,
  ...feeMethods,
  ...accountMethods,
  ...tokenMethods,
  ...historyMethods,
  ...transactionMethods,
};
