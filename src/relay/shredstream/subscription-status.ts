// State and counts of a subscription to a block engine, for metrics, readiness, portal and logs.

/**
 * "silent": heartbeats succeeded but no shred arrived, so the subscription starts again. "failing": the
 * last attempt failed and is repeated soon. "rejected": the block engine does not accept this
 * configuration, so attempts are rare.
 */
type SubscriptionState = "starting" | "subscribed" | "silent" | "failing" | "rejected" | "stopped";

/** Counted events, as labels of the metric. */
export const subscriptionEvents = [
  "authentication",
  "authentication_failure",
  "refresh",
  "refresh_failure",
  "heartbeat",
  "heartbeat_failure",
  "silence",
] as const;
export type SubscriptionEvent = (typeof subscriptionEvents)[number];

export interface SubscriptionStatus {
  /** Name of the source. */
  readonly name: string;
  readonly state: SubscriptionState;
  /** Host of the block engine. */
  readonly host: string;
  /** "ip:port" to which the block engine sends; null: not known yet. */
  readonly target: string | null;
  /** Why the state is not "subscribed"; null: no problem. */
  readonly problem: string | null;
  /** Wall clock of the last accepted heartbeat; null: none yet. */
  readonly lastHeartbeatNs: bigint | null;
  /** Time for which the last heartbeat was accepted; null: none yet. */
  readonly ttlMs: number | null;
  readonly counts: Readonly<Record<SubscriptionEvent, number>>;
}

/** One sentence about the subscription. */
export function subscriptionText(status: SubscriptionStatus): string {
  const { name, state, host, target, problem } = status;
  if (problem !== null) return `${name}: ${state}: ${problem}`;
  return `${name}: ${state}${state === "subscribed" ? ` at ${host} for ${target}` : ""}`;
}
