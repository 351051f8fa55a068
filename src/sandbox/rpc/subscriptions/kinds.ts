// The kinds of subscription: their names, their parameters, what each of them notifies of.
//
// Called by session.ts. Each kind reads its parameters (throwing as methods do) and returns a watch
// that turns what the hub tells into results; the session wraps those into notifications.

import { accountKind, programKind } from "./accounts.ts";
import { blockKind } from "./block.ts";
import type { SubscriptionKind } from "./kind.ts";
import { rootKind, slotKind, slotsUpdatesKind } from "./slots.ts";
import { logsKind, signatureKind } from "./transactions.ts";

/** By the part of the names before Subscribe, Unsubscribe and Notification. */
export const subscriptionKinds: Readonly<Record<string, SubscriptionKind>> = {
  account: accountKind,
  block: blockKind,
  logs: logsKind,
  program: programKind,
  root: rootKind,
  signature: signatureKind,
  slot: slotKind,
  slotsUpdates: slotsUpdatesKind,
};
