// A generator for one moment of a run: what it draws does not depend on how often another one was called.

import { SeededRandom } from "../../src/core/seeded-random.ts";

/** `salt`: from 0 to 63, so that several generators of one moment differ. */
export function randomAt(seed: number, nowNs: number, salt: number): SeededRandom {
  return new SeededRandom(
    (BigInt(seed) << 40n) ^ BigInt(Math.round(nowNs)) ^ (BigInt(salt) << 58n),
  );
}

export function pick<T>(random: SeededRandom, items: readonly T[]): T {
  const item = items[random.below(items.length)];
  if (item === undefined) throw new RangeError("expected a list that is not empty");
  return item;
}
