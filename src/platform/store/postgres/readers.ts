// Reads from PostgreSQL on separate connections, so that no read waits for a commit.
//
// Created by driver.ts. A read whose connection is lost is repeated on another one, which is safe.

import type { Row, SqlValue } from "../driver.ts";
import {
  firstPauseMs,
  isFailure,
  longerPauseMs,
  type PostgresConnection,
  type Result,
} from "./connection.ts";
import { failureOf, fullCode, isLost, isOutdated, lostCode, PostgresError } from "./failure.ts";
import type { PostgresAddress } from "./servers.ts";

/**
 * Six in total with the connections for writes, notifications and locks; servers allow 100 by default.
 */
const connectionsMax = 3;
/** Pause after a rejection while another connection exists. */
const addConnectionRetryMs = 1000;
const msNs = 1_000_000n;

interface ReadersOptions extends PostgresAddress {
  /** Maximum wait for a connection; then waiting reads are rejected. */
  readonly waitMs: number;
}

export class PostgresReaders {
  readonly #options: ReadersOptions;
  #connections: PostgresConnection[] = [];
  #opening: Promise<PostgresConnection> | null = null;
  /** Time on the monotonic clock from which more connections are opened. */
  #moreFromNs = 0n;
  #underWay = new Set<Promise<unknown>>();

  constructor(options: ReadersOptions) {
    this.#options = options;
  }

  /** Throws PostgresError. */
  read(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]> {
    const reading = this.#read(sql, params);
    this.#underWay.add(reading);
    const forget = (): void => void this.#underWay.delete(reading);
    reading.then(forget, forget);
    return reading;
  }

  /** Earlier calls end first. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    await this.#opening?.catch(() => {});
    for (const connection of this.#connections) await connection.close();
  }

  async #read(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]> {
    const { clock, waitMs } = this.#options;
    const endNs = clock.monotonicNs() + BigInt(waitMs) * msNs;
    for (let pauseMs = firstPauseMs; ; pauseMs = longerPauseMs(pauseMs)) {
      const result = await this.#try(sql, params);
      if (!isFailure(result)) return result.rows;
      const mayHelp = isLost(result) || isOutdated(result) || result.code.startsWith(fullCode);
      if (!mayHelp || clock.monotonicNs() + BigInt(pauseMs) * msNs > endNs) {
        throw new PostgresError(result);
      }
      await clock.sleep(pauseMs);
    }
  }

  async #try(sql: string, params: readonly SqlValue[]): Promise<Result> {
    try {
      const connection = await this.#connection();
      const [result] = await connection.run([{ sql, params }]);
      return result ?? { code: lostCode, message: "no answer" };
    } catch (error) {
      return failureOf(error);
    }
  }

  /** The least busy connection; a new one if all are busy. */
  async #connection(): Promise<PostgresConnection> {
    this.#connections = this.#connections.filter((one) => !one.isLost);
    const [idlest] = this.#connections.toSorted((a, b) => a.underWay - b.underWay);
    if (idlest && (idlest.underWay === 0 || this.#connections.length >= connectionsMax)) {
      return idlest;
    }
    if (idlest && this.#options.clock.monotonicNs() < this.#moreFromNs) return idlest;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null;
    });
    if (!idlest) return this.#opening;
    this.#opening.catch(() => {}); // one more would be better, but this one works
    return idlest;
  }

  async #open(): Promise<PostgresConnection> {
    const { servers, clock } = this.#options;
    try {
      const connection = await servers.open("shredway reads");
      this.#connections.push(connection);
      return connection;
    } catch (error) {
      this.#moreFromNs = clock.monotonicNs() + BigInt(addConnectionRetryMs) * msNs;
      throw error;
    }
  }
}
