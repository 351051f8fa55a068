// Scenarios with quiet periods between the busy slots.

import { SeededRandom } from "../../src/core/seeded-random.ts";
import { leaderCount } from "./cluster.ts";
import { drawAction as drawGatewayAction, drawSend } from "./gateway/gateway-scenario.ts";
import { drawAction as drawPostgresAction, isOnPostgres } from "./postgres/postgres-scenario.ts";
import { drawAction as drawQuicAction, hasLeaderRoute, quicKinds } from "./quic/quic-scenario.ts";
import { pick } from "./random-at.ts";
import {
  customerCount,
  drawAction,
  drawBusyScenario,
  firstQuietNumber,
  firstSlotMs,
  inOrder,
  type ScenarioEvent,
  slotAt,
  type UntimedEvent,
} from "./scenario.ts";
import { diskFailures } from "./simulated-disk.ts";
import { slotMs } from "./simulated-time.ts";

/** The shortest and the longest quiet period: a minute and an hour. */
const slotsMin = 150;
const slotsMax = 9_000;
/** Quiet periods for each so many busy slots. */
const busySlots = 60;
const counts = [0, 1, 2, 2];
const eventsMax = 8;
/** Numbers for the slots and the events of one quiet period. */
const periodNumbers = 2 ** 16;

/** A quiet period, before the slot with this index of the busy scenario. */
interface QuietPeriod {
  readonly index: number;
  readonly slots: number;
  readonly hasBlocks: boolean;
}

/** The last one first; at most one before a slot. */
function drawPeriods(random: SeededRandom, slots: number): QuietPeriod[] {
  const count = Math.ceil(slots / busySlots) * pick(random, counts);
  const drawn = Array.from({ length: count }, () => ({
    index: random.below(slots),
    slots: Math.round(slotsMin * (slotsMax / slotsMin) ** (random.below(1_000) / 1_000)),
    hasBlocks: random.happens(0.6),
  }));
  const byIndex = new Map(drawn.map((period) => [period.index, period]));
  return [...byIndex.values()].toSorted((a, b) => b.index - a.index);
}

/** The event, later by this period. Slots of the cluster are others then only if it has made blocks. */
function laterBy(event: ScenarioEvent, { slots, hasBlocks }: QuietPeriod): ScenarioEvent {
  const later = { ...event, atMs: event.atMs + slots * slotMs };
  const blocks = hasBlocks ? BigInt(slots) : 0n;
  if (later.kind === "quiet") return { ...later, slot: later.slot + blocks };
  if (later.kind !== "slot") return later;
  const { plan } = later;
  return {
    ...later,
    plan: { ...plan, slot: plan.slot + blocks, parent: plan.parent + blocks },
  };
}

const kinds = [
  "send",
  "send",
  "send",
  "register",
  "register",
  "add destination",
  "remove destination",
  "reload",
  "crash",
  "set clock",
  "node changes",
  "partners change",
  "surroundings",
] as const;

/** An event of a quiet period. Nodes and partners may fail for most of it. */
function drawEvent(random: SeededRandom, seed: number, durationMs: number): UntimedEvent {
  const kind = pick(random, kinds);
  switch (kind) {
    case "send":
      return drawSend(random, random.below(customerCount));
    case "node changes":
    case "partners change": {
      const action = drawGatewayAction(random, kind, customerCount);
      const forMs = 1_000 + random.below(durationMs);
      return "forMs" in action ? { ...action, forMs } : action;
    }
    case "surroundings":
      if (isOnPostgres(seed)) return drawPostgresAction(random);
      if (hasLeaderRoute(seed)) return drawQuicAction(random, quicKinds, leaderCount);
      return {
        kind: "disk fails",
        failure: pick(random, diskFailures),
        forMs: random.below(30_000),
      };
    case "register":
    case "add destination":
    case "remove destination":
    case "reload":
    case "crash":
    case "set clock":
      return drawAction(random, kind);
  }
}

/** The events of a busy run, with quiet periods between them. */
function withQuietPeriods(seed: number, slots: number, busy: ScenarioEvent[]): ScenarioEvent[] {
  const random = new SeededRandom(BigInt(seed) + 0x901e_0000_0000n);
  let events = busy;
  let number = firstQuietNumber;
  // A period moves what follows it.
  for (const period of drawPeriods(random, slots)) {
    const { index, slots: duration, hasBlocks } = period;
    const atMs = firstSlotMs + index * slotMs;
    const durationMs = duration * slotMs;
    const moved = events.map((event) => (event.atMs < atMs ? event : laterBy(event, period)));
    const inside = Array.from({ length: random.below(eventsMax) }, (_, i) => ({
      ...drawEvent(random, seed, durationMs),
      number: number + duration + i,
      atMs: atMs + random.below(durationMs),
    }));
    const begin = { kind: "quiet", slot: slotAt(index), slots: duration, hasBlocks } as const;
    events = [...moved, { ...begin, number, atMs }, ...inside];
    number += periodNumbers;
  }
  return inOrder(events);
}

/** `slots`: the busy time of the run. A seed and a number of slots always give the same events. */
export function drawScenario(seed: number, slots: number): ScenarioEvent[] {
  return withQuietPeriods(seed, slots, drawBusyScenario(seed, slots));
}
