// Events of runs with a route over QUIC to the leaders.

import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { pick } from "../random-at.ts";
import { type ProcessFailure, processFailures } from "./quic-child.ts";
import { type LeaderMood, leaderMoods } from "./simulated-leader.ts";

export type QuicAction =
  | {
      readonly kind: "leaders change";
      /** By their places in the schedule. */
      readonly leaders: readonly number[];
      readonly mood: LeaderMood;
      readonly forMs: number;
    }
  | { readonly kind: "packets are lost"; readonly share: number; readonly forMs: number }
  | { readonly kind: "quic process fails"; readonly failure: ProcessFailure };

/** None of them is a digit of a store on PostgreSQL. */
const lastDigits = [2, 5];

/** Whether the gateway of a seed has a route to the leaders. */
export function hasLeaderRoute(seed: number): boolean {
  return lastDigits.includes(seed % 10);
}

const shares = [0.02, 0.06, 0.15];
const lossShares = [0.05, 0.3, 0.7, 1];

function drawAction(random: SeededRandom, leaderCount: number): QuicAction {
  const kind = random.below(10);
  const all = Array.from({ length: leaderCount }, (_, i) => i);
  const leaders = random.happens(0.7) ? [pick(random, all)] : all;
  const mood = pick(random, leaderMoods);
  const forMs = 200 + random.below(6_000);
  const share = pick(random, lossShares);
  const failure = pick(random, processFailures);
  if (kind < 6) return { kind: "leaders change", leaders, mood, forMs };
  if (kind < 8) return { kind: "packets are lost", share, forMs };
  return { kind: "quic process fails", failure };
}

/** None for a seed without such a route. */
export function drawQuicActions(
  seed: number,
  {
    slots,
    slotMs,
    leaderCount,
  }: { readonly slots: number; readonly slotMs: number; readonly leaderCount: number },
): { atMs: number; action: QuicAction }[] {
  if (!hasLeaderRoute(seed)) return [];
  const random = new SeededRandom(BigInt(seed) + 0x91c0_0000_0000n);
  const share = pick(random, shares);
  return Array.from({ length: slots }, (_, i) => i * slotMs).flatMap((beginMs) => {
    if (!random.happens(share)) return [];
    return [{ atMs: beginMs + random.below(slotMs), action: drawAction(random, leaderCount) }];
  });
}
