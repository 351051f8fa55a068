// Closes a test's resources after the test, in reverse order.

import { afterEach } from "vitest";

interface Closable {
  close(): void | Promise<void>;
}

const opened: Closable[] = [];

afterEach(async () => {
  for (const part of opened.splice(0).toReversed()) await part.close();
});

/** Returns `part` and closes it after the test. Call this only inside a test. */
export function closing<T extends Closable>(part: T): T {
  opened.push(part);
  return part;
}
