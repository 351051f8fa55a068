// Closes what a test opened, after the test, in the opposite order.

import { afterEach } from "vitest";

interface Closable {
  close(): void | Promise<void>;
}

const opened: Closable[] = [];

afterEach(async () => {
  for (const part of opened.splice(0).toReversed()) await part.close();
});

/** Hands `part` back; it is closed when the test is over. Call only inside a test. */
export function closing<T extends Closable>(part: T): T {
  opened.push(part);
  return part;
}
