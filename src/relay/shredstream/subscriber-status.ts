// State and counts of this relay's block engine for subscribers, for metrics, readiness and logs.

import type { GrpcOutcome } from "../../core/grpc/grpc-server.ts";
import type { GrpcStatus } from "../../core/grpc/status.ts";
import { methodPaths } from "./messages.ts";

/**
 * Counted events of leases, as labels of the metric. "expired": no heartbeat for the TTL. "removed": its
 * public key was removed, by a reload or by its account.
 */
export const leaseEvents = ["begun", "renewed", "expired", "removed"] as const;
export type LeaseEvent = (typeof leaseEvents)[number];

interface Refusals {
  /** A name of `methodPaths`, or "unknown". */
  readonly call: string;
  readonly status: GrpcStatus;
  readonly count: number;
}

export interface SubscriberStatus {
  /** "ip:port" of the listener. */
  readonly address: string;
  readonly connections: number;
  /** Connections that were closed because of a limit. */
  readonly refusedConnections: number;
  /** Present leases by tier; a tier without a lease is absent. */
  readonly leases: ReadonlyMap<string, number>;
  readonly leaseEvents: Readonly<Record<LeaseEvent, number>>;
  readonly refusals: readonly Refusals[];
  /** Why a renewed certificate is not used; null: no problem. */
  readonly problem: string | null;
}

const callNames = new Map<string, string>(
  Object.entries(methodPaths).map(([name, path]) => [path, name]),
);

/** The call that a path of a request stands for. The names are bounded, unlike the paths. */
export function callOf(path: string): string {
  return callNames.get(path) ?? "unknown";
}

export class RefusalCounts {
  readonly #counts = new Map<string, Refusals>();

  count({ path, status }: Pick<GrpcOutcome, "path" | "status">): void {
    if (status === "OK") return;
    const call = callOf(path);
    const key = `${call} ${status}`;
    const count = (this.#counts.get(key)?.count ?? 0) + 1;
    this.#counts.set(key, { call, status, count });
  }

  all(): Refusals[] {
    return [...this.#counts.values()];
  }
}

/** One sentence about the block engine. */
export function subscribersText({ address, leases, problem }: SubscriberStatus): string {
  if (problem !== null) return problem;
  const count = [...leases.values()].reduce((sum, one) => sum + one, 0);
  return `leases at ${address}: ${count}`;
}
