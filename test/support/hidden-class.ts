// The hidden classes of objects. Code that reads objects with always another one is several times slower,
// and the classes themselves are garbage that only a full collection removes.

import { setFlagsFromString } from "node:v8";
import { runInThisContext } from "node:vm";

setFlagsFromString("--allow-natives-syntax");
const hasSame: unknown = runInThisContext("(one, other) => %HaveSameMap(one, other)");

/** Number of objects whose hidden class is not that of the object before. */
export function classChanges(objects: readonly object[]): number {
  if (typeof hasSame !== "function") throw new Error("expected a function of V8, got none");
  return objects.slice(1).filter((object, i) => hasSame(objects[i], object) !== true).length;
}
