// Nodes that share one database, as seen by their drivers: immediate notifications, locks, the end of a
// node.
//
// It replaces LISTEN and advisory locks in tests of their effects. A test sees all notifications and
// their receivers, and can disconnect a node.

import { ShredwayError } from "../../../src/core/errors.ts";
import type {
  ForeignChangeListener,
  HeldLock,
  SqlDriver,
  TransactionEnd,
} from "../../../src/platform/store/driver.ts";

type News = readonly string[] | null;

export class NotificationRelay {
  /** All notifications so far, in order. */
  readonly notifications: News[] = [];
  readonly #nodes = new Set<SharingDriver>();
  /** Name of a lock -> its holder. */
  readonly locks = new Map<string, object>();

  /** The same database as seen by one node. */
  join(driver: SqlDriver): SharingDriver {
    const node = new SharingDriver(driver, this);
    this.#nodes.add(node);
    return node;
  }

  notify(teller: SharingDriver, news: News): void {
    this.notifications.push(news);
    for (const node of this.#nodes) if (node !== teller) node.receive(news);
  }

  leave(node: SharingDriver): void {
    this.#nodes.delete(node);
    for (const [name, holder] of this.locks) if (holder === node) this.locks.delete(name);
  }
}

export class SharingDriver implements SqlDriver {
  readonly #driver: SqlDriver;
  readonly #notificationRelay: NotificationRelay;
  readonly #listeners = new Set<ForeignChangeListener>();
  /** Texts of all queries so far. */
  readonly queries: string[] = [];
  /** No call gets an answer. */
  isAway = false;
  /** The next transaction is stored, but its result is reported as unknown. */
  losesAnswer = false;

  constructor(driver: SqlDriver, notificationRelay: NotificationRelay) {
    this.#driver = driver;
    this.#notificationRelay = notificationRelay;
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
    const isSilent = news === undefined ? durability !== "durable" : news.length === 0;
    if (end.isCommitted && !isSilent) this.#notificationRelay.notify(this, news ?? null);
    return end;
  }

  onForeignChange(listener: ForeignChangeListener): () => void {
    const own: ForeignChangeListener = (news) => listener(news);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  receive(news: News): void {
    for (const listener of this.#listeners) listener(news);
  }

  async tryLock(name: string): Promise<HeldLock | null> {
    const { locks } = this.#notificationRelay;
    this.#check();
    if (locks.has(name)) return null;
    locks.set(name, this);
    return {
      release: async () => {
        if (locks.get(name) === this) locks.delete(name);
      },
    };
  }

  /** Like a kill: the locks are free, and the node receives nothing more. */
  close(): Promise<void> {
    this.#notificationRelay.leave(this);
    return this.#driver.close();
  }

  #check(): void {
    if (this.isAway) throw new Error("the database is away");
  }
}
