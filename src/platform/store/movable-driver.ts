// An SqlDriver whose database can be exchanged for another one while everything goes on.
//
// Put over the database's driver by store.ts: the stores never notice. While it is held, changes wait in
// their order, and reads see what is committed; then all of it goes on at the new database, or, after
// some seconds, at the old one as if nothing had been.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type {
  Durability,
  ForeignChangeListener,
  HeldLock,
  Row,
  SqlDriver,
  SqlValue,
  Statement,
  TransactionEnd,
} from "./driver.ts";
import type { StoreCounts } from "./store-counts.ts";

/** What may wait: as much as a database that does not answer may have. */
const waitingMax = 100_000;

interface Waiting {
  go(driver: SqlDriver): void;
  refuse(error: ShredwayError): void;
}

/** The time in which nothing changes. */
export interface Hold {
  /** Too long: those who waited were refused, and the old database goes on. */
  readonly isOver: boolean;
  /** Ends it: everything goes on at `driver`. False, and nothing happens, when it is over. */
  exchange(driver: SqlDriver): boolean;
  /** Ends it: everything goes on as before. Idempotent. */
  release(): void;
}

interface MovableDriverOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of every question; absent: nobody counts. */
  readonly counts?: StoreCounts | undefined;
}

export class MovableDriver implements SqlDriver {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #counts: StoreCounts | undefined;
  #driver: SqlDriver;
  /** Null: nothing is held. */
  #waiting: Waiting[] | null = null;
  /** Transactions that the driver has not ended yet. */
  #underWay = 0;
  #whenIdle: (() => void) | undefined;
  readonly #listeners = new Set<ForeignChangeListener>();
  #endListening: (() => void) | undefined;
  readonly #lost = new Set<() => void>();
  #closing: Promise<void> | undefined;

  constructor(driver: SqlDriver, { clock, log, counts }: MovableDriverOptions) {
    this.#counts = counts;
    this.#driver = driver;
    this.#clock = clock;
    this.#log = log;
  }

  query(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]> {
    const asked = this.#driver.query(sql, params);
    return this.#counts ? this.#counts.watch("query", asked) : asked;
  }

  transaction(
    statements: readonly Statement[],
    durability: Durability,
    news?: readonly string[],
  ): Promise<TransactionEnd> {
    const ended = this.#transaction(statements, durability, news);
    return this.#counts ? this.#counts.watch("transaction", ended) : ended;
  }

  #transaction(
    statements: readonly Statement[],
    durability: Durability,
    news?: readonly string[],
  ): Promise<TransactionEnd> {
    const waiting = this.#waiting;
    if (!waiting) return this.#run(this.#driver, statements, durability, news);
    if (waiting.length >= waitingMax) {
      return Promise.reject(refusal(`expected at most ${waitingMax} changes to wait, got more`));
    }
    return new Promise((resolve, reject) => {
      const go = (driver: SqlDriver): void => {
        this.#run(driver, statements, durability, news).then(resolve, reject);
      };
      waiting.push({ go, refuse: reject });
    });
  }

  onForeignChange(listener: ForeignChangeListener): () => void {
    // One of its own: the same function may be given twice.
    const own: ForeignChangeListener = (news) => listener(news);
    this.#listeners.add(own);
    this.#endListening ??= this.#listen();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size > 0) return;
      this.#endListening?.();
      this.#endListening = undefined;
    };
  }

  /** Lost, too, when the database is exchanged: the new one's locks are others. */
  async tryLock(name: string, onLost: () => void): Promise<HeldLock | null> {
    const driver = this.#driver;
    let isOver = false;
    const lose = (): void => {
      if (isOver) return;
      isOver = true;
      this.#lost.delete(lose);
      onLost();
    };
    const held = await driver.tryLock(name, lose);
    if (!held) return null;
    const release = (): Promise<void> => {
      isOver = true;
      this.#lost.delete(lose);
      return held.release();
    };
    if (driver !== this.#driver) {
      await release();
      return null; // whoever asks again asks the new one
    }
    // Lost in the turn in which it was given: whoever asked was told, and has nothing.
    if (isOver) return null;
    this.#lost.add(lose);
    return { release };
  }

  /**
   * From now on no change begins. Settles when those under way have ended. After `holdMs` it is over by
   * itself, and `onOver` is called first.
   */
  async hold(holdMs: number, onOver: () => void): Promise<Hold> {
    if (this.#waiting) throw new Error("expected nothing to be held, got a second hold");
    const waiting: Waiting[] = [];
    this.#waiting = waiting;
    const timer: Timer = this.#clock.after(holdMs, () => {
      onOver();
      end();
      const error = refusal(
        `changes were held back for ${holdMs} ms, for the database is moved: try again`,
      );
      for (const one of waiting.splice(0)) one.refuse(error);
      this.#whenIdle?.();
    });
    const end = (): void => {
      timer.cancel();
      if (this.#waiting === waiting) this.#waiting = null;
    };
    const isOver = (): boolean => this.#waiting !== waiting;
    if (this.#underWay > 0) {
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
      this.#whenIdle = undefined;
    }
    const goOn = (): void => {
      end();
      for (const one of waiting.splice(0)) one.go(this.#driver);
    };
    return {
      get isOver() {
        return isOver();
      },
      exchange: (driver) => {
        if (isOver()) return false;
        this.#exchange(driver);
        goOn();
        this.#tellLost();
        this.#tell(null);
        return true;
      },
      release: goOn,
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    this.#endListening?.();
    await this.#driver.close();
  }

  async #run(
    driver: SqlDriver,
    statements: readonly Statement[],
    durability: Durability,
    news: readonly string[] | undefined,
  ): Promise<TransactionEnd> {
    this.#underWay++;
    try {
      return await driver.transaction(statements, durability, news);
    } finally {
      if (--this.#underWay === 0) this.#whenIdle?.();
    }
  }

  #exchange(driver: SqlDriver): void {
    this.#endListening?.();
    this.#driver = driver;
    this.#endListening = this.#listeners.size > 0 ? this.#listen() : undefined;
  }

  #listen(): () => void {
    return this.#driver.onForeignChange((news) => this.#tell(news));
  }

  #tell(news: readonly string[] | null): void {
    for (const listener of this.#listeners) this.#call(() => listener(news));
  }

  #tellLost(): void {
    for (const lose of this.#lost) this.#call(lose);
  }

  #call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#log.error(`after the database was exchanged or changed: ${messageOf(error)}`);
    }
  }
}

function refusal(message: string): ShredwayError {
  return new ShredwayError("store_failed", `the store: ${message}`);
}
