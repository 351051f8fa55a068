// Guard: inside a simulation, the project's code that reads a real clock, waits in real time or draws a
// random number throws.
//
// Calls of other code, such as vitest's or a library's, reach the real function: they cannot change a
// run, because nothing of theirs is an input of it.

import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The first line of the stack outside of this file; undefined: none. */
function callerOf(stack: string): string | undefined {
  return stack
    .split("\n")
    .slice(1)
    .find((line) => !line.includes("/simulation/guard.ts"));
}

function isOurs(line: string | undefined): boolean {
  return (
    line !== undefined &&
    !line.includes("node_modules") &&
    (line.includes(`${root}src/`) || line.includes(`${root}test/simulation/`))
  );
}

interface Replaced {
  readonly owner: object;
  readonly name: string;
  readonly original: unknown;
}

function replaceWith(owner: object, name: string, label: string, seen: string[]): Replaced {
  const original: unknown = Reflect.get(owner, name);
  if (typeof original !== "function") throw new TypeError(`expected ${label} to be a function`);
  const replacement = function (this: unknown, ...values: unknown[]): unknown {
    const caller = callerOf(new Error("guard").stack ?? "");
    if (!isOurs(caller)) return Reflect.apply(original, this, values);
    const text = `${label} was called in a simulation${caller ?? ""}`;
    seen.push(text);
    throw new Error(text);
  };
  Reflect.set(owner, name, Object.assign(replacement, original));
  return { owner, name, original };
}

/**
 * Runs `work` under the guard. Rejects with the first forbidden call, even if its error was caught.
 */
export async function guarded<T>(work: () => Promise<T>): Promise<T> {
  const seen: string[] = [];
  const replaced = [
    replaceWith(Date, "now", "Date.now", seen),
    replaceWith(Math, "random", "Math.random", seen),
    replaceWith(performance, "now", "performance.now", seen),
    replaceWith(process.hrtime, "bigint", "process.hrtime.bigint", seen),
    replaceWith(process, "hrtime", "process.hrtime", seen),
    ...["setTimeout", "setInterval", "setImmediate"].map((name) =>
      replaceWith(globalThis, name, name, seen),
    ),
  ];
  try {
    const result = await work();
    if (seen[0] !== undefined) throw new Error(seen[0]);
    return result;
  } finally {
    for (const { owner, name, original } of replaced.toReversed())
      Reflect.set(owner, name, original);
  }
}
