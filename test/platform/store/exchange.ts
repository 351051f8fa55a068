// Nodes that share one database, as their drivers see each other: news at once, locks, a node's end.
//
// Stands in for LISTEN and advisory locks where a test is about what follows from them: what is told, to
// whom, is at hand, and a node can be cut off from the news of the others.

import { ShredwayError } from "../../../src/core/errors.ts";
import type {
  ForeignChangeListener,
  HeldLock,
  SqlDriver,
  TransactionEnd,
} from "../../../src/platform/store/driver.ts";

type News = readonly string[] | null;

export class Exchange {
  /** All that was told so far, in order. */
  readonly told: News[] = [];
  readonly #nodes = new Set<SharingDriver>();
  /** Name of a lock -> who holds it. */
  readonly locks = new Map<string, object>();

  /** The same database as one node among others sees it. */
  join(driver: SqlDriver): SharingDriver {
    const node = new SharingDriver(driver, this);
    this.#nodes.add(node);
    return node;
  }

  tell(teller: SharingDriver, news: News): void {
    this.told.push(news);
    for (const node of this.#nodes) if (node !== teller) node.hear(news);
  }

  leave(node: SharingDriver): void {
    this.#nodes.delete(node);
    for (const [name, holder] of this.locks) if (holder === node) this.locks.delete(name);
  }
}

export class SharingDriver implements SqlDriver {
  readonly #driver: SqlDriver;
  readonly #exchange: Exchange;
  readonly #listeners = new Set<ForeignChangeListener>();
  /** Texts of all queries so far. */
  readonly queries: string[] = [];
  /** Nothing answers. */
  isAway = false;
  /** Of the next transaction, which is kept: nobody knows what became of it. */
  losesAnswer = false;

  constructor(driver: SqlDriver, exchange: Exchange) {
    this.#driver = driver;
    this.#exchange = exchange;
  }

  async query(...[sql, params]: Parameters<SqlDriver["query"]>) {
    this.queries.push(sql);
    this.#check();
    return this.#driver.query(sql, params);
  }

  async transaction(
    ...[statements, durability, news]: Parameters<SqlDriver["transaction"]>
  ): Promise<TransactionEnd> {
    this.#check();
    const end = await this.#driver.transaction(statements, durability, news);
    if (this.losesAnswer) {
      this.losesAnswer = false;
      throw new ShredwayError("store_failed", "nobody knows");
    }
    const isSilent = durability !== "durable" && news === undefined;
    if (end.isCommitted && !isSilent) this.#exchange.tell(this, news ?? null);
    return end;
  }

  onForeignChange(listener: ForeignChangeListener): () => void {
    const own: ForeignChangeListener = (news) => listener(news);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  hear(news: News): void {
    for (const listener of this.#listeners) listener(news);
  }

  async tryLock(name: string): Promise<HeldLock | null> {
    const { locks } = this.#exchange;
    this.#check();
    if (locks.has(name)) return null;
    locks.set(name, this);
    return {
      release: async () => {
        if (locks.get(name) === this) locks.delete(name);
      },
    };
  }

  /** As a kill does it: the locks are free, and it hears nothing more. */
  close(): Promise<void> {
    this.#exchange.leave(this);
    return this.#driver.close();
  }

  #check(): void {
    if (this.isAway) throw new Error("the database is away");
  }
}
