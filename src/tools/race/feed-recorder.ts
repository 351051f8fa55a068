// Feed recorder: receives feeds and reports each shred with its feed and kernel receive time.
//
// A relay without destinations that reports every arrival (native/relay/arrivals.h) or decodes
// transactions, so feeds are measured by the relay's own rules. `race` and `listen` drain it several times a second.
// Arrivals that find a ring full are counted. Datagrams are handed out only with `recordPackets`.

import { type Endpoint, familyOf } from "../../core/addresses/addresses.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { createLogger } from "../../core/log.ts";
import { Relay } from "../../relay/data-plane/relay.ts";
import type { StreamMessage } from "../../relay/data-plane/relay-streams.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import type { RelayTrace } from "../../relay/data-plane/traces.ts";
import type { LeaderSchedule } from "../../relay/leaders/schedule.ts";
import { type ConfiguredSource, groupListenersOf } from "../../relay/multicast/group-plan.ts";
import { readInterface } from "../../relay/multicast/interface-reader.ts";
import { MulticastGroups } from "../../relay/multicast/multicast-groups.ts";
import { readWireTransaction } from "../../relay/streams/wire-transaction.ts";
import { messageIn } from "../terminal/log-lines.ts";
import { blankArrival, type ShredArrival } from "./slot-arrivals.ts";

interface Feed {
  readonly name: string;
  /** Local port of the feed; 0 if the kernel chooses. */
  readonly port: number;
  /** Address or range of the sender; undefined for any sender. */
  readonly source?: string;
  /** A multicast group that is the feed, with all its senders; `port` is the group's. */
  readonly group?: { readonly address: string; readonly interface: string };
}

interface FeedRecorderOptions {
  readonly feeds: readonly Feed[];
  /** Each socket's "ip:port". */
  readonly listen: readonly string[];
  readonly shredVersion: number;
  /** Undefined if nothing is verified. */
  readonly schedule?: LeaderSchedule;
  readonly receiveBufferBytes?: number;
  readonly answerChallenges?: boolean;
  /** Whether to hand out the datagrams too. */
  readonly recordPackets?: boolean;
  /** Decodes the shreds, and gets each transaction as it is complete. Shreds are not reported then. */
  readonly onTransaction?: (slot: bigint, signature: Uint8Array) => void;
  /** Gets messages about multicast groups: joined, or why not. */
  readonly onNote?: (text: string) => void;
}

export interface RecordedPacket {
  readonly packet: Uint8Array;
  readonly timestampNs: bigint;
  readonly source: Endpoint;
  readonly port: number;
}

/** `anyPorts`: the ports of a feed without a port. */
function sourcesOf(feeds: readonly Feed[], anyPorts: readonly number[]): ConfiguredSource[] {
  return feeds.flatMap(({ name, port, source, group }): ConfiguredSource[] => {
    if (group) {
      const { address, interface: of } = group;
      const groups = [address];
      return [{ name, kind: "multicast", groups, interface: of, port, tier, forward: true }];
    }
    return (port === 0 ? anyPorts : [port]).map((own) => ({
      name,
      port: own,
      tier,
      ...(source !== undefined && { address: source }),
    }));
  });
}

const tier = "all";
const arrivalBytes = 32;
const arrivalsAtOnce = 8192;
const packetHeadBytes = 32;
const packetsBytes = 1 << 20;
/** Decoded messages that are read in one turn of the event loop. */
const turnBytes = 1 << 20;
const lastInSlotFlags = 0xc0;

export class FeedRecorder {
  /** Start of the recorder's time scale, wall clock. */
  readonly baseNs: bigint;
  readonly addresses: readonly string[];
  readonly grantedReceiveBufferBytes: number;
  readonly #relay: Relay;
  readonly #feedById = new Map<number, number>();
  readonly #bytes = new Uint8Array(arrivalsAtOnce * arrivalBytes);
  readonly #view = new DataView(this.#bytes.buffer);
  readonly #packets: Uint8Array;
  readonly #packetsView: DataView;
  readonly #groups: MulticastGroups;
  #isClosed = false;

  private constructor(relay: Relay, options: FeedRecorderOptions, clock: Clock) {
    this.#relay = relay;
    this.baseNs = clock.nowNs();
    this.addresses = [...relay.addresses, ...groupListenersOf(sourcesOf(options.feeds, []))];
    this.#groups = new MulticastGroups({
      relay,
      readInterface,
      log: createLogger({ stream: { write: (line) => options.onNote?.(messageIn(line)) } }),
      clock,
    });
    this.grantedReceiveBufferBytes = relay.grantedReceiveBufferBytes;
    this.#packets = new Uint8Array(options.recordPackets === true ? packetsBytes : 0);
    this.#packetsView = new DataView(this.#packets.buffer);
  }

  /** Throws ShredwayError "relay_open", "address_invalid" or "table_refused". */
  static open(options: FeedRecorderOptions, clock: Clock = systemClock): FeedRecorder {
    const relay = Relay.open(
      {
        listen: options.listen,
        multicast: groupListenersOf(sourcesOf(options.feeds, [])),
        workers: 1,
        tiers: [tier],
        authentication: options.schedule ? "leader-schedule" : "off",
        shredVersion: options.shredVersion,
        answerChallenges: options.answerChallenges === true,
        prefault: false,
        deshred: options.onTransaction !== undefined,
        ...(!options.onTransaction && {
          arrivals: options.recordPackets === true ? "with-packets" : "shreds",
        }),
        ...(options.receiveBufferBytes !== undefined && {
          receive: { bufferBytes: options.receiveBufferBytes },
        }),
      },
      clock,
    );
    const recorder = new FeedRecorder(relay, options, clock);
    try {
      if (options.schedule) relay.publishLeaders(options.schedule);
      recorder.#publish(options.feeds);
      if (options.onTransaction) recorder.#decodeFor(options.onTransaction);
    } catch (error) {
      relay.close();
      throw error;
    }
    return recorder;
  }

  #publish(feeds: readonly Feed[]): void {
    const ports = new Set(
      this.#relay.addresses.map((address) => Number(address.slice(address.lastIndexOf(":") + 1))),
    );
    this.#groups.publish(sourcesOf(feeds, [...ports]));
    for (const [number, { name }] of feeds.entries()) {
      const id = this.#relay.sourceNumber(name);
      if (id !== undefined) this.#feedById.set(id, number);
    }
  }

  #decodeFor(onTransaction: (slot: bigint, signature: Uint8Array) => void): void {
    const { streams } = this.#relay;
    const receive = ({ kind, slot, content }: StreamMessage): void => {
      if (kind !== "transaction") return;
      const [signature] = readWireTransaction(content).signatures;
      if (signature) onTransaction(slot, signature);
    };
    const read = (): void => {
      // Other work gets its turn before the rest.
      if (!this.#isClosed && !streams.drain(receive, turnBytes)) setImmediate(read);
    };
    streams.onMessages(read);
    const filter = { id: 0, tier, votes: "any", signature: null } as const;
    const none = new Set<string>();
    streams.publish({
      filters: [{ ...filter, include: [], exclude: [], required: [] }],
      entryTiers: none,
      historyTiers: none,
      replays: [],
    });
  }

  /** Decoded transactions that this program was too slow to read. */
  get transactionsLost(): number {
    return this.#relay.streams.lost;
  }

  publishLeaders(schedule: LeaderSchedule): void {
    this.#relay.publishLeaders(schedule);
  }

  snapshot(): RelaySnapshot {
    return this.#relay.snapshot();
  }

  /**
   * Calls `note` for every waiting arrival in the order of receipt; `timeNs` counts from
   * `baseNs`.
   */
  drain(note: (arrival: ShredArrival) => void): void {
    const arrival = blankArrival();
    for (let count = arrivalsAtOnce; count === arrivalsAtOnce; ) {
      count = this.#relay.drainArrivals(this.#bytes);
      for (let i = 0; i < count; i++) {
        if (this.#decode(i * arrivalBytes, arrival)) note(arrival);
      }
    }
  }

  /**
   * Calls `note` for every waiting datagram of at most `bytesMax` bytes. Its bytes are valid only during the
   * call.
   */
  drainPackets(note: (packet: RecordedPacket) => void, bytesMax = Number.POSITIVE_INFINITY): void {
    if (this.#packets.length === 0) return;
    for (;;) {
      const length = this.#relay.drainPackets(this.#packets);
      if (length === 0) return;
      for (let at = 0; at < length; ) {
        const end = at + packetHeadBytes + this.#packetsView.getUint32(at + 28, true);
        if (end - at - packetHeadBytes <= bytesMax) note(this.#decodePacket(at, end));
        at = end;
      }
    }
  }

  /** Why multicast groups do not deliver; null: they do, or no feed is a group. */
  get groupProblem(): string | null {
    return this.#groups.problem;
  }

  /** Datagrams that the kernel dropped, by local address. */
  kernelDrops(): readonly number[] {
    return this.#relay.receiveDrops();
  }

  /** Trace packets of block engines since the last call. */
  drainTraces(): RelayTrace[] {
    return this.#relay.drainTraces();
  }

  /** Received items that were not recorded because a ring was full. */
  losses(): { readonly arrivals: number; readonly packets: number } {
    return this.#relay.measuringLosses();
  }

  close(): void {
    this.#isClosed = true;
    this.#groups.close();
    this.#relay.close();
  }

  #decode(at: number, into: ShredArrival): boolean {
    const view = this.#view;
    const feed = this.#feedById.get(view.getUint16(at + 28, true));
    if (feed === undefined) return false;
    into.feed = feed;
    into.timeNs = Number(view.getBigUint64(at, true) - this.baseNs);
    into.slot = view.getUint32(at + 8, true) + view.getUint32(at + 12, true) * 2 ** 32;
    into.index = view.getUint32(at + 16, true);
    into.fecSetIndex = view.getUint32(at + 20, true);
    into.signature = view.getUint32(at + 24, true);
    into.isCode = view.getUint8(at + 30) === 1;
    into.lastInSlot = (view.getUint8(at + 31) & lastInSlotFlags) === lastInSlotFlags;
    return true;
  }

  #decodePacket(at: number, end: number): RecordedPacket {
    const view = this.#packetsView;
    const address = this.#packets.slice(at + 8, at + 24);
    return {
      packet: this.#packets.subarray(at + packetHeadBytes, end),
      timestampNs: view.getBigUint64(at, true),
      source: { bytes: address, port: view.getUint16(at + 24, true), family: familyOf(address) },
      port: view.getUint16(at + 26, true),
    };
  }
}
