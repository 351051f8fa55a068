// One leader address: its connection, queue and reconnection.
//
// endpoint.ts has one per address; leaders never wait for each other. A transaction is sent
// immediately if the connection is established and the leader allows another stream. Otherwise it
// waits in a bounded queue until its deadline.

import { formatEndpoint, parseAddress } from "../../core/addresses/addresses.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { isRefusal } from "../../core/quic/close-names.ts";
import type { SeededRandom } from "../../core/seeded-random.ts";
import { BackOff } from "./back-off.ts";
import type { ConnectionListener, Outgoing, TpuConnection } from "./connection.ts";
import type { LeaderPhase, LeaderState, TpuAddress, TpuEvent } from "./types.ts";

interface LeaderDependencies {
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly queueMax: number;
  /** Throws if no socket for this address exists. The connection is not started yet. */
  connect(address: TpuAddress, listener: ConnectionListener): TpuConnection;
  /** Ensures that one more connection is allowed; may close another one. */
  allowConnection(leader: Leader): boolean;
  report(event: TpuEvent): void;
  /** Called when `state` changed. */
  changed(leader: Leader): void;
}

/** Interval for dropping queued transactions whose deadline has passed. */
const sweepMs = 50;
const nsPerMs = 1_000_000n;
/** Distinct end names per leader; the remote side chooses the numbers in some of them. */
const closeNamesMax = 32;
const roundTripWeight = 1 / 8;
/** Between two connections that transactions start during a pause. */
const earlyTryNs = 250_000_000n;

export class Leader {
  readonly address: TpuAddress;
  readonly #text: string;
  readonly #dependencies: LeaderDependencies;
  readonly #backOff: BackOff;
  #queue: Outgoing[] = [];
  #connection: TpuConnection | null = null;
  #connectedNs: bigint | null = null;
  /** Connections of an earlier identity: no new streams, closed when nothing is in flight. */
  readonly #draining = new Set<TpuConnection>();
  #pause: Timer | undefined;
  #pauseEndsNs = 0n;
  /** Start of the last connection; monotonic. */
  #triedNs = 0n;
  #sweep: Timer | undefined;
  /** Rank among the selected leaders, from 0; null: not selected. */
  #rank: number | null = null;
  /** Monotonic. */
  #usedNs: bigint;
  #handshakeMs: number | null = null;
  #roundTripMs: number | null = null;
  #connections = 0;
  #lastClose = "";
  #isClosed = false;
  readonly #closes = new Map<string, number>();
  readonly #counts = { sent: 0, acknowledged: 0, reset: 0, dropped: 0 };

  constructor(address: TpuAddress, dependencies: LeaderDependencies) {
    this.address = address;
    this.#text = formatEndpoint({ bytes: parseAddress(address.host), port: address.port });
    this.#dependencies = dependencies;
    this.#backOff = new BackOff(dependencies.random);
    this.#usedNs = dependencies.clock.monotonicNs();
  }

  get phase(): LeaderPhase {
    if (this.#connection) return this.#connection.isEstablished ? "connected" : "connecting";
    return this.#pause ? "backing_off" : "idle";
  }

  /** Number of connections, including draining ones. */
  get connections(): number {
    return (this.#connection ? 1 : 0) + this.#draining.size;
  }

  /** Nothing is queued or in flight. */
  get isQuiet(): boolean {
    return this.#queue.length === 0 && this.#inFlight === 0;
  }

  /** Its connection is not needed. */
  get isIdle(): boolean {
    return this.#rank === null && this.isQuiet;
  }

  get rank(): number | null {
    return this.#rank;
  }

  get hasWaiting(): boolean {
    return this.#queue.length > 0;
  }

  /** When it was last sent to or selected; monotonic. */
  get usedNs(): bigint {
    return this.#usedNs;
  }

  /** Its state can be discarded. */
  get isUnused(): boolean {
    return this.isIdle && this.connections === 0 && !this.#pause;
  }

  get #inFlight(): number {
    let sum = this.#connection?.inFlight ?? 0;
    for (const connection of this.#draining) sum += connection.inFlight;
    return sum;
  }

  get state(): LeaderState {
    return {
      address: this.#text,
      phase: this.phase,
      handshakeMs: this.#handshakeMs,
      roundTripMs: this.#roundTripMs,
      queued: this.#queue.length,
      inFlight: this.#inFlight,
      ...this.#counts,
      connections: this.#connections,
      closes: Object.fromEntries(this.#closes),
      lastClose: this.#lastClose,
    };
  }

  /** Selects the leader (0: nearest) or, with null, deselects it. */
  select(rank: number | null): void {
    if (rank !== null || this.#rank !== null) this.#usedNs = this.#nowNs();
    this.#rank = rank;
    if (rank !== null) this.#connect();
  }

  /** Connects again if the leader is selected and has no connection. */
  reconnect(): void {
    if (this.#rank !== null) this.#connect();
  }

  send(outgoing: Outgoing): void {
    const { queueMax } = this.#dependencies;
    this.#usedNs = this.#nowNs();
    if (this.#queue.length === 0 && this.#connection?.send(outgoing)) return;
    const triesNow = this.#pause !== undefined && this.#mayTryEarly;
    if (this.#pause && !triesNow && this.#pauseEndsNs >= outgoing.deadlineNs) {
      this.#drop(outgoing, `backing_off: ${this.#lastClose}`);
      return;
    }
    if (this.#queue.length >= queueMax) {
      this.#drop(outgoing, "queue_full");
      return;
    }
    this.#queue.push(outgoing);
    this.#sweepSoon();
    if (triesNow) this.#resume();
    else this.#connect();
  }

  /** A transaction ends the pause, unless the leader refused or was tried a moment ago. */
  get #mayTryEarly(): boolean {
    return !isRefusal(this.#lastClose) && this.#nowNs() - this.#triedNs >= earlyTryNs;
  }

  /** Replaces the connection; the old one closes when nothing is in flight. */
  renew(): void {
    const connection = this.#connection;
    if (!connection) {
      this.#resume();
      return;
    }
    this.#backOff.noteEnd(this.#connectedMs);
    this.#connection = null;
    this.#draining.add(connection);
    if (connection.inFlight === 0) connection.close("renewed");
    this.#connect();
  }

  /** Closes all connections; queued transactions are dropped, those in flight failed. */
  close(reason: string): void {
    this.#isClosed = true;
    this.#rank = null;
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#sweep?.cancel();
    this.#sweep = undefined;
    for (const outgoing of this.#queue.splice(0)) this.#drop(outgoing, reason);
    for (const connection of this.#draining) connection.close(reason);
    this.#connection?.close(reason);
    // Transactions that the last connection returned unsent.
    for (const outgoing of this.#queue.splice(0)) this.#drop(outgoing, reason);
  }

  /** Closes the connection only; for leaders without queued transactions. */
  disconnect(): void {
    this.#connection?.close("not_needed");
  }

  #connect(): void {
    if (this.#connection || this.#pause || this.#isClosed) return;
    if (this.#rank === null && this.#queue.length === 0) return;
    if (!this.#dependencies.allowConnection(this)) {
      for (const outgoing of this.#queue.splice(0)) this.#drop(outgoing, "no_connection_left");
      return;
    }
    this.#triedNs = this.#nowNs();
    let connection: TpuConnection;
    const listener: ConnectionListener = {
      established: () => this.#established(connection),
      usable: () => this.#usable(connection),
      sent: ({ id }) => {
        this.#counts.sent++;
        this.#dependencies.report({ kind: "sent", id, atNs: this.#nowNs() });
      },
      acknowledged: ({ id }, tookNs) => {
        this.#counts.acknowledged++;
        this.#noteRoundTrip(Number(tookNs) / 1e6);
        this.#dependencies.report({ kind: "acknowledged", id, atNs: this.#nowNs() });
      },
      stopped: ({ id }, isSent) => {
        this.#counts.reset++;
        const kind = isSent ? "failed" : "dropped";
        this.#dependencies.report({ kind, id, atNs: this.#nowNs(), reason: "stream_stopped" });
      },
      failed: ({ id }, reason) => {
        this.#counts.reset++;
        this.#dependencies.report({ kind: "failed", id, atNs: this.#nowNs(), reason });
      },
      unsent: (outgoing) => this.#takeBack(outgoing),
      closed: (name) => this.#closed(connection, name),
    };
    try {
      connection = this.#dependencies.connect(this.address, listener);
    } catch {
      this.#ended("no_socket", null);
      return;
    }
    this.#connection = connection;
    this.#connectedNs = null;
    this.#connections++;
    this.#dependencies.changed(this);
    connection.start();
  }

  #nowNs(): bigint {
    return this.#dependencies.clock.monotonicNs();
  }

  /** How long the present connection has been established; null: it is not. */
  get #connectedMs(): number | null {
    const connectedNs = this.#connectedNs;
    return connectedNs === null ? null : Number((this.#nowNs() - connectedNs) / nsPerMs);
  }

  #established(connection: TpuConnection): void {
    this.#handshakeMs = connection.handshakeMs;
    this.#connectedNs = this.#nowNs();
    this.#dependencies.changed(this);
  }

  #usable(connection: TpuConnection): void {
    if (this.#draining.has(connection)) {
      if (connection.inFlight === 0) connection.close("renewed");
      return;
    }
    this.#pump();
  }

  #pump(): void {
    const connection = this.#connection;
    if (!connection || this.#queue.length === 0) return;
    const nowNs = this.#nowNs();
    let processed = 0;
    for (const outgoing of this.#queue) {
      if (outgoing.deadlineNs <= nowNs) this.#drop(outgoing, "deadline_passed");
      else if (!connection.send(outgoing)) break;
      processed++;
    }
    if (processed > 0) this.#queue.splice(0, processed);
  }

  /** Queues a transaction again that was not sent completely. */
  #takeBack(outgoing: Outgoing): void {
    if (outgoing.deadlineNs <= this.#nowNs()) this.#drop(outgoing, "deadline_passed");
    else if (this.#queue.length >= this.#dependencies.queueMax) this.#drop(outgoing, "queue_full");
    else {
      this.#queue.unshift(outgoing);
      this.#sweepSoon();
    }
  }

  #closed(connection: TpuConnection, name: string): void {
    if (this.#draining.delete(connection)) {
      this.#count(name);
      this.#dependencies.changed(this);
      // The present connection sends the returned transactions.
      this.#connect();
      this.#pump();
      return;
    }
    const connectedMs = this.#connectedMs;
    this.#connection = null;
    this.#ended(name, connectedMs);
  }

  #ended(name: string, connectedMs: number | null): void {
    this.#count(name);
    this.#lastClose = name;
    const isOurs = name === "not_needed" || name === "route_closed";
    if (isOurs) this.#backOff.noteEnd(connectedMs);
    else {
      const pauseMs = this.#backOff.pauseMsAfter(name, connectedMs);
      this.#pauseEndsNs = this.#nowNs() + BigInt(Math.ceil(pauseMs * 1e6));
      this.#pause = this.#dependencies.clock.after(pauseMs, () => this.#resume());
      this.#dropExpiring();
    }
    this.#dependencies.changed(this);
  }

  #resume(): void {
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#connect();
    this.#dependencies.changed(this);
  }

  /** Drops transactions whose deadline is before the end of the pause. */
  #dropExpiring(): void {
    const waiting = this.#queue.splice(0);
    for (const outgoing of waiting) {
      if (outgoing.deadlineNs > this.#pauseEndsNs) this.#queue.push(outgoing);
      else this.#drop(outgoing, `backing_off: ${this.#lastClose}`);
    }
  }

  #sweepQueue(): void {
    this.#sweep = undefined;
    const nowNs = this.#nowNs();
    const waiting = this.#queue.splice(0);
    for (const outgoing of waiting) {
      if (outgoing.deadlineNs > nowNs) this.#queue.push(outgoing);
      else this.#drop(outgoing, "deadline_passed");
    }
    if (this.#queue.length > 0) this.#sweepSoon();
  }

  #sweepSoon(): void {
    if (this.#isClosed) return;
    this.#sweep ??= this.#dependencies.clock.after(sweepMs, () => this.#sweepQueue());
  }

  #drop({ id }: Outgoing, reason: string): void {
    this.#counts.dropped++;
    this.#dependencies.report({ kind: "dropped", id, atNs: this.#nowNs(), reason });
  }

  #count(name: string): void {
    const known = this.#closes.has(name) || this.#closes.size < closeNamesMax ? name : "other";
    this.#closes.set(known, (this.#closes.get(known) ?? 0) + 1);
  }

  #noteRoundTrip(ms: number): void {
    const known = this.#roundTripMs;
    this.#roundTripMs = known === null ? ms : known + (ms - known) * roundTripWeight;
  }
}
