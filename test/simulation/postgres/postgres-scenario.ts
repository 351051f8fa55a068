// Events of runs whose store is PostgreSQL.

import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { pick } from "../random-at.ts";

/** The moment of a break: at once, or at the next commit that the writer sends. */
const breakPoints = ["now", "commit is sent", "commit is under way", "commit is done"] as const;
export type BreakPoint = (typeof breakPoints)[number];

export type PostgresAction =
  | {
      readonly kind: "connection breaks";
      readonly point: BreakPoint;
      /** The server learns of it so late. */
      readonly noticedMs: number;
    }
  | { readonly kind: "postgres restarts"; readonly isOrderly: boolean; readonly downMs: number }
  | { readonly kind: "postgres stalls"; readonly forMs: number };

/** No seed that found a defect on SQLite ends with one of these digits. */
const lastDigits = [7, 8];

/** Whether the run of a seed uses PostgreSQL. */
export function isOnPostgres(seed: number): boolean {
  return lastDigits.includes(seed % 10);
}

const shares = [0.02, 0.06, 0.15];

export function drawAction(random: SeededRandom): PostgresAction {
  const kind = random.below(10);
  const forMs = random.below(2_500);
  const noticedMs = random.happens(0.5) ? 0 : random.below(3_000);
  const point = pick(random, breakPoints);
  const isOrderly = random.happens(0.5);
  if (kind < 6) return { kind: "connection breaks", point, noticedMs };
  if (kind < 8) return { kind: "postgres restarts", isOrderly, downMs: 50 + forMs };
  return { kind: "postgres stalls", forMs: 50 + forMs };
}

/** None for a seed whose store is SQLite. */
export function drawPostgresActions(
  seed: number,
  { slots, slotMs }: { readonly slots: number; readonly slotMs: number },
): { atMs: number; action: PostgresAction }[] {
  if (!isOnPostgres(seed)) return [];
  const random = new SeededRandom(BigInt(seed) + 0x9057_0000_0000n);
  const share = shares[random.below(shares.length)] ?? 0;
  return Array.from({ length: slots }, (_, i) => i * slotMs).flatMap((beginMs) => {
    if (!random.happens(share)) return [];
    return [{ atMs: beginMs + random.below(slotMs), action: drawAction(random) }];
  });
}
