// The native addon: loads and checks it. Only this file knows its location and exports.
//
// `npm ci` builds it if no prebuild fits (node-gyp-build searches build/Release, then prebuilds/).

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { messageOf, type PlainReason, ShredwayError } from "../../core/errors.ts";
import {
  coSigningRefusalNames,
  deshredCounterNames,
  eventNames,
  nextHopStateNames,
  sendFailureNames,
  streamMessageNames,
  transactionRefusalNames,
  verdictNames,
  workerCounterNames,
} from "./names.ts";
import type { ConnectionSocketConstructor } from "./native-connection-socket.ts";
import type { NativeFastPath, NativeSimulatedFastPath } from "./native-fast-path.ts";
import type { FirstPacketsConstructor } from "./native-first-packets.ts";

interface NativeDescription {
  readonly verdicts: readonly string[];
  readonly verdictMeanings: readonly string[];
  readonly sendFailures: readonly string[];
  readonly nextHopStates: readonly string[];
  readonly workerCounters: readonly string[];
  readonly events: readonly string[];
  readonly deshredCounters: readonly string[];
  readonly streamMessages: readonly string[];
  readonly transactionRefusals: readonly string[];
  /** Expected and received value by rejection ("#" stands for a number). */
  readonly transactionExpected: readonly string[];
  readonly transactionGot: readonly string[];
  readonly coSigningRefusals: readonly string[];
  readonly coSigningExpected: readonly string[];
  readonly coSigningGot: readonly string[];
  readonly limits: {
    readonly sources: number;
    readonly sourceEntries: number;
    readonly destinations: number;
    readonly tiers: number;
    readonly workers: number;
    readonly leaderKeys: number;
    readonly leaderSlots: number;
    readonly histogramBuckets: number;
    readonly histogramPrecisionBits: number;
    readonly slotRows: number;
    readonly slotRowFields: number;
    readonly watchedSignatures: number;
    readonly streamFilters: number;
    readonly streamFilterIds: number;
    readonly streamAccounts: number;
    readonly tipAddresses: number;
    readonly verifierThreads: number;
    readonly verifierQueue: number;
  };
  /** "libsodium", "openssl" or "none". */
  readonly ed25519: string;
  readonly sha256Accelerated: boolean;
}

/** The kernel's state of its wall clock (adjtimex). */
export interface KernelClock {
  /** A daemon disciplines the clock. */
  readonly synchronised: boolean;
  /** The remaining slew. */
  readonly offsetNs: number;
  readonly estimatedErrorUs: number;
  readonly maximumErrorUs: number;
}

/** Options of native/addon/relay_handle.cc; endpoints are 18 bytes (16 address, u16 port LE). */
export interface NativeRelayOptions {
  listen: Uint8Array[];
  /** Unspecified addresses with the ports of multicast groups. */
  multicast?: Uint8Array[];
  workers: number;
  cpus?: number[];
  senderThreads?: number;
  authenticate: boolean;
  shredVersion: number;
  tierCount: number;
  receive?: "socket" | "xdp";
  wait?: "block" | "spin" | "busy";
  spinMicroseconds?: number;
  busyPollMicroseconds?: number;
  failedChecksPerSecond?: number;
  keepRetransmitterSignatures?: boolean;
  receiveFilter?: boolean;
  gso?: boolean;
  transmit?: TransmitMode;
  xdpInterfaces?: string[];
  ttl?: number;
  dscp?: number;
  prefault?: boolean;
  deshred?: boolean;
  answerChallenges?: boolean;
  lockMemory?: boolean;
  arrivals?: boolean;
  keepPackets?: boolean;
  receiveBufferBytes?: number;
  sendBufferBytes?: number;
  sendFrom?: Uint8Array;
}

/** A network interface; addresses of 16 bytes each, IPv4 first. */
type NativeInterface =
  | {
      /** 0: it does not exist. */
      readonly index: number;
      readonly isUp: boolean;
      readonly addresses: Uint8Array;
      /** Multicast addresses with a route of their own through it. */
      readonly groups: Uint8Array;
    }
  | { readonly error: string };

export interface NativeRelay {
  /** Group and own address of the interface: 18 bytes each. Returns an error text; "": none. */
  joinGroup(group: Uint8Array, interfaceIndex: number, interfaceAddress: Uint8Array): string;
  leaveGroup(group: Uint8Array, interfaceIndex: number, interfaceAddress: Uint8Array): string;
  publishSources(table: Uint8Array): void;
  publishFanout(table: Uint8Array): void;
  publishLeaders(table: Uint8Array): void;
  snapshotWords(sources: number, destinations: number): number;
  readCounters(into: BigUint64Array, sources: number, destinations: number): void;
  drainEvents(into: Uint8Array): number;
  /** Fills with traces of 128 bytes (native/relay/trace_ring.h); returns their number. */
  drainTraces(into: Uint8Array): number;
  setSlotBounds(lowest: bigint, highest: bigint, isConfirmed: boolean, untilNs: bigint): void;
  setSlotFloor(floor: bigint): void;
  watchSignatures(signatures: Uint8Array): void;
  unwatchSignatures(signatures: Uint8Array): void;
  drainLandings(into: Uint8Array): number;
  onLandings(listener: () => void): void;
  publishStreamFilters(table: Uint8Array, generation: number): void;
  /** Fills with whole messages (native/stream/stream_ring.h); returns the number of bytes. */
  drainStreams(into: Uint8Array, enough: number): number;
  streamsLost(): number;
  /** Fills in the layout of native/stream/streams.h. */
  readStreamLosses(into: BigUint64Array): void;
  onStreams(listener: () => void): void;
  setStreamHistory(bytes: number): void;
  /** Fills in the layout of native/stream/streams.h. */
  readStreamHistory(into: BigUint64Array): void;
  grantReplay(id: number, bytes: bigint): void;
  changeLookupTables(changes: Uint8Array): void;
  /** Fills with reports of 48 bytes (native/stream/lookup_resolver.h); returns their number. */
  drainLookupReports(into: Uint8Array): number;
  lookupTableCounts(): {
    readonly tables: number;
    readonly addresses: number;
    readonly evicted: number;
  };
  /** Fills with arrivals of 32 bytes (native/relay/arrivals.h); returns their number. */
  drainArrivals(into: Uint8Array): number;
  /** Fills with packets, each after a header of 32 bytes; returns the number of bytes. */
  drainPackets(into: Uint8Array): number;
  measuringLosses(): { readonly arrivals: number; readonly packets: number };
  /** Drops by listening address. */
  receiveDrops(): number[];
  addresses(): string[];
  grantedReceiveBuffer(): number;
  /** The interfaces that receive by AF_XDP; "": none. */
  receiveInterfaces(): string;
  /** Follows the machine's addresses; the reasons why interfaces do not receive by AF_XDP now. */
  updateReceiving(): string[];
  /** Sender threads of each worker that are in use. */
  senderThreads(): number;
  /** Why the workers have no raised priority; "": they have it. */
  priorityRefusal(): string;
  /** Locked bytes, and why nothing is locked although it was requested; "": none. */
  memoryLock(): { readonly bytes: number; readonly refusal: string };
  /**
   * Active mode, interface of the clones, and the reason if the requested mode is not active; "": none.
   */
  transmit(): {
    readonly mode: "socket" | "clone" | "xdp";
    readonly interface: string;
    readonly refusal: string;
  };
  close(): void;
}

/** A relay of a simulation (native/addon/relay_handle_simulated.cc has the layout of datagrams). */
export interface NativeSimulatedRelay extends NativeRelay {
  /** Runs the relay at this time with these datagrams until it has nothing left to do. */
  step(nowNs: bigint, datagrams: Uint8Array): void;
  /** Fills with the oldest sent datagrams; returns the number of bytes, 0: none is left. */
  takeSent(into: Uint8Array): number;
  /** `destination`: 18 bytes. 0: datagrams to it are sent again. */
  failSends(destination: Uint8Array, errno: number): void;
  /** Whether nothing arrives at `destination` and an ICMP error answers each datagram to it. */
  refuse(destination: Uint8Array, refuses: boolean): void;
  /** An ICMP error about a datagram to `destination` arrives at each worker that has sent one. */
  reportUnreachable(destination: Uint8Array): void;
}

export interface PacedSenderCounts {
  /** Datagrams passed to the kernel. */
  readonly sent: bigint;
  /** Datagrams that the kernel rejected. */
  readonly failed: bigint;
  /** Received ICMP errors: no receiver, or no route. */
  readonly refused: bigint;
  /** Largest delay behind the schedule. */
  readonly lateMaxNs: bigint;
  /** Remaining packets. */
  readonly queued: bigint;
}

export interface NativePacedSender {
  enqueue(bytes: Uint8Array, ends: Uint32Array, timesNs: BigUint64Array): void;
  counts(): PacedSenderCounts;
  local(): string;
  close(): void;
}

export interface NativeReachabilityProbe {
  check(): "pending" | "answered" | "unreachable";
  local(): string;
  close(): void;
}

interface NativeSlotPosition {
  slot: bigint;
  parentOffset: number;
  version: number;
  chainedRoot: Uint8Array;
  nextFecSetIndex: number;
}

export interface NativeShredder {
  publicKey(): Uint8Array;
  shred(
    entries: Uint8Array,
    position: NativeSlotPosition,
    referenceTick: number,
    lastInSlot: boolean,
  ): { bytes: Uint8Array; ends: Uint32Array; chainedRoot: Uint8Array; nextFecSetIndex: number };
}

export interface NativeTransactionInspector {
  /** Fills an inspection record (transactions.ts); returns 0, or the number of the rejection. */
  inspect(wire: Uint8Array, into: Uint8Array): number;
}

export interface NativeSignatureVerifier {
  /** False: the queue is full. */
  submit(ticket: number, wire: Uint8Array): boolean;
  /** Takes the time of the check on the calling thread. */
  verifyNow(wire: Uint8Array): boolean;
  drain(into: Uint8Array): number;
  onResults(listener: () => void): void;
  close(): void;
}

/** Requested modes; "automatic": clones where they are possible, lose nothing and bypass no rule. */
export type TransmitMode = "socket" | "clone" | "automatic" | "xdp";

/** How an interface sends by AF_XDP; "unknown": a kernel before 6.3 does not say. */
export type XdpSupport = "zero_copy" | "copy" | "unknown" | "absent";

interface NativeXdpSupport {
  /** Empty: none. */
  readonly refusal: string;
  /** The same for receiving. */
  readonly receiveRefusal: string;
  /** For each interface. */
  readonly support: readonly XdpSupport[];
  readonly receiveQueues: readonly number[];
}

/** The descriptor belongs to the caller. */
export type OpenedDescriptor =
  | { readonly descriptor: number }
  | { readonly errorNumber: number; readonly error: string };

interface NativeAddon {
  describe(): NativeDescription;
  giveUpNetworkPrivileges(): number;
  /** The reason why a thread was not moved; empty: all were. */
  keepThreadsOn(cpus: number[]): string;
  confineProcess(parent: number, memoryBytes: number): string;
  restartWithoutRings(descriptors: number): string;
  /** The reason why the text did not reach the socket; empty on success. */
  notifyServiceManager(address: string, text: string): string;
  readXdpSupport(interfaces: string[]): NativeXdpSupport;
  kernelClock(): KernelClock | null;
  readInterface(name: string): NativeInterface;
  /** `address`: 18 bytes. `receives`: false drops what arrives. */
  openBoundSocket(address: Uint8Array, receives: boolean): OpenedDescriptor;
  /** Opens the second socket at the port of a bound socket. */
  splitPort(descriptor: number): OpenedDescriptor;
  /** False: the kernel rejected it. */
  refusePortSharing(descriptor: number): boolean;
  Relay: new (options: NativeRelayOptions) => NativeRelay;
  SimulatedRelay: new (options: NativeRelayOptions) => NativeSimulatedRelay;
  PacedSender: new (to: Uint8Array, from: Uint8Array, bufferBytes: number) => NativePacedSender;
  ReachabilityProbe: new (to: Uint8Array, datagram: Uint8Array) => NativeReachabilityProbe;
  Shredder: new (seed: Uint8Array) => NativeShredder;
  /** Keys of 32 bytes each; ranges of 64, first and last key. */
  TransactionInspector: new (
    tipAddresses: Uint8Array,
    frontKeyRanges: Uint8Array,
  ) => NativeTransactionInspector;
  SignatureVerifier: new (threads: number, queueMax: number) => NativeSignatureVerifier;
  FirstPackets: FirstPacketsConstructor;
  ConnectionSocket: ConnectionSocketConstructor;
  FastPath: new () => NativeFastPath;
  SimulatedFastPath: new () => NativeSimulatedFastPath;
  /**
   * In the QUIC process: offers a transaction to the fast path. False: the channel is full or closed.
   * `connection`: its number in the process.
   */
  writeOffer(descriptor: number, sequence: number, connection: number, bytes: Uint8Array): boolean;
  /** -1: the system refused. */
  duplicateDescriptor(descriptor: number): number;
  /**
   * Fills a record (co-signing.ts); returns 0, or the number of the rejection. Both keys: 32 bytes.
   */
  findCoSigningPlace(
    wire: Uint8Array,
    nonceAccount: Uint8Array,
    authority: Uint8Array,
    into: Uint8Array,
  ): number;
  encodeBase58(bytes: Uint8Array): string;
  /** Number of written bytes; -1: invalid text. */
  decodeBase58(text: string, into: Uint8Array): number;
}

const require = createRequire(import.meta.url);
let loaded: { addon: NativeAddon; description: NativeDescription } | undefined;

function load(): { addon: NativeAddon; description: NativeDescription } {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  let addon: NativeAddon;
  try {
    addon = (require("node-gyp-build") as (folder: string) => NativeAddon)(root);
  } catch (cause) {
    throw new ShredwayError(
      "addon_missing",
      `the native addon could not be loaded from ${root}: expected build/Release/shredway.node or a ` +
        "prebuild for this platform; build it with `npm rebuild`",
      { cause },
    );
  }
  const description = addon.describe();
  const lists: [string, readonly string[], readonly string[]][] = [
    ["verdicts", verdictNames, description.verdicts],
    ["send failures", sendFailureNames, description.sendFailures],
    ["next hop states", nextHopStateNames, description.nextHopStates],
    ["worker counters", workerCounterNames, description.workerCounters],
    ["events", eventNames, description.events],
    ["deshred counters", deshredCounterNames, description.deshredCounters],
    ["stream messages", streamMessageNames, description.streamMessages],
    ["transaction refusals", transactionRefusalNames, description.transactionRefusals],
    ["co-signing refusals", coSigningRefusalNames, description.coSigningRefusals],
  ];
  for (const [what, expected, actual] of lists) {
    if (expected.join() !== actual.join()) {
      throw new ShredwayError(
        "addon_mismatch",
        `the native addon was built from another version: ${what} differ (expected ` +
          `${expected.join(", ")}; got ${actual.join(", ")}); build it with \`npm rebuild\``,
      );
    }
  }
  return { addon, description };
}

/** The addon. Throws ShredwayError "addon_missing" or "addon_mismatch". */
export function native(): NativeAddon {
  loaded ??= load();
  return loaded.addon;
}

/**
 * Drops the capabilities that clones are opened with, for all threads of this process. Returns the
 * number of threads that kept one: expected 0.
 */
export function giveUpNetworkPrivileges(): number {
  return native().giveUpNetworkPrivileges();
}

/**
 * Moves every thread of this process to these CPUs, and with them every thread that they start. Returns
 * the reason if the system refuses; then some may have been moved.
 */
export function keepThreadsOn(cpus: readonly number[]): string | null {
  return native().keepThreadsOn([...cpus]) || null;
}

/**
 * Confines this process for good (native/system/confinement.h): it ends with `parent`, may allocate
 * `memoryBytes` more, and cannot open files or sockets or touch other processes. Returns the steps that
 * the system refused; empty: none.
 */
export function confineProcess(parent: number, memoryBytes: number): string {
  return native().confineProcess(parent, memoryBytes);
}

/**
 * Restarts the program of this process, in the same process, if its event loop uses io_uring, which a
 * confined process may not (native/system/confinement.h). Call it before anything is read; the first
 * `descriptors` descriptors stay open. Returns why it could not; empty: there was nothing to do.
 */
export function restartWithoutRings(descriptors: number): string {
  return native().restartWithoutRings(descriptors);
}

/**
 * One datagram to a local socket (a path, or "@" and a name). Returns the error; empty on success.
 */
export function notifyServiceManager(address: string, text: string): string {
  return native().notifyServiceManager(address, text);
}

/** null: unknown, or not available to this process. */
export function kernelClock(): KernelClock | null {
  return native().kernelClock();
}

/** The addon's description of itself: names, limits, libraries in use. */
export function describeNative(): NativeDescription {
  loaded ??= load();
  return loaded.description;
}

/** Runs a native call; every error becomes a ShredwayError with the given reason. */
export function guarded<T>(reason: PlainReason, call: () => T): T {
  try {
    return call();
  } catch (cause) {
    if (cause instanceof ShredwayError) throw cause;
    throw new ShredwayError(reason, messageOf(cause), { cause });
  }
}
