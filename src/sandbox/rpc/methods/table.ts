// Every method of the endpoint over HTTP, by name.
//
// Called by dispatch.ts; tests go through it to see that each takes any parameters. What is not here
// is answered with -32601.

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
