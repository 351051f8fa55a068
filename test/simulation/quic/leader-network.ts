// The network between the gateway's QUIC process and the leaders: delays, losses, duplicates, and the record of
// what left and arrived.

import type { Clock } from "../../../src/core/clock.ts";
import type { Quiche, QuicheConfig } from "../../../src/core/quic/quiche.ts";
import type { TpuAddress } from "../../../src/gateway/tpu/types.ts";
import type { OpenTpuSockets, TpuSocketTable } from "../../../src/gateway/tpu/udp-sockets.ts";
import { PartnerRecord, type Reception } from "../gateway/partner-record.ts";
import type { PartnerView } from "../gateway/partners.ts";
import type { SentTransaction, Transactions } from "../gateway/transactions.ts";
import { randomAt } from "../random-at.ts";
import type { SimulatedTime } from "../simulated-time.ts";
import { type Packet, PacketTable } from "./packets.ts";
import { SimulatedConnection } from "./simulated-connection.ts";
import { type LeaderMood, SimulatedLeader } from "./simulated-leader.ts";

const oneWayNs = 4_000_000;
const oneWayRangeNs = 6_000_000;
const duplicateShare = 0.02;
const port = 9_007;
/** The longest pause until a leader that failed is tried again, and until a process that hangs is replaced. */
const leaderRestMs = 31_000;
const processRestMs = 9_000;

interface LeaderNetworkOptions {
  readonly seed: number;
  readonly time: SimulatedTime;
  /** Base58. */
  readonly identities: readonly string[];
  readonly transactions: Transactions;
  /** Leaders have it. */
  readonly passOn: (transactions: readonly SentTransaction[]) => void;
  /** Called when the last byte of a transaction leaves for a leader. null: no customer signed these bytes. */
  readonly onDeparture: (identity: string, signed: SentTransaction | null) => void;
}

/** A connection of one process. */
interface Departures {
  /** Bytes of each stream that have left, by offset. */
  readonly streams: Map<number, Map<number, Buffer>>;
  readonly whole: Set<number>;
}

function keyOf({ host, port: number }: TpuAddress): string {
  return `${host}:${number}`;
}

export class LeaderNetwork implements PartnerView {
  readonly #options: LeaderNetworkOptions;
  readonly #record = new PartnerRecord();
  readonly #table = new PacketTable();
  readonly #leaders = new Map<string, SimulatedLeader>();
  readonly #identities = new Map<string, string>();
  /** Connections of the gateway, by their ids. */
  readonly #departures = new Map<string, Departures>();
  /** The present process's listener; null: none runs. */
  #listener: ((packet: Uint8Array) => void) | null = null;
  #lossShare = 0;
  /** No copy has a response of its own. */
  readonly unanswered = 0;
  #calls = 0;
  /** Since when everything must reach the leaders; it may be in the future. */
  #goodSinceMs = 0;

  constructor(options: LeaderNetworkOptions) {
    this.#options = options;
    for (const [i, identity] of options.identities.entries()) {
      const address = `8.8.0.${i + 1}:${port}`;
      this.#identities.set(address, identity);
      const leader = new SimulatedLeader({
        reply: (id, packet) => this.#toGateway(id, packet),
        onTransaction: (bytes, isTaken) => this.#arrived(bytes, isTaken),
      });
      this.#leaders.set(address, leader);
    }
  }

  /** As the node lists them. */
  get nodes(): { readonly identity: string; readonly tpuQuic: string }[] {
    return [...this.#identities].map(([tpuQuic, identity]) => ({ identity, tpuQuic }));
  }

  receptionOf(signature: string): Reception {
    return this.#record.receptionOf(signature);
  }

  /** Copies of transactions that have left in this life of the service. */
  get calls(): number {
    return this.#calls;
  }

  get goodSinceMs(): number | null {
    return this.#goodSinceMs <= this.#options.time.nowMs ? this.#goodSinceMs : null;
  }

  /** The service was killed. */
  crashed(): void {
    this.#calls = 0;
  }

  setMood(leaders: readonly number[], mood: LeaderMood, forMs: number): void {
    const changed = [...this.#leaders.values()].filter((_, i) => leaders.includes(i));
    for (const leader of changed) leader.mood = mood;
    this.#troubled(forMs, () => {
      for (const leader of changed) if (leader.mood === mood) leader.mood = "accepts";
    });
  }

  lose(share: number, forMs: number): void {
    this.#lossShare = share;
    this.#troubled(forMs, () => {
      if (this.#lossShare === share) this.#lossShare = 0;
    });
  }

  /** The process has ended, or does not run properly. */
  processFailed(): void {
    this.#rest(processRestMs);
  }

  /** Something does not work for this time. */
  #troubled(forMs: number, done: () => void): void {
    const { time } = this.#options;
    this.#rest(forMs + leaderRestMs);
    time.at(time.nowNs + forMs * 1e6, done);
  }

  #rest(forMs: number): void {
    this.#goodSinceMs = Math.max(this.#goodSinceMs, this.#options.time.nowMs + forMs);
  }

  /** The library of a process. */
  quicheOf(clock: Clock): Quiche {
    const connect = (_: string | null, id: Uint8Array): SimulatedConnection =>
      new SimulatedConnection({ clock, table: this.#table, id });
    const refuse = (): never => {
      throw new Error("expected no such call in a simulation");
    };
    const none = (): void => {};
    const config: QuicheConfig = {
      grease: none,
      setApplicationProtos: none,
      setMaxIdleTimeout: none,
      setMaxRecvUdpPayloadSize: none,
      setMaxSendUdpPayloadSize: none,
      setInitialMaxData: none,
      setInitialMaxStreamDataBidiLocal: none,
      setInitialMaxStreamDataBidiRemote: none,
      setInitialMaxStreamDataUni: none,
      setInitialMaxStreamsBidi: none,
      setInitialMaxStreamsUni: none,
      setMaxConnectionWindow: none,
      setMaxStreamWindow: none,
      setStatelessResetToken: none,
      setDisableActiveMigration: none,
      enableDgram: none,
    };
    return {
      Connection: { connect, accept: refuse },
      Config: { withBoringSslCtx: () => config },
      Header: { fromSlice: refuse },
      Shutdown: { Read: 0, Write: 1 },
      Type: { Initial: 1, Retry: 2, Handshake: 3, ZeroRTT: 4, VersionNegotiation: 5, Short: 6 },
      versionIsSupported: () => true,
      negotiateVersion: refuse,
      retry: refuse,
    };
  }

  /** The sockets of a process. */
  readonly openSockets: OpenTpuSockets = (_, listener): TpuSocketTable => {
    this.#listener = listener;
    return {
      failed: 0,
      lastFailure: "",
      socketFor: () => ({
        local: { host: "10.0.0.1", port },
        send: (datagram, to) => this.#toLeader(datagram, to),
      }),
      close: () => {
        if (this.#listener === listener) this.#listener = null;
      },
    };
  };

  #toLeader(datagram: Uint8Array, to: TpuAddress): void {
    const address = keyOf(to);
    const leader = this.#leaders.get(address);
    const { id, packet } = this.#table.read(datagram);
    this.#note(id, this.#identities.get(address) ?? "", packet);
    this.#deliver(1, () => leader?.receive(id, packet));
  }

  #toGateway(id: string, packet: Packet): void {
    const datagram = this.#table.datagram(Buffer.from(id, "latin1"), packet);
    this.#deliver(2, () => this.#listener?.(Buffer.from(datagram)));
  }

  #deliver(salt: number, arrive: () => void): void {
    const { seed, time } = this.#options;
    const random = randomAt(seed, time.nowNs, 16 + salt);
    if (random.happens(this.#lossShare)) return;
    const times = random.happens(duplicateShare) ? 2 : 1;
    for (let i = 0; i < times; i++)
      time.at(time.nowNs + oneWayNs + random.below(oneWayRangeNs), arrive);
  }

  /** Notes what a packet contains that leaves the process. */
  #note(id: string, identity: string, { frames }: Packet): void {
    const known = this.#departures.get(id) ?? { streams: new Map(), whole: new Set() };
    this.#departures.set(id, known);
    for (const frame of frames) {
      if (frame.kind !== "stream" || known.whole.has(frame.id)) continue;
      const pieces = known.streams.get(frame.id) ?? new Map<number, Buffer>();
      known.streams.set(frame.id, pieces.set(frame.offset, frame.bytes));
      if (!frame.isLast) continue;
      known.whole.add(frame.id);
      const parts = [...pieces].toSorted(([a], [b]) => a - b).map(([, bytes]) => bytes);
      this.#departed(identity, Buffer.concat(parts));
    }
  }

  #departed(identity: string, bytes: Buffer): void {
    const { transactions, onDeparture } = this.#options;
    this.#calls++;
    const signed = transactions.ofBase64(bytes.toString("base64")) ?? null;
    if (signed) this.#record.receptionOf(signed.signature).received++;
    onDeparture(identity, signed);
  }

  #arrived(bytes: Buffer, isTaken: boolean): void {
    const { transactions, passOn } = this.#options;
    const signed = transactions.ofBase64(bytes.toString("base64"));
    if (!signed) return; // its departure was a violation
    this.#record.receptionOf(signed.signature).acknowledged++;
    if (isTaken) passOn([signed]);
  }
}
