// SQLite as an SqlDriver: the thread of the file, and the calls that wait for it.
//
// Created by store.ts. One batch is in progress at a time; everything requested meanwhile goes into the
// next one. This keeps messages and commits few under any load. If the thread ends, waiting calls get an
// error and the process continues.

import type { Worker } from "node:worker_threads";
import type { Clock, Timer } from "../../../core/clock.ts";
import { messageOf, type ShredwayError } from "../../../core/errors.ts";
import type { Logger } from "../../../core/log.ts";
import {
  type BatchItem,
  type BatchResult,
  encodeBatch,
  type Failure,
  type ReadResult,
  TextNumbers,
  type WriteResult,
} from "../batch.ts";
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
import type { SqliteOptions } from "./database.ts";
import { isBusy, storeFailure } from "./failure.ts";
import { startThread } from "./thread.ts";
import type { WorkerAnswer, WorkerRequest } from "./worker.ts";

const foreignCheckMs = 100;
const busyMs = 5000;
const busyRetryMs = 20;

export interface SqliteDriverOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** See SqliteOptions. */
  readonly busyMs?: number;
  readonly pagesMax?: number;
  readonly lockPath?: string;
  readonly counts?: StoreCounts | undefined;
  /** Starts the file's thread; tests replace it to end the thread. */
  readonly start?: (options: SqliteOptions) => Worker;
}

interface Job extends BatchItem {
  readonly isDurable: boolean;
  settle(result: ReadResult | WriteResult): void;
  refuse(error: ShredwayError): void;
}

interface Opened {
  readonly worker: Worker;
  readonly foreignVersion: number;
}

export function startWorker(options: SqliteOptions): Worker {
  return startThread("worker", options);
}

/** Its own listeners; the thread's listeners to other events keep it alive. */
const events = ["message", "error", "exit"] as const;

/** Settles with the thread after the file is open, or with the error of the file. */
function open(worker: Worker): Promise<Opened | Failure> {
  return new Promise((resolve) => {
    const finish = (result: Opened | Failure): void => {
      for (const event of events) worker.removeAllListeners(event);
      // An error event without a listener would end the process.
      worker.on("error", () => {});
      resolve(result);
    };
    worker.on("error", (error: unknown) => finish({ code: "", message: messageOf(error) }));
    worker.on("exit", () =>
      finish({ code: "", message: "the thread ended before the file was open" }),
    );
    worker.on("message", (answer: WorkerAnswer) => {
      if (answer.kind === "opened") finish({ worker, foreignVersion: answer.foreignVersion });
      if (answer.kind === "refused") finish(answer.failure);
    });
  });
}

export class SqliteDriver implements SqlDriver {
  readonly #path: string;
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #texts = new TextNumbers();
  readonly #listeners: ForeignChangeListeners;
  readonly #locks = new Set<string>();
  #foreignVersion: number;
  #looking: Timer | undefined;
  readonly #queue: BatchQueue<Job>;
  /** The batch in progress; null: idle. */
  #underWay: readonly Job[] | null = null;
  #isFlushing = false;
  /** Set by close: no further calls are accepted. */
  #closing: Promise<void> | undefined;
  #whenIdle: (() => void) | undefined;
  /** Set when the thread has ended. */
  #ended: ShredwayError | undefined;
  readonly #exited: Promise<void>;

  /**
   * Opens or creates the file; its folder must exist. Waits a limited time for a lock of another
   * process. Throws ShredwayError "store_failed".
   */
  static async open(options: SqliteDriverOptions): Promise<SqliteDriver> {
    const { path, clock } = options;
    const wait = options.busyMs ?? busyMs;
    const { pagesMax, lockPath } = options;
    const forWorker = {
      path,
      busyMs: wait,
      ...(pagesMax !== undefined && { pagesMax }),
      ...(lockPath !== undefined && { lockPath }),
    };
    const endNs = clock.monotonicNs() + BigInt(wait) * 1_000_000n;
    for (;;) {
      const opened = await open((options.start ?? startWorker)(forWorker));
      if ("worker" in opened) return new SqliteDriver(options, opened);
      // While one process sets up or closes the file, another one gets an error without waiting.
      if (!isBusy(opened) || clock.monotonicNs() > endNs) throw storeFailure(path, opened);
      await clock.sleep(busyRetryMs);
    }
  }

  private constructor(
    { path, clock, log, counts }: SqliteDriverOptions,
    { worker, foreignVersion }: Opened,
  ) {
    this.#path = path;
    this.#queue = new BatchQueue(path, counts);
    this.#listeners = new ForeignChangeListeners(log);
    this.#clock = clock;
    this.#log = log;
    this.#worker = worker;
    this.#foreignVersion = foreignVersion;
    for (const event of events) worker.removeAllListeners(event);
    worker.on("message", (answer: WorkerAnswer) => this.#receive(answer));
    worker.on("error", (error: unknown) => this.#end(messageOf(error)));
    this.#exited = new Promise((resolve) => {
      worker.on("exit", (code) => {
        this.#end(`exit code ${code}`);
        resolve();
      });
    });
  }

  query(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      const settle = (result: ReadResult | WriteResult): void => {
        if ("code" in result) reject(storeFailure(this.#path, result));
        else resolve(result.filter((row) => typeof row !== "number"));
      };
      const statements = [{ sql, params }];
      this.#take({ isRead: true, statements, isDurable: false, settle, refuse: reject });
    });
  }

  transaction(statements: readonly Statement[], durability: Durability): Promise<TransactionEnd> {
    return new Promise((resolve, reject) => {
      const settle = (result: ReadResult | WriteResult): void => {
        if ("code" in result) {
          reject(storeFailure(this.#path, result));
          return;
        }
        resolve(transactionEndOf(result.filter((count) => typeof count === "number")));
      };
      const isDurable = durability === "durable";
      this.#take({ isRead: false, statements, isDurable, settle, refuse: reject });
    });
  }

  /** The file belongs to one service, so there are no changes by others. */
  tryLock(name: string): Promise<HeldLock | null> {
    if (this.#locks.has(name)) return Promise.resolve(null);
    this.#locks.add(name);
    let isHeld = true;
    const release = (): Promise<void> => {
      if (isHeld) this.#locks.delete(name);
      isHeld = false;
      return Promise.resolve();
    };
    return Promise.resolve({ release });
  }

  onForeignChange(listener: ForeignChangeListener): () => void {
    const end = this.#listeners.add(listener);
    this.#looking ??= this.#clock.every(foreignCheckMs, () => {
      if (this.#queue.isEmpty) this.#flush(); // an empty batch reads only the version
    });
    return () => {
      end();
      if (this.#listeners.isEmpty) this.#stopLooking();
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    this.#stopLooking();
    if (this.#underWay !== null || !this.#queue.isEmpty) {
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
    }
    if (!this.#ended) this.#post({ kind: "close" }, []);
    await this.#exited;
  }

  #stopLooking(): void {
    this.#looking?.cancel();
    this.#looking = undefined;
  }

  /** Throws ShredwayError "store_failed". */
  #take(job: Job): void {
    if (this.#ended) throw this.#ended;
    if (this.#closing) throw this.#queue.closed();
    this.#queue.add(job);
    if (this.#underWay !== null || this.#isFlushing) return;
    // Includes calls of the same turn.
    this.#isFlushing = true;
    queueMicrotask(() => {
      this.#isFlushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#underWay !== null || this.#ended) return;
    const jobs = this.#queue.nextBatch();
    const isDurable = jobs.some((job) => job.isDurable);
    const batch = encodeBatch(jobs, this.#texts, isDurable);
    this.#underWay = jobs;
    this.#post({ kind: "batch", batch }, [batch.shape.buffer, batch.bytes.buffer]);
  }

  #post(request: WorkerRequest, transfers: readonly ArrayBuffer[]): void {
    this.#worker.postMessage(request, transfers);
  }

  #receive(answer: WorkerAnswer): void {
    if (answer.kind === "result") this.#settle(answer.result);
    if (answer.kind === "closed" && answer.failure) {
      this.#log.warn(storeFailure(this.#path, answer.failure).message);
    }
  }

  #settle({ reads, writes, foreignVersion }: BatchResult): void {
    const jobs = this.#underWay ?? [];
    this.#underWay = null;
    // Sends the next batch first, then settles the callers, so that the thread does not wait for their
    // work.
    if (!this.#queue.isEmpty) this.#flush();
    let read = 0;
    let write = 0;
    for (const job of jobs) {
      const result = job.isRead ? reads[read++] : writes[write++];
      if (result) job.settle(result);
      else job.refuse(this.#queue.failure("expected one result per call, got too few"));
    }
    if (foreignVersion !== this.#foreignVersion) {
      this.#foreignVersion = foreignVersion;
      this.#listeners.notify(null);
    }
    if (this.#underWay === null && this.#queue.isEmpty) this.#whenIdle?.();
  }

  #end(cause: string): void {
    if (this.#ended) return;
    this.#ended = this.#closing
      ? this.#queue.closed()
      : this.#queue.failure(`the store's thread ended: ${cause}; restart the service`);
    if (!this.#closing) this.#log.error(this.#ended.message);
    this.#stopLooking();
    const lost = [...(this.#underWay ?? []), ...this.#queue.takeAll()];
    this.#underWay = null;
    for (const job of lost) job.refuse(this.#ended);
    this.#whenIdle?.();
  }
}
