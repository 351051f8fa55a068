// Locks that one process in the world holds: advisory locks, on a connection that is known to live.
//
// Made by driver.ts. All locks of the process are on one connection, opened when the first is
// asked for. Whoever holds one hears of its loss before the server gives it to another: a question goes
// out each second, and what has had no answer for `lostMs` since it was asked is lost here; the server
// waits `silenceMs`, which is longer, for the next word. A process that stands still (which the network
// does not notice) or is cut off has lost its locks then. Neither holds when the server itself ends, or
// another one takes over from it: who relies on being the only one checks a number in the transaction.

import { createHash } from "node:crypto";
import type { Timer } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Logger } from "../../../core/log.ts";
import type { Failure } from "../batch.ts";
import { type HeldLock, integerAt } from "../driver.ts";
import { isFailure, type PostgresConnection } from "./connection.ts";
import { lostCode, PostgresError } from "./failure.ts";
import type { PostgresAddress } from "./servers.ts";
import { endFormer } from "./writer.ts";

export interface LockTimes {
  /** From one question to the next. */
  readonly askMs: number;
  /** A question asked so long ago without an answer: the locks are lost. */
  readonly lostMs: number;
  /** The server ends a session that said nothing for so long; by far longer than `lostMs`. */
  readonly silenceMs: number;
}

export const defaultLockTimes: LockTimes = { askMs: 1000, lostMs: 5000, silenceMs: 8000 };

const msNs = 1_000_000n;
// The first alone does it; the others end what hangs in the network before the session does.
const watch = `SELECT set_config('idle_session_timeout', $1, false),
  set_config('tcp_user_timeout', $1, false), set_config('tcp_keepalives_idle', '2', false),
  set_config('tcp_keepalives_interval', '2', false), set_config('tcp_keepalives_count', '3', false)`;
const ask = "SELECT current_setting('transaction_read_only')";
const take = "SELECT CAST(pg_try_advisory_lock($1) AS integer)";
const giveBack = "SELECT CAST(pg_advisory_unlock($1) AS integer)";

interface LocksOptions extends PostgresAddress {
  readonly log: Logger;
  /** Of this process, like no other's. */
  readonly id: string;
  readonly lockTimes: LockTimes;
}

interface Holder {
  /** False: asked for. */
  isHeld: boolean;
  readonly onLost: () => void;
}

const lost: Failure = { code: lostCode, message: "lost at once" };

function numberOf(name: string): bigint {
  return createHash("sha256").update(name).digest().readBigInt64BE();
}

export class PostgresLocks {
  readonly #options: LocksOptions;
  #isClosed = false;
  #connection: PostgresConnection | null = null;
  #opening: Promise<PostgresConnection> | null = null;
  readonly #held = new Map<string, Holder>();
  /** When the question was asked that had the last answer, of the monotonic clock. */
  #aliveNs = 0n;
  #deadline: Timer | undefined;
  #asking: Timer | undefined;

  constructor(options: LocksOptions) {
    this.#options = options;
  }

  /** Throws PostgresError; ShredwayError "store_failed" without the package. */
  async tryLock(name: string, onLost: () => void): Promise<HeldLock | null> {
    // The server would give it to the same session twice.
    if (this.#held.has(name)) return null;
    const holder: Holder = { isHeld: false, onLost };
    this.#held.set(name, holder);
    try {
      const connection = await this.#connected();
      const askedNs = this.#options.clock.monotonicNs();
      const [row = []] = await connection.query(take, [numberOf(name)]);
      if (connection.isLost) throw new PostgresError(lost);
      this.#isAlive(connection, askedNs);
      holder.isHeld = integerAt(row, 0) === 1n;
      if (!holder.isHeld) return null;
      return { release: () => this.#release(name, holder, connection) };
    } finally {
      if (!holder.isHeld) this.#forget(name, holder);
    }
  }

  /** Gives all of them back; nobody is told. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#held.clear();
    await this.#opening?.catch(() => {});
    this.#asking?.cancel();
    this.#deadline?.cancel();
    await this.#connection?.close();
  }

  async #release(name: string, holder: Holder, connection: PostgresConnection): Promise<void> {
    // Lost, or given back: by now it may be held again.
    if (this.#held.get(name) !== holder) return;
    this.#held.delete(name);
    const [result = lost] = await connection.run([{ sql: giveBack, params: [numberOf(name)] }]);
    if (isFailure(result)) connection.destroy(result.message);
  }

  #forget(name: string, holder: Holder): void {
    if (this.#held.get(name) === holder) this.#held.delete(name);
  }

  #connected(): Promise<PostgresConnection> {
    const known = this.#connection;
    if (known && !known.isLost) return Promise.resolve(known);
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #open(): Promise<PostgresConnection> {
    const { servers, clock, id, lockTimes } = this.#options;
    const purpose = `shredway locks ${id}`;
    const connection = await servers.open(purpose);
    try {
      const askedNs = clock.monotonicNs();
      // What is left of a lost one is this process's own, which knows that it lost it.
      await connection.query(endFormer, [purpose]);
      await connection.query(watch, [String(lockTimes.silenceMs)]);
      if (this.#isClosed || connection.isLost) throw new PostgresError(lost);
      connection.onLost = () => this.#lose();
      this.#connection = connection;
      this.#aliveNs = 0n;
      this.#isAlive(connection, askedNs);
    } catch (error) {
      connection.destroy("not set up");
      throw error;
    }
    this.#asking = clock.every(lockTimes.askMs, () => void this.#ask(connection));
    return connection;
  }

  async #ask(connection: PostgresConnection): Promise<void> {
    const askedNs = this.#options.clock.monotonicNs();
    const [result = lost] = await connection.run([{ sql: ask }]);
    if (isFailure(result)) connection.destroy(result.message);
    else if (result.rows[0]?.[0] !== "off") connection.destroy("the server only reads by now");
    else this.#isAlive(connection, askedNs);
  }

  /** It answered what was asked then: the server waits from then on at the earliest. */
  #isAlive(connection: PostgresConnection, askedNs: bigint): void {
    if (connection !== this.#connection || connection.isLost || askedNs < this.#aliveNs) return;
    const { clock, lockTimes } = this.#options;
    this.#aliveNs = askedNs;
    this.#deadline?.cancel();
    const passedMs = Number((clock.monotonicNs() - askedNs) / msNs);
    const leftMs = Math.max(0, lockTimes.lostMs - passedMs);
    const why = `no answer for ${lockTimes.lostMs} ms`;
    this.#deadline = clock.after(leftMs, () => connection.destroy(why));
  }

  #lose(): void {
    this.#asking?.cancel();
    this.#deadline?.cancel();
    const holders = [...this.#held.values()].filter(({ isHeld }) => isHeld);
    this.#held.clear();
    for (const { onLost } of holders) {
      try {
        onLost();
      } catch (error) {
        this.#options.log.error(`after a lock was lost: ${messageOf(error)}`);
      }
    }
  }
}
