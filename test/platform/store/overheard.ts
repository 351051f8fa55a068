// A driver between a store and its database that notes the news it is given, and tells news by hand.

import type { ForeignChangeListener, SqlDriver } from "../../../src/platform/store/driver.ts";

export interface Overheard {
  readonly driver: SqlDriver;
  /** Of each transaction, in order; undefined: none were given. */
  readonly told: (readonly string[] | undefined)[];
  /** As if another process had told it. */
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
