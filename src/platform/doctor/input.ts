// Input of the machine checks: facts of the machine, wishes of the configuration, results of probes.
//
// Read by system.ts, handed to checks.ts and to the groups of checks beside it.

import type { KernelClock } from "../../relay/data-plane/native.ts";
import type { SystemFacts } from "./facts.ts";

/** What the relay will ask of the machine. */
export interface Wishes {
  readonly workers: number;
  readonly cpus: readonly number[];
  readonly wait: "block" | "spin" | "busy";
  readonly busyPollMicroseconds: number;
  readonly receiveBufferBytes: number;
  readonly sendBufferBytes: number;
  readonly listenAddresses: number;
  readonly usesIpv6: boolean;
  readonly transmit: "socket" | "clone" | "auto";
}

/** What was tried out on this machine. */
export interface Probes {
  /** Receive buffer that a socket really got when asked for the wish; null: could not be tried. */
  readonly grantedReceiveBufferBytes: number | null;
  /** Why clones cannot be had, tried out; null when they can, or were not asked for. */
  readonly cloneRefusal: string | null;
  /** Why the native addon did not load; null when it did. */
  readonly addonError: string | null;
  /** "libsodium", "openssl" or "none". */
  readonly ed25519: string;
  readonly sha256Accelerated: boolean;
  /** What the kernel says of its wall clock; null: it does not, or the addon did not load. */
  readonly kernelClock: KernelClock | null;
  /** "20.19.0" */
  readonly nodeVersion: string;
}

export interface Input {
  readonly facts: SystemFacts;
  readonly wishes: Wishes;
  readonly probes: Probes;
}
