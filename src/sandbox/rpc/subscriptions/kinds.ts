// All kinds of subscription, by name.
//
// Called by session.ts. Each kind parses its parameters (with the exceptions of methods) and
// returns a watch that converts the hub's events to results; the session wraps these into
// notifications.

import { accountKind, programKind } from "./accounts.ts";
import { blockKind } from "./block.ts";
import type { SubscriptionKind } from "./kind.ts";
import { rootKind, slotKind, slotsUpdatesKind } from "./slots.ts";
import { logsKind, signatureKind } from "./transactions.ts";

/** Key: the part of the names before Subscribe, Unsubscribe and Notification. */
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
