// Input of the machine checks: facts of the machine, settings of the configuration, results of probes.
//
// Read by system.ts, passed to checks.ts and its groups of checks.

import type { KernelClock } from "../../relay/data-plane/native.ts";
import type { XdpReport } from "../../relay/data-plane/xdp-support.ts";
import type { SystemFacts } from "./facts.ts";

/** The machine settings that the relay requires. */
export interface ConfiguredSettings {
  readonly workers: number;
  /** CPUs that relay.cpus names; empty: it names none. */
  readonly cpus: readonly number[];
  /** False: relay.cpus is `none`, so the kernel places the workers. */
  readonly placesWorkers: boolean;
  readonly senderThreads: number | "auto";
  readonly lockMemory: boolean;
  readonly wait: "block" | "spin" | "busy";
  readonly busyPollMicroseconds: number;
  readonly receiveBufferBytes: number;
  readonly sendBufferBytes: number;
  readonly listenAddresses: number;
  /** Descriptors for the connections of callers that the configuration allows; 0: none. */
  readonly connectionsMax: number;
  readonly usesIpv6: boolean;
  readonly transmit: "socket" | "clone" | "auto" | "xdp";
  readonly receive: "socket" | "xdp";
  readonly xdpInterfaces: readonly string[];
}

/** Results of probes on this machine. */
export interface Probes {
  /** The receive buffer that a socket got for the configured size; null: the probe failed. */
  readonly grantedReceiveBufferBytes: number | null;
  /** The reason why clone does not work, found by a probe; null: it works, or is not configured. */
  readonly cloneRefusal: string | null;
  /** AF_XDP on the configured interfaces, or on all network cards. */
  readonly xdp: XdpReport;
  /** The reason why a worker gets no priority over other threads; null: it gets it. */
  readonly priorityRefusal: string | null;
  /** The reason why the memory of one worker is not locked; null: it is, or is not configured. */
  readonly memoryLockRefusal: string | null;
  /** The reason why the native addon did not load; null: it loaded. */
  readonly addonError: string | null;
  /** "libsodium", "openssl" or "none". */
  readonly ed25519: string;
  readonly sha256Accelerated: boolean;
  /** The kernel's state of its wall clock; null: unknown, or the addon did not load. */
  readonly kernelClock: KernelClock | null;
  /** "20.19.0" */
  readonly nodeVersion: string;
}

export interface Input {
  readonly facts: SystemFacts;
  readonly configured: ConfiguredSettings;
  readonly probes: Probes;
}
