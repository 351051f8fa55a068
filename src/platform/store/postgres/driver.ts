// PostgreSQL as an SqlDriver: commits, reads and notifications.
//
// Created by store.ts. One commit is in progress at a time; transactions requested meanwhile go into the
// next one, in order. If the server is unreachable, callers get an error after a time that bridges a
// restart. The driver continues when the server returns.

import type { Duplex } from "node:stream";
import type { Clock } from "../../../core/clock.ts";
import { ShredwayError } from "../../../core/errors.ts";
import type { Logger } from "../../../core/log.ts";
import type { WriteResult } from "../batch.ts";
import { BatchQueue, transactionEndOf } from "../batch-queue.ts";
import type {
  Durability,
  ForeignChangeListener,
  HeldLock,
  Row,
  SqlDriver,
  SqlValue,
  Statement,
  TransactionEnd,
} from "../driver.ts";
import { ForeignChangeListeners } from "../foreign-change-listeners.ts";
import type { StoreCounts } from "../store-counts.ts";
import { defaultTimes, type PostgresTimes } from "./connection.ts";
import { failureOf, isLost, PostgresError, storeFailure } from "./failure.ts";
import { defaultLockTimes, type LockTimes, PostgresLocks } from "./locks.ts";
import { PostgresNews } from "./news.ts";
import { PostgresReaders } from "./readers.ts";
import { PostgresServers } from "./servers.ts";
import { PostgresWriter, type Transaction, type WriterTimes } from "./writer.ts";

const defaultWriting: WriterTimes = { waitMs: 5000, outcomeMs: 30_000 };

export interface PostgresDriverOptions {
  /** postgres://user:password@host:port,host:port/database?sslmode=verify-full */
  readonly url: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Rejects a database without tables. */
  readonly mustExist?: boolean;
  readonly counts?: StoreCounts | undefined;
  readonly times?: Partial<PostgresTimes & WriterTimes & LockTimes>;
  /** Opens the connections to servers. Default: sockets of the kernel. */
  readonly openStream?: () => Duplex;
  /** See ServersOptions. */
  readonly interrupted?: AbortSignal | undefined;
  /** From 0 to below 1. Default: Math.random. */
  readonly random?: () => number;
}

interface Job extends Transaction {
  readonly askedNs: bigint;
  settle(result: WriteResult): void;
}

const schemaQuery = "SELECT CAST(to_regclass('schema_version') IS NOT NULL AS integer)";
const settingsQuery = "SELECT current_setting('fsync'), current_setting('full_page_writes')";

async function poll(servers: PostgresServers, mustExist: boolean): Promise<string[]> {
  const connection = await servers.open("shredway");
  try {
    if (mustExist && (await connection.query(schemaQuery))[0]?.[0] !== 1n) {
      const message = "expected a database with the tables of a service, got one without them";
      throw new PostgresError({ code: "", message });
    }
    const [[fsync, pages] = []] = await connection.query(settingsQuery);
    if (fsync === "on" && pages === "on") return [];
    return [
      `${servers.name}: expected fsync and full_page_writes on, got ` +
        `${String(fsync)} and ${String(pages)}: a loss of power may destroy all data`,
    ];
  } finally {
    await connection.close();
  }
}

/** The objects of one driver. */
interface PostgresDriverDependencies {
  readonly writer: PostgresWriter;
  readonly readers: PostgresReaders;
  readonly news: PostgresNews;
  readonly locks: PostgresLocks;
  readonly listeners: ForeignChangeListeners;
  readonly queue: BatchQueue<Job>;
  readonly warnings: readonly string[];
}

export class PostgresDriver implements SqlDriver {
  /** Problems for the operator. */
  readonly warnings: readonly string[];
  readonly #name: string;
  readonly #clock: Clock;
  readonly #waitNs: bigint;
  readonly #dependencies: PostgresDriverDependencies;
  readonly #queue: BatchQueue<Job>;
  #writing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** Throws ShredwayError "store_failed"; "config_invalid" for an invalid URL. */
  static async open(options: PostgresDriverOptions): Promise<PostgresDriver> {
    const { url, clock, log, mustExist = false, openStream, interrupted } = options;
    const { random = Math.random } = options;
    const times = { ...defaultTimes, ...defaultWriting, ...defaultLockTimes, ...options.times };
    const servers = new PostgresServers({ url, clock, times, openStream, interrupted });
    const address = { servers, clock, log };
    const listeners = new ForeignChangeListeners(log);
    const onNews: ForeignChangeListener = (news) => listeners.notify(news);
    let writer: PostgresWriter | undefined;
    let news: PostgresNews | undefined;
    try {
      const warnings = await poll(servers, mustExist);
      const onLateCommit = (): void => news?.notifyGap();
      writer = await PostgresWriter.open({ ...address, writing: times, onLateCommit, random });
      const { id } = writer;
      news = await PostgresNews.open({ ...address, own: id, onNews });
      const readers = new PostgresReaders({ ...address, waitMs: times.waitMs });
      const locks = new PostgresLocks({ ...address, id, lockTimes: times });
      const queue = new BatchQueue<Job>(servers.name, options.counts);
      const dependencies = { writer, readers, news, locks, listeners, queue, warnings };
      return new PostgresDriver(servers.name, clock, times.waitMs, dependencies);
    } catch (error) {
      await writer?.close();
      if (error instanceof ShredwayError) throw error;
      throw storeFailure(servers.name, failureOf(error));
    }
  }

  private constructor(
    name: string,
    clock: Clock,
    waitMs: number,
    dependencies: PostgresDriverDependencies,
  ) {
    this.#name = name;
    this.#clock = clock;
    this.#waitNs = BigInt(waitMs) * 1_000_000n;
    this.#dependencies = dependencies;
    this.#queue = dependencies.queue;
    this.warnings = dependencies.warnings;
  }

  async query(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]> {
    if (this.#closing) throw this.#queue.closed();
    try {
      return await this.#dependencies.readers.read(sql, params);
    } catch (error) {
      throw storeFailure(this.#name, failureOf(error));
    }
  }

  transaction(
    statements: readonly Statement[],
    durability: Durability,
    news?: readonly string[],
  ): Promise<TransactionEnd> {
    if (this.#closing) return Promise.reject(this.#queue.closed());
    return new Promise((resolve, reject) => {
      const settle = (result: WriteResult): void => {
        if ("code" in result) {
          reject(storeFailure(this.#name, result));
          return;
        }
        resolve(transactionEndOf(result));
      };
      const askedNs = this.#clock.monotonicNs();
      const isDurable = durability === "durable";
      this.#queue.add({ statements, isDurable, news, askedNs, settle });
      this.#writing ??= this.#write();
    });
  }

  async tryLock(name: string, onLost: () => void): Promise<HeldLock | null> {
    if (this.#closing) throw this.#queue.closed();
    try {
      let wasLost = false;
      const held = await this.#dependencies.locks.tryLock(name, () => {
        wasLost = true;
        onLost();
      });
      // Lost in the turn in which it was acquired: the caller has been notified and holds nothing.
      return wasLost ? null : held;
    } catch (error) {
      if (error instanceof ShredwayError) throw error;
      throw storeFailure(this.#name, failureOf(error));
    }
  }

  onForeignChange(listener: ForeignChangeListener): () => void {
    return this.#dependencies.listeners.add(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    const { writer, readers, news, locks } = this.#dependencies;
    await this.#writing;
    await Promise.all([news.close(), readers.close(), locks.close()]);
    await writer.close();
  }

  async #write(): Promise<void> {
    await Promise.resolve(); // includes calls of the same turn
    while (!this.#queue.isEmpty) {
      const jobs = this.#queue.nextBatch();
      const endNs = (jobs[0]?.askedNs ?? 0n) + this.#waitNs;
      const results = await this.#dependencies.writer.write(jobs, endNs);
      for (const [i, job] of jobs.entries()) {
        job.settle(
          results[i] ?? { code: "", message: "expected one result per transaction, got too few" },
        );
      }
      const lost = results.find((result) => "code" in result && isLost(result));
      if (lost) this.#refuseLate(lost);
    }
    this.#writing = undefined; // in the turn that found nothing: the next caller starts again
  }

  /** While the server is unreachable, the wait does not grow with the number of callers. */
  #refuseLate(failure: WriteResult): void {
    const askedBeforeNs = this.#clock.monotonicNs() - this.#waitNs;
    const late = this.#queue.takeUntil(({ askedNs }) => askedNs > askedBeforeNs);
    for (const job of late) job.settle(failure);
  }
}
