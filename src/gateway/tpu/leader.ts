// One leader's address: its connection, what waits for it, and when to try again.
//
// Kept by endpoint.ts, one for each address. Never waits for another leader, and none waits for it.
// What is offered leaves at once when the connection stands and the leader allows another stream; else
// it waits here, bounded, until its own deadline.

import { formatEndpoint, parseAddress } from "../../core/addresses/addresses.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import type { SeededRandom } from "../../core/seeded-random.ts";
import { BackOff } from "./back-off.ts";
import type { ConnectionListener, Outgoing, TpuConnection } from "./connection.ts";
import type { LeaderPhase, LeaderState, TpuAddress, TpuEvent } from "./types.ts";

interface LeaderDependencies {
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly queueMax: number;
  /** Throws when there is no socket for this address. The connection is not started yet. */
  connect(address: TpuAddress, listener: ConnectionListener): TpuConnection;
  /** Room for one more connection; may close another one to make it. */
  makeRoom(leader: Leader): boolean;
  tell(event: TpuEvent): void;
  /** Something that `state` shows changed. */
  changed(leader: Leader): void;
}

/** Of what waits: looked at so often for transactions that are of no use any more. */
const sweepMs = 50;
const nsPerMs = 1_000_000n;
/** Names of ends that a leader may have; a stranger chooses the numbers in some of them. */
const closeNamesMax = 32;
const roundTripWeight = 1 / 8;

export class Leader {
  readonly address: TpuAddress;
  readonly #text: string;
  readonly #dependencies: LeaderDependencies;
  readonly #backOff: BackOff;
  #queue: Outgoing[] = [];
  #connection: TpuConnection | null = null;
  #connectedNs: bigint | null = null;
  /** Of an earlier identity: no new streams, closed when nothing is under way. */
  readonly #draining = new Set<TpuConnection>();
  #pause: Timer | undefined;
  #pauseEndsNs = 0n;
  #sweep: Timer | undefined;
  /** Among those to be connected with, from 0; null: none of them. */
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

  /** A socket's port is in use for it. */
  get connections(): number {
    return (this.#connection ? 1 : 0) + this.#draining.size;
  }

  /** Nothing waits for it and nothing is under way. */
  get isQuiet(): boolean {
    return this.#queue.length === 0 && this.#inFlight === 0;
  }

  /** Nobody would miss its connection. */
  get isIdle(): boolean {
    return this.#rank === null && this.isQuiet;
  }

  get rank(): number | null {
    return this.#rank;
  }

  get hasWaiting(): boolean {
    return this.#queue.length > 0;
  }

  /** When something was sent to it last, or it was last wanted; monotonic. */
  get usedNs(): bigint {
    return this.#usedNs;
  }

  /** Nothing is lost when it is forgotten. */
  get isForgettable(): boolean {
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

  /** To be connected with, the nearest from 0, or not any longer. */
  want(rank: number | null): void {
    if (rank !== null || this.#rank !== null) this.#usedNs = this.#nowNs();
    this.#rank = rank;
    if (rank !== null) this.#connect();
  }

  send(outgoing: Outgoing): void {
    const { queueMax } = this.#dependencies;
    this.#usedNs = this.#nowNs();
    if (this.#queue.length === 0 && this.#connection?.send(outgoing)) return;
    if (this.#pause && this.#pauseEndsNs >= outgoing.deadlineNs) {
      this.#drop(outgoing, `backing_off: ${this.#lastClose}`);
      return;
    }
    if (this.#queue.length >= queueMax) {
      this.#drop(outgoing, "queue_full");
      return;
    }
    this.#queue.push(outgoing);
    this.#sweepSoon();
    this.#connect();
  }

  /** New connections from now on; what is under way is awaited. */
  renew(): void {
    const connection = this.#connection;
    if (!connection) {
      this.#resume();
      return;
    }
    this.#backOff.noteEnd(this.#stoodMs);
    this.#connection = null;
    this.#draining.add(connection);
    if (connection.inFlight === 0) connection.close("renewed");
    this.#connect();
  }

  /** Says good-bye; what waits is dropped, what is under way failed. */
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
    // What came back unsent from the last one.
    for (const outgoing of this.#queue.splice(0)) this.#drop(outgoing, reason);
  }

  /** Only the connection: nothing waits. */
  hangUp(): void {
    this.#connection?.close("not_needed");
  }

  #connect(): void {
    if (this.#connection || this.#pause || this.#isClosed) return;
    if (this.#rank === null && this.#queue.length === 0) return;
    if (!this.#dependencies.makeRoom(this)) {
      for (const outgoing of this.#queue.splice(0)) this.#drop(outgoing, "no_connection_left");
      return;
    }
    let connection: TpuConnection;
    const listener: ConnectionListener = {
      established: () => this.#established(connection),
      usable: () => this.#usable(connection),
      sent: ({ id }) => {
        this.#counts.sent++;
        this.#dependencies.tell({ kind: "sent", id, atNs: this.#nowNs() });
      },
      acknowledged: ({ id }, tookNs) => {
        this.#counts.acknowledged++;
        this.#noteRoundTrip(Number(tookNs) / 1e6);
        this.#dependencies.tell({ kind: "acknowledged", id, atNs: this.#nowNs() });
      },
      stopped: ({ id }) => {
        this.#counts.reset++;
        const reason = "stream_stopped";
        this.#dependencies.tell({ kind: "dropped", id, atNs: this.#nowNs(), reason });
      },
      failed: ({ id }, reason) => {
        this.#counts.reset++;
        this.#dependencies.tell({ kind: "failed", id, atNs: this.#nowNs(), reason });
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

  /** How long the present connection stands; null: it does not. */
  get #stoodMs(): number | null {
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
    let left = 0;
    for (const outgoing of this.#queue) {
      if (outgoing.deadlineNs <= nowNs) this.#drop(outgoing, "deadline_passed");
      else if (!connection.send(outgoing)) break;
      left++;
    }
    if (left > 0) this.#queue.splice(0, left);
  }

  /** It never left as a whole: another connection may take it. */
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
      // What it gave back is the present connection's.
      this.#connect();
      this.#pump();
      return;
    }
    const stoodMs = this.#stoodMs;
    this.#connection = null;
    this.#ended(name, stoodMs);
  }

  #ended(name: string, stoodMs: number | null): void {
    this.#count(name);
    this.#lastClose = name;
    const isOurs = name === "not_needed" || name === "route_closed";
    if (isOurs) this.#backOff.noteEnd(stoodMs);
    else {
      const pauseMs = this.#backOff.pauseMsAfter(name, stoodMs);
      this.#pauseEndsNs = this.#nowNs() + BigInt(Math.ceil(pauseMs * 1e6));
      this.#pause = this.#dependencies.clock.after(pauseMs, () => this.#resume());
      this.#dropHopeless();
    }
    this.#dependencies.changed(this);
  }

  #resume(): void {
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#connect();
    this.#dependencies.changed(this);
  }

  /** What the pause will outlive need not wait for its end. */
  #dropHopeless(): void {
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
    this.#dependencies.tell({ kind: "dropped", id, atNs: this.#nowNs(), reason });
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
