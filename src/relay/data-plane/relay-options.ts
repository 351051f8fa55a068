// Options of a relay, and their form for the addon.

import type { NativeRelayOptions, TransmitMode } from "./native.ts";
import { encodeEndpoint } from "./tables.ts";

export interface RelayOptions {
  /** "ip:port"; port 0 (the kernel chooses) only with one worker. IPv6 as "[::]:20000". */
  readonly listen: readonly string[];
  /** "0.0.0.0:7733" or "[::]:7733": ports of multicast groups, which `joinGroup` joins. */
  readonly multicast?: readonly string[];
  readonly workers: number;
  /** Narrowest tier first, 1 to 8 names. A source serves its own tier and all wider ones. */
  readonly tiers: readonly string[];
  /** "off" forwards every well-formed shred; the operator must see a warning. */
  readonly authentication: "leader-schedule" | "off";
  /** 0 accepts every shred version. */
  readonly shredVersion: number;
  readonly receive?: {
    /** "xdp": by AF_XDP on `xdpInterfaces`, else by socket; without privileges the relay does not open. */
    readonly mode?: "socket" | "xdp";
    readonly bufferBytes?: number;
    readonly wait?: "block" | "spin" | "busy";
    readonly spinMicroseconds?: number;
    readonly busyPollMicroseconds?: number;
  };
  readonly send?: {
    /** Send address as "ip:port"; port 0: the kernel chooses. */
    readonly source?: string;
    readonly bufferBytes?: number;
    readonly gso?: boolean;
    /** 1 to 255 (default 64). */
    readonly ttl?: number;
    /** 0 to 63 (default 0). */
    readonly dscp?: number;
  };
  /**
   * "clone": copies inside the kernel, for destinations with a resolved next hop. It needs privileges;
   * without them every shred is sent by socket (see `Relay.transmit`). "automatic": the same, but by
   * socket also where clones could be lost or would bypass a rule. "xdp": by AF_XDP to destinations behind
   * `xdpInterfaces`; without privileges the relay does not open. Default "socket".
   */
  readonly transmit?: TransmitMode;
  /** 1 to 8 names, only if shreds leave or arrive by AF_XDP. */
  readonly xdpInterfaces?: readonly string[];
  /** Worker i runs on cpus[i]. */
  readonly cpus?: readonly number[];
  /** Threads that help each worker to send by socket, 0 to 15 (default 0); see `Relay.senderThreads`. */
  readonly senderThreads?: number;
  /**
   * For a source whose checks fail: signature checks per worker and second for FEC sets with a single
   * shred until now (default 1000).
   */
  readonly failedChecksPerSecond?: number;
  /** Do not clear the retransmitter signature of the shreds that are sent (default false). */
  readonly keepRetransmitterSignatures?: boolean;
  /** Let the kernel drop datagrams that cannot be shreds or challenges (default true; off with `arrivals`). */
  readonly receiveFilter?: boolean;
  /** Touch 21 MB per worker at startup, so that traffic causes no page faults (default true). */
  readonly prefault?: boolean;
  /** Keep the memory of the workers in RAM (default false). A refusal is in `Relay.memoryLock`. */
  readonly lockMemory?: boolean;
  /** Decode entries and transactions from the shreds, on a separate thread (default true). */
  readonly deshred?: boolean;
  /**
   * Answer ownership challenges (native/net/challenge_echo.h) of known sources, for receivers of shreds.
   * A service must not answer challenges of its customers (default false).
   */
  readonly answerChallenges?: boolean;
  /**
   * For measuring feeds: report every arrival of every source, optionally with the datagrams. Each
   * packet is then verified separately, which costs a hash for duplicates too. One worker only.
   */
  readonly arrivals?: "shreds" | "with-packets";
}

/** Throws ShredwayError "address_invalid". */
export function nativeOptions(options: RelayOptions): NativeRelayOptions {
  const { receive = {}, send = {} } = options;
  const allowPortZero = { allowPortZero: true };
  const given: Partial<NativeRelayOptions> = {
    ...(options.cpus && { cpus: [...options.cpus] }),
    ...(options.senderThreads !== undefined && { senderThreads: options.senderThreads }),
    ...(options.multicast && { multicast: options.multicast.map((text) => encodeEndpoint(text)) }),
    ...(receive.mode && { receive: receive.mode }),
    ...(receive.wait && { wait: receive.wait }),
    ...(receive.spinMicroseconds !== undefined && { spinMicroseconds: receive.spinMicroseconds }),
    ...(receive.busyPollMicroseconds !== undefined && {
      busyPollMicroseconds: receive.busyPollMicroseconds,
    }),
    ...(receive.bufferBytes !== undefined && { receiveBufferBytes: receive.bufferBytes }),
    ...(send.bufferBytes !== undefined && { sendBufferBytes: send.bufferBytes }),
    ...(send.gso !== undefined && { gso: send.gso }),
    ...(send.ttl !== undefined && { ttl: send.ttl }),
    ...(send.dscp !== undefined && { dscp: send.dscp }),
    ...(options.transmit && { transmit: options.transmit }),
    ...(options.xdpInterfaces && { xdpInterfaces: [...options.xdpInterfaces] }),
    ...(send.source !== undefined && { sendFrom: encodeEndpoint(send.source, allowPortZero) }),
    ...(options.failedChecksPerSecond !== undefined && {
      failedChecksPerSecond: options.failedChecksPerSecond,
    }),
    ...(options.keepRetransmitterSignatures !== undefined && {
      keepRetransmitterSignatures: options.keepRetransmitterSignatures,
    }),
    ...(options.receiveFilter !== undefined && { receiveFilter: options.receiveFilter }),
    ...(options.prefault !== undefined && { prefault: options.prefault }),
    ...(options.lockMemory !== undefined && { lockMemory: options.lockMemory }),
    ...(options.deshred !== undefined && { deshred: options.deshred }),
    ...(options.answerChallenges !== undefined && { answerChallenges: options.answerChallenges }),
    ...(options.arrivals && {
      arrivals: true,
      keepPackets: options.arrivals === "with-packets",
    }),
  };
  return {
    ...given,
    listen: options.listen.map((address) => encodeEndpoint(address, allowPortZero)),
    workers: options.workers,
    authenticate: options.authentication !== "off",
    shredVersion: options.shredVersion,
    tierCount: options.tiers.length,
  };
}
