// Advisory locks, on a connection with a heartbeat.
//
// Created by driver.ts. All locks of the process share one connection, which opens with the first lock.
// A holder learns of a lost lock before the server gives it to another process. The process sends a
// query every second; without an answer for `lostMs`, it treats its locks as lost. The server waits
// longer, `silenceMs`, for the next query. This covers frozen and disconnected processes. It does not
// cover the end of the server or a failover, so code that requires exclusivity checks a number in the
// transaction.

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
  /** Time between two queries. */
  readonly askMs: number;
  /** Without an answer for this time, the locks are lost. */
  readonly lostMs: number;
  /** The server ends a session after this silence, which is much longer than `lostMs`. */
  readonly silenceMs: number;
}

export const defaultLockTimes: LockTimes = { askMs: 1000, lostMs: 5000, silenceMs: 8000 };

const msNs = 1_000_000n;
// The first setting alone is sufficient; the others end dead connections before the session ends.
const watch = `SELECT set_config('idle_session_timeout', $1, false),
  set_config('tcp_user_timeout', $1, false), set_config('tcp_keepalives_idle', '2', false),
  set_config('tcp_keepalives_interval', '2', false), set_config('tcp_keepalives_count', '3', false)`;
const ask = "SELECT current_setting('transaction_read_only')";
const take = "SELECT CAST(pg_try_advisory_lock($1) AS integer)";
const giveBack = "SELECT CAST(pg_advisory_unlock($1) AS integer)";

/** Numbers of the locks that sessions on this database hold. Needs no privilege. */
export const heldLocksQuery = `SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
  WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

interface LocksOptions extends PostgresAddress {
  readonly log: Logger;
  /** Unique name of this process. */
  readonly id: string;
  readonly lockTimes: LockTimes;
}

interface Holder {
  /** False: requested. */
  isHeld: boolean;
  readonly onLost: () => void;
}

const lost: Failure = { code: lostCode, message: "lost at once" };

/** The number of a lock, by its name. */
export function lockNumberOf(name: string): bigint {
  return createHash("sha256").update(name).digest().readBigInt64BE();
}

export class PostgresLocks {
  readonly #options: LocksOptions;
  #isClosed = false;
  #connection: PostgresConnection | null = null;
  #opening: Promise<PostgresConnection> | null = null;
  readonly #held = new Map<string, Holder>();
  /** Time at which the last answered query was sent, on the monotonic clock. */
  #aliveNs = 0n;
  #deadline: Timer | undefined;
  #asking: Timer | undefined;

  constructor(options: LocksOptions) {
    this.#options = options;
  }

  /** Throws PostgresError; ShredwayError "store_failed" without the package. */
  async tryLock(name: string, onLost: () => void): Promise<HeldLock | null> {
    // The server would grant it twice to the same session.
    if (this.#held.has(name)) return null;
    const holder: Holder = { isHeld: false, onLost };
    this.#held.set(name, holder);
    try {
      const connection = await this.#connected();
      const askedNs = this.#options.clock.monotonicNs();
      const [row = []] = await connection.query(take, [lockNumberOf(name)]);
      if (connection.isLost) throw new PostgresError(lost);
      this.#isAlive(connection, askedNs);
      holder.isHeld = integerAt(row, 0) === 1n;
      if (!holder.isHeld) return null;
      return { release: () => this.#release(name, holder, connection) };
    } finally {
      if (!holder.isHeld) this.#forget(name, holder);
    }
  }

  /** Releases all locks without calling `onLost`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#held.clear();
    await this.#opening?.catch(() => {});
    this.#asking?.cancel();
    this.#deadline?.cancel();
    await this.#connection?.close();
  }

  async #release(name: string, holder: Holder, connection: PostgresConnection): Promise<void> {
    // Lost or released; another process may hold it by now.
    if (this.#held.get(name) !== holder) return;
    this.#held.delete(name);
    const [result = lost] = await connection.run([{ sql: giveBack, params: [lockNumberOf(name)] }]);
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
      // The rest of a lost lock belongs to this process, which knows that it lost it.
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
    else if (result.rows[0]?.[0] !== "off") connection.destroy("the server became read-only");
    else this.#isAlive(connection, askedNs);
  }

  /** The answer shows that the server's time limit started no earlier than this query. */
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
        this.#options.log.error(`store: a listener for a lost lock failed: ${messageOf(error)}`);
      }
    }
  }
}
