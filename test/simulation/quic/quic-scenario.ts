// Events of runs with a route over QUIC to the leaders.

import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { GatewayAction } from "../gateway/gateway-scenario.ts";
import { pick } from "../random-at.ts";
import { type ProcessFailure, processFailures } from "./quic-child.ts";
import { type LeaderMood, leaderMoods } from "./simulated-leader.ts";

export type QuicAction =
  | {
      readonly kind: "leaders change";
      /** Places in the schedule. */
      readonly leaders: readonly number[];
      readonly mood: LeaderMood;
      readonly forMs: number;
    }
  | { readonly kind: "packets are lost"; readonly share: number; readonly forMs: number }
  | { readonly kind: "quic process fails"; readonly failure: ProcessFailure };

/** No seed on PostgreSQL ends with one of these digits. */
const lastDigits = [2, 5];

/** Whether the gateway of a seed has a route to the leaders. */
export function hasLeaderRoute(seed: number): boolean {
  return lastDigits.includes(seed % 10);
}

const shares = [0.02, 0.06, 0.15];
const lossShares = [0.05, 0.3, 0.7, 1];
export const quicKinds = ["leaders change", "packets are lost", "quic process fails"] as const;
/** Each seed has some of the kinds. */
const kindsOfSeeds: readonly (readonly QuicAction["kind"][])[] = [
  ["leaders change"],
  ["packets are lost"],
  ["quic process fails"],
  ["leaders change", "leaders change", "packets are lost", "quic process fails"],
];

export function drawAction(
  random: SeededRandom,
  kinds: readonly QuicAction["kind"][],
  leaderCount: number,
): QuicAction {
  const kind = pick(random, kinds);
  const forMs = 200 + random.below(6_000);
  switch (kind) {
    case "leaders change": {
      const all = Array.from({ length: leaderCount }, (_, i) => i);
      const leaders = random.happens(0.7) ? [pick(random, all)] : all;
      return { kind, leaders, mood: pick(random, leaderMoods), forMs };
    }
    case "packets are lost":
      return { kind, share: pick(random, lossShares), forMs };
    case "quic process fails":
      return { kind, failure: pick(random, processFailures) };
  }
}

interface RunShape {
  readonly slots: number;
  readonly slotMs: number;
  readonly leaderCount: number;
}

type TimedAction = { readonly atMs: number; readonly action: QuicAction | PartnersChange };
type PartnersChange = Extract<GatewayAction, { kind: "partners change" }>;

/** None for a seed without such a route. In half of the others, transactions reach the leaders in no other way at first. */
export function drawQuicActions(
  seed: number,
  { slots, slotMs, leaderCount }: RunShape,
): TimedAction[] {
  if (!hasLeaderRoute(seed)) return [];
  const random = new SeededRandom(BigInt(seed) + 0x91c0_0000_0000n);
  const share = pick(random, shares);
  const kinds = pick(random, kindsOfSeeds);
  const deadMs = 20_000 + random.below(40_000);
  const dead: TimedAction[] = random.happens(0.5)
    ? [
        {
          atMs: 0,
          action: {
            kind: "partners change",
            partners: ["staked", "costly", "builder"],
            mood: "dead",
            forMs: deadMs,
          },
        },
      ]
    : [];
  const drawn = Array.from({ length: slots }, (_, i) => i * slotMs).flatMap(
    (beginMs): TimedAction[] => {
      if (!random.happens(share)) return [];
      const atMs = beginMs + random.below(slotMs);
      return [{ atMs, action: drawAction(random, kinds, leaderCount) }];
    },
  );
  return [...dead, ...drawn];
}
