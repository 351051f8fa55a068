// Listeners for changes of other processes: each is notified, even if another one throws.

import { expect, it } from "vitest";
import { createLogger } from "../../../src/core/log.ts";
import { ForeignChangeListeners } from "../../../src/platform/store/foreign-change-listeners.ts";

it("notifies every listener until it is removed, even after one that throws", () => {
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const listeners = new ForeignChangeListeners(log);
  const notifications: string[] = [];
  const listener = (news: readonly string[] | null): void => void notifications.push(String(news));
  expect(listeners.isEmpty).toBe(true);
  const endThrowing = listeners.add(() => {
    throw new Error("a listener that fails");
  });
  const ends = [listeners.add(listener), listeners.add(listener)];
  listeners.notify(["keys"]);
  expect(notifications).toEqual(["keys", "keys"]);
  expect(lines.join()).toContain("a listener that fails");
  ends[0]?.();
  listeners.notify(null);
  expect(notifications).toEqual(["keys", "keys", "null"]);
  ends[1]?.();
  endThrowing();
  expect(listeners.isEmpty).toBe(true);
});
