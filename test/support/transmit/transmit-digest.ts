// The packets of a receiver as one short text, independent of their order; and the counters of a
// relay.

import { createHash } from "node:crypto";
import type { NextHopStateName } from "../../../src/relay/data-plane/names.ts";

export interface RelayState {
  readonly received: bigint;
  /** Counters by address. */
  readonly sent: ReadonlyMap<string, number>;
  readonly failed: boolean;
  readonly cloned: number;
  readonly triggers: number;
  readonly fallbacks: number;
  readonly nextHops: Readonly<Record<NextHopStateName, bigint>>;
}

export function digestOf(hashes: readonly string[]): string {
  return createHash("sha256").update(hashes.toSorted().join()).digest("hex");
}

export function digestOfPackets(packets: readonly Uint8Array[]): string {
  return digestOf(packets.map((packet) => createHash("sha256").update(packet).digest("base64")));
}
