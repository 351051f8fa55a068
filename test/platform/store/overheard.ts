// A driver between a store and its database that records notifications, and sends them on demand.

import type { ForeignChangeListener, SqlDriver } from "../../../src/platform/store/driver.ts";

export interface Overheard {
  readonly driver: SqlDriver;
  /** Notifications of each transaction, in order; undefined: none were given. */
  readonly told: (readonly string[] | undefined)[];
  /** Notifies as if another process had sent it. */
  readonly tell: (news: readonly string[] | null) => void;
}

export function overheard(driver: SqlDriver): Overheard {
  const told: (readonly string[] | undefined)[] = [];
  let listener: ForeignChangeListener = () => {};
  return {
    told,
    tell: (news) => listener(news),
    driver: {
      query: (...question) => driver.query(...question),
      transaction: (statements, durability, news) => {
        told.push(news);
        return driver.transaction(statements, durability, news);
      },
      onForeignChange: (given) => {
        listener = given;
        return () => {};
      },
      tryLock: (...question) => driver.tryLock(...question),
      close: () => driver.close(),
    },
  };
}
