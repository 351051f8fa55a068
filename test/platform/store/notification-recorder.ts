// A driver between a store and its database that records notifications, and sends them on demand.

import type { ForeignChangeListener, SqlDriver } from "../../../src/platform/store/driver.ts";

export interface NotificationRecorder {
  readonly driver: SqlDriver;
  /** Notifications of each transaction, in order; undefined: none were given. */
  readonly notifications: (readonly string[] | undefined)[];
  /** Notifies as if another process had sent it. */
  readonly notify: (news: readonly string[] | null) => void;
}

export function recordNotifications(driver: SqlDriver): NotificationRecorder {
  const notifications: (readonly string[] | undefined)[] = [];
  let listener: ForeignChangeListener = () => {};
  return {
    notifications,
    notify: (news) => listener(news),
    driver: {
      query: (...question) => driver.query(...question),
      transaction: (statements, durability, news) => {
        notifications.push(news);
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
