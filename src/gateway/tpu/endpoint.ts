// QUIC endpoint of all connections to leaders: sockets, connections by id, leaders by address.
//
// Runs in its own process (endpoint-process.ts), and directly in tests. The numbers of connections, of
// queued transactions per leader and of leaders are bounded. Received packets are assigned by our
// connection id; others are dropped.

import { randomBytes } from "node:crypto";
import type { Clock, Timer } from "../../core/clock.ts";
import {
  buildQuicheConfig,
  packetBytesMax,
  type Quiche,
  type QuicheConfig,
  type QuicheCredentials,
} from "../../core/quic/quiche.ts";
import { SeededRandom } from "../../core/seeded-random.ts";
import { idleTimeoutMs, TpuConnection } from "./connection.ts";
import { Leader } from "./leader.ts";
import type { LeaderState, TpuAddress, TpuEvent, TpuSendRequest, TpuSettings } from "./types.ts";
import { type OpenTpuSockets, openKernelSockets, type TpuSocketTable } from "./udp-sockets.ts";

interface EndpointDependencies {
  readonly quiche: Quiche;
  readonly clock: Clock;
  readonly settings: TpuSettings;
  readonly credentials: QuicheCredentials;
  /** Default: those of the kernel. */
  readonly openSockets?: OpenTpuSockets | undefined;
  /** Receives the events of transactions. Must not throw. */
  readonly report: (event: TpuEvent) => void;
  /** Called when the state of a leader changed. Must not throw. */
  readonly changed: () => void;
}

const scidBytes = 8;
const leadersMax = 256;
/** Connections of unselected leaders are closed after being unused for so long. */
const lingerNs = 5_000_000_000n;
/** Less than the shortest window of a leader. */
const cleanupMs = 250;
const longHeaderBit = 0x80;
/** Offset of the id in a long header: after flags, version and length of the destination id. */
const longIdAt = 6;
/** Leaders send only acknowledgements and open no streams. */
const noBytes = 0;

function keyOf({ host, port }: TpuAddress): string {
  return `${host} ${port}`;
}

function configOf(
  quiche: Quiche,
  settings: TpuSettings,
  credentials: QuicheCredentials,
): QuicheConfig {
  return buildQuicheConfig(quiche, {
    credentials,
    applicationProtocol: settings.applicationProtocol,
    idleTimeoutMs,
    packetBytesMax,
    connectionBytesMax: noBytes,
    streamBytesMax: noBytes,
    streamsMax: 0,
  });
}

export class TpuEndpoint {
  readonly #dependencies: EndpointDependencies;
  readonly #random: SeededRandom;
  #config: QuicheConfig;
  #sockets: TpuSocketTable | null = null;
  readonly #leaders = new Map<string, Leader>();
  /** Connections by our id as latin1 text. */
  readonly #connections = new Map<string, TpuConnection>();
  #cleanupTimer: Timer | undefined;

  /** Rejects if no socket can be opened or the key is invalid. */
  static async open(dependencies: EndpointDependencies): Promise<TpuEndpoint> {
    const endpoint = new TpuEndpoint(dependencies);
    const { settings, openSockets = openKernelSockets } = dependencies;
    endpoint.#sockets = openSockets(settings.bind, (packet) => endpoint.#receive(packet));
    endpoint.#cleanupTimer = dependencies.clock.every(cleanupMs, () => {
      endpoint.#closeUnused();
      endpoint.#reconnect();
    });
    return endpoint;
  }

  private constructor(dependencies: EndpointDependencies) {
    this.#dependencies = dependencies;
    this.#random = new SeededRandom(dependencies.settings.seed);
    this.#config = configOf(dependencies.quiche, dependencies.settings, dependencies.credentials);
  }

  /** Selects the leaders to connect with, nearest first; at most `connectionsMax` count. */
  selectLeaders(addresses: readonly TpuAddress[]): void {
    const wanted = addresses.slice(0, this.#dependencies.settings.connectionsMax);
    const keys = new Set(wanted.map(keyOf));
    for (const [key, leader] of this.#leaders) if (!keys.has(key)) leader.select(null);
    for (const [rank, address] of wanted.entries()) this.#leaderAt(address)?.select(rank);
  }

  send({ id, address, bytes, restMs }: TpuSendRequest): void {
    const { clock, report } = this.#dependencies;
    const nowNs = clock.monotonicNs();
    const leader = this.#leaderAt(address);
    if (!leader) {
      report({ kind: "dropped", id, atNs: nowNs, reason: "too_many_leaders" });
      return;
    }
    leader.send({ id, bytes, deadlineNs: nowNs + BigInt(Math.max(0, Math.ceil(restMs * 1e6))) });
  }

  /** Changes the identity: new connections use it; old ones close when nothing is in flight. */
  identify(credentials: QuicheCredentials): void {
    const { quiche, settings } = this.#dependencies;
    this.#config = configOf(quiche, settings, credentials);
    for (const leader of this.#leaders.values()) leader.renew();
  }

  leaders(): LeaderState[] {
    return Array.from(this.#leaders.values(), ({ state }) => state);
  }

  /** Number of packets that could not be sent, and the kernel's last error. */
  get failures(): { readonly packets: number; readonly last: string } {
    return { packets: this.#sockets?.failed ?? 0, last: this.#sockets?.lastFailure ?? "" };
  }

  close(): void {
    this.#cleanupTimer?.cancel();
    for (const leader of this.#leaders.values()) leader.close("route_closed");
    this.#sockets?.close();
    this.#sockets = null;
  }

  #receive(packet: Uint8Array): void {
    const [first] = packet;
    if (first === undefined) return;
    const at = (first & longHeaderBit) === 0 ? 1 : longIdAt;
    const id = Buffer.from(packet.buffer, packet.byteOffset, packet.length);
    this.#connections.get(id.toString("latin1", at, at + scidBytes))?.receive(packet);
  }

  #leaderAt(address: TpuAddress): Leader | null {
    const key = keyOf(address);
    const known = this.#leaders.get(key);
    if (known) return known;
    if (this.#leaders.size >= leadersMax && !this.#evictUnused()) return null;
    const { clock, settings, report, changed } = this.#dependencies;
    const leader = new Leader(address, {
      clock,
      random: this.#random,
      queueMax: settings.queueMax,
      connect: (to, listener) => this.#connect(to, listener),
      allowConnection: (requester) => this.#allowConnection(requester),
      report,
      changed,
    });
    this.#leaders.set(key, leader);
    return leader;
  }

  #evictUnused(): boolean {
    for (const [key, leader] of this.#leaders) {
      if (leader.isUnused) return this.#leaders.delete(key);
    }
    return false;
  }

  #connect(
    remote: TpuAddress,
    listener: ConstructorParameters<typeof TpuConnection>[0]["listener"],
  ): TpuConnection {
    const { quiche, clock, settings } = this.#dependencies;
    const socket = this.#sockets?.socketFor(remote);
    if (!socket) throw new Error(`expected a socket for ${remote.host}, got none`);
    const scid = randomBytes(scidBytes);
    const key = scid.toString("latin1");
    const connection = new TpuConnection({
      quiche,
      config: this.#config,
      clock,
      local: socket.local,
      remote,
      scid,
      timeoutMs: settings.timeoutMs,
      transmit: (packet) => socket.send(packet, remote),
      listener: {
        ...listener,
        closed: (name) => {
          this.#connections.delete(key);
          listener.closed(name);
        },
      },
    });
    this.#connections.set(key, connection);
    return connection;
  }

  /**
   * Closes the connection that was unused for the longest time; for a leader with queued
   * transactions, otherwise that of the farthest preconnected leader. Returns false if all others
   * are busy.
   */
  #allowConnection(forWhom: Leader): boolean {
    if (this.#connections.size < this.#dependencies.settings.connectionsMax) return true;
    let oldest: Leader | undefined;
    let farthest: Leader | undefined;
    for (const leader of this.#leaders.values()) {
      if (leader === forWhom || leader.connections === 0 || !leader.isQuiet) continue;
      if (leader.rank === null) {
        if (!oldest || leader.usedNs < oldest.usedNs) oldest = leader;
      } else if (!farthest || leader.rank > (farthest.rank ?? 0)) farthest = leader;
    }
    (oldest ?? (forWhom.hasWaiting ? farthest : undefined))?.disconnect();
    return this.#connections.size < this.#dependencies.settings.connectionsMax;
  }

  #closeUnused(): void {
    const lateNs = this.#dependencies.clock.monotonicNs() - lingerNs;
    for (const leader of this.#leaders.values()) {
      if (leader.isIdle && leader.usedNs < lateNs) leader.disconnect();
    }
  }

  /** Connects with selected leaders that gave their connection up for another leader, nearest first. */
  #reconnect(): void {
    const lost = [...this.#leaders.values()].filter(
      ({ rank, phase }) => rank !== null && phase === "idle",
    );
    for (const leader of lost.toSorted((a, b) => (a.rank ?? 0) - (b.rank ?? 0))) {
      if (this.#connections.size >= this.#dependencies.settings.connectionsMax) return;
      leader.reconnect();
    }
  }
}
