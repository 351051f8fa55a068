// Scenarios: the list of events of a run, drawn from its seed.
//
// Each event carries everything that it needs, with a number of its own that seeds its details. A run
// with some events removed therefore does the same in the others, which makes shrinking possible.

import { SeededRandom } from "../../src/core/seeded-random.ts";
import { firstSlot, leaderCount, type SlotPlan } from "./cluster.ts";
import {
  drawBursts,
  drawGatewayActions,
  drawGatewayReloads,
  drawNonceActions,
  drawWatchedNonces,
  type GatewayAction,
} from "./gateway/gateway-scenario.ts";
import { drawPostgresActions, type PostgresAction } from "./postgres/postgres-scenario.ts";
import { drawQuicActions, type QuicAction } from "./quic/quic-scenario.ts";
import type { QuietAction } from "./quiet-periods.ts";
import { pick } from "./random-at.ts";
import { type DiskFailure, diskFailures } from "./simulated-disk.ts";
import { slotMs } from "./simulated-time.ts";

/** Arrivals are collected for this time, as a kernel collects them while a worker is busy. */
export const quantumMs = 20;

/** Sources by the index of their tier, narrowest first; the last one is for own use. */
export const sourceNames = ["fast", "middle", "slow", "own"] as const;
export type SourceName = (typeof sourceNames)[number];
export const tierNames: readonly string[] = ["tier-1", "tier-2", "tier-3"];

/** How a forger changes a shred. */
export const forgeries = [
  "payload",
  "signature",
  "other key",
  "other slot",
  "truncated",
  "noise",
] as const;
export type Forgery = (typeof forgeries)[number];

export interface FixedDestination {
  readonly address: string;
  readonly tier: string;
}

type Action =
  | { readonly kind: "slot"; readonly plan: SlotPlan }
  | {
      readonly kind: "forge";
      readonly source: SourceName;
      readonly forgery: Forgery;
      readonly count: number;
    }
  | { readonly kind: "replay"; readonly source: SourceName; readonly slotsBack: number }
  | {
      readonly kind: "capture";
      readonly source: SourceName;
      /** Slots that are so far behind the newest one. */
      readonly slotsBack: readonly number[];
      readonly forMs: number;
    }
  | { readonly kind: "outage"; readonly source: SourceName; readonly forMs: number }
  | {
      readonly kind: "reload";
      readonly fixed: readonly FixedDestination[];
      /** Tiers of the first three sources. */
      readonly tiers: readonly string[];
    }
  | {
      readonly kind: "fail destination";
      readonly address: string;
      readonly errno: number;
      readonly forMs: number;
    }
  | { readonly kind: "set clock"; readonly byMs: number }
  | { readonly kind: "crash"; readonly downMs: number }
  | { readonly kind: "cluster stops"; readonly forMs: number }
  | { readonly kind: "disk fails"; readonly failure: DiskFailure; readonly forMs: number }
  | { readonly kind: "slow disk"; readonly delayMs: number; readonly forMs: number }
  | { readonly kind: "register"; readonly customer: number; readonly lamports: number }
  | {
      readonly kind: "add destination";
      readonly customer: number;
      readonly address: string;
      /** Number of the challenge that it answers; 0: it answers each with a wrong token. */
      readonly answers: number;
    }
  | { readonly kind: "remove destination"; readonly customer: number; readonly choice: number }
  | {
      /** No program listens at the destination, or a third party forges ICMP errors about it. */
      readonly kind: "close receiver" | "forge unreachable";
      readonly address: string;
      readonly forMs: number;
    };

/** An event without its number and its time. */
export type UntimedEvent = Action | GatewayAction | PostgresAction | QuicAction | QuietAction;

export type ScenarioEvent = UntimedEvent & {
  /** Unique; also the seed of its details. */
  readonly number: number;
  readonly atMs: number;
};

export const customerCount = 3;
export const accounts = Array.from({ length: customerCount }, (_, i) => ({
  id: `a_${i}`,
  name: `customer-${i}`,
}));
/** Numbers of the gateway's events begin here, so that they do not change those of the others. */
const firstGatewayNumber = 1 << 20;
const firstCaptureNumber = 1 << 21;
const firstDiskNumber = 1 << 22;
const firstNonceNumber = 1 << 23;
const firstBurstNumber = 1 << 24;
const firstStopNumber = 1 << 25;
const firstGatewayReloadNumber = 1 << 26;
const firstReceiverNumber = 1 << 27;
const firstPostgresNumber = 1 << 28;
const firstSilenceNumber = 1 << 29;
const firstWatchNumber = 1 << 30;
const firstQuicNumber = 2 ** 31;
export const firstQuietNumber = 2 ** 32;
/** When the first slot begins. */
export const firstSlotMs = 100;
const addressesPerCustomer = 3;
const fixedAddresses = ["9.9.0.1:9000", "9.9.0.2:9000", "9.9.0.3:9000"];
const amounts = [3, 10, 15, 40, 60, 100];
/** EAGAIN, EHOSTUNREACH, EPERM, EMSGSIZE, ECONNREFUSED. */
const errnos = [11, 113, 1, 90, 111];

/** Kinds that are drawn for each slot. */
type DrawnKind = Exclude<
  Action["kind"],
  "slot" | "capture" | "disk fails" | "cluster stops" | "close receiver" | "forge unreachable"
>;

/** The probability of each kind of event in a slot. */
const rates: readonly (readonly [DrawnKind, number])[] = [
  ["forge", 0.2],
  ["replay", 0.04],
  ["outage", 0.03],
  ["reload", 0.05],
  ["fail destination", 0.03],
  ["set clock", 0.01],
  ["slow disk", 0.03],
  ["register", 0.12],
  ["add destination", 0.06],
  ["remove destination", 0.025],
  ["crash", 0.012], // after the calls
];

/** The slot with this index in a run without quiet periods. */
export function slotAt(index: number): bigint {
  return firstSlot + BigInt(index) + 10n;
}

export function fixedAtStart(): readonly FixedDestination[] {
  return fixedAddresses.map((address, i) => ({ address, tier: tierNames[i] ?? "tier-1" }));
}

function drawFixed(random: SeededRandom): FixedDestination[] {
  return fixedAddresses
    .filter(() => random.happens(0.7))
    .map((address) => ({ address, tier: pick(random, tierNames) }));
}

export function drawAction(
  random: SeededRandom,
  kind: DrawnKind,
): Extract<Action, { kind: DrawnKind }> {
  const source = pick(random, sourceNames);
  const customer = random.below(customerCount);
  switch (kind) {
    case "forge":
      return { kind, source, forgery: pick(random, forgeries), count: 1 + random.below(12) };
    case "replay":
      return { kind, source, slotsBack: 1 + random.below(60) };
    case "outage":
      return { kind, source, forMs: 200 + random.below(3000) };
    case "reload":
      return { kind, fixed: drawFixed(random), tiers: random.shuffled(tierNames) };
    case "fail destination":
      return {
        kind,
        address: pick(random, fixedAddresses),
        errno: pick(random, errnos),
        forMs: 100 + random.below(2000),
      };
    case "set clock":
      return { kind, byMs: random.happens(0.7) ? random.below(8000) : -random.below(2000) };
    case "crash":
      return { kind, downMs: 50 + random.below(1500) };
    case "slow disk":
      return { kind, delayMs: 20 + random.below(400), forMs: 500 + random.below(2500) };
    case "register":
      return { kind, customer, lamports: pick(random, amounts) };
    case "add destination": {
      const number = random.below(addressesPerCustomer);
      const address = `5.6.${customer}.${number}:9001`;
      return { kind, customer, address, answers: random.below(4) };
    }
    case "remove destination":
      return { kind, customer, choice: random.below(addressesPerCustomer) };
  }
}

function drawPlan(random: SeededRandom, slot: bigint, parents: readonly bigint[]): SlotPlan {
  const sets = 1 + random.below(3);
  const isFork = random.happens(0.08);
  const parent = (isFork ? parents.at(-2) : parents.at(-1)) ?? slot - 1n;
  const restartAfter = sets > 1 && random.happens(0.1) ? 1 : null;
  return { slot, parent, sets, restartAfter, versions: random.happens(0.05) ? 2 : 1 };
}

/** In some seeds, many blocks begin again. */
const restartShares = [0, 0, 0.4];

/** From a generator of its own, so that all other events of a seed stay as they are. */
function restartDrawer(seed: number): (plan: SlotPlan) => SlotPlan {
  const random = new SeededRandom(BigInt(seed) + 0x4e57_0000_0000n);
  const share = pick(random, restartShares);
  return (plan) => {
    if (!random.happens(share)) return plan;
    const sets = 3 + random.below(2);
    return { ...plan, sets, restartAfter: 1 + random.below(sets - 2) };
  };
}

/** Each seed has many of some kinds and few of others, because rare combinations need both. */
const emphases = [0.2, 1, 1, 3];
/** Crashes often follow a customer's call so closely that it is in progress. */
const crashAfterMaxMs = 30;

function isCall({ kind }: ScenarioEvent): boolean {
  return kind === "register" || kind === "add destination" || kind === "remove destination";
}

/** Old shreds whose slots share their place in the relay's memory, or do not. */
const farBack: readonly (readonly number[])[] = [[450], [700], [600, 1_112], [900, 1_412]];
const captureShare = 0.5;

/** A third party replays old slots at the begin of the run, and at another time. */
function drawCaptures(seed: number, slots: number): { atMs: number; action: Action }[] {
  const random = new SeededRandom(BigInt(seed) + 0xca97_0000_0000n);
  return [30 + random.below(40), random.below(slots * slotMs)].flatMap((atMs) => {
    const source = pick(random, sourceNames);
    const slotsBack = pick(random, farBack);
    const forMs = 1_000 + random.below(30_000);
    const isDrawn = random.happens(captureShare);
    return isDrawn ? [{ atMs, action: { kind: "capture", source, slotsBack, forMs } }] : [];
  });
}

const slotNodeShare = 0.2;

function slotNodeRandom(seed: number): SeededRandom {
  return new SeededRandom(BigInt(seed) + 0x5152_0000_0000n);
}

/** In some seeds, the operator has configured a node, from which the relay takes slots, too. */
export function hasSlotNode(seed: number): boolean {
  return slotNodeRandom(seed).happens(slotNodeShare);
}

/** With such a node, all sources are silent at the begin of the run and around another start of the service. */
function drawSilences(seed: number, slots: number): { atMs: number; action: Action }[] {
  const random = slotNodeRandom(seed);
  if (!random.happens(slotNodeShare)) return [];
  const silence = (atMs: number): { atMs: number; action: Action }[] => {
    const forMs = 12_000 + random.below(8_000);
    return sourceNames.map((source) => ({ atMs, action: { kind: "outage", source, forMs } }));
  };
  const laterMs = 20_000 + random.below(slots * slotMs);
  const downMs = 50 + random.below(500);
  const isInRun = laterMs + 1_500 < slots * slotMs;
  return [
    ...silence(0),
    ...(isInRun
      ? [...silence(laterMs), { atMs: laterMs + 1_500, action: { kind: "crash", downMs } } as const]
      : []),
  ];
}

const stopShare = 0.3;
const stopMinMs = 3_000;
/** More than most transactions pay. */
const highTip = 50_001;

/**
 * In some seeds, the cluster produces no block for some seconds. The operator often raises the minimum tip
 * meanwhile, because most submissions are open then.
 */
function drawStops(
  seed: number,
  slots: number,
): { atMs: number; action: Action | GatewayAction }[] {
  const random = new SeededRandom(BigInt(seed) + 0x5709_0000_0000n);
  const isDrawn = random.happens(stopShare);
  const atMs = random.below(slots * slotMs);
  const forMs = stopMinMs + random.below(13_000);
  const isRaised = random.happens(0.5);
  const raisedMs = atMs + random.below(3_000);
  if (!isDrawn) return [];
  const stop = { atMs, action: { kind: "cluster stops", forMs } } as const;
  const raised = {
    atMs: raisedMs,
    action: { kind: "reload gateway", minimumTip: highTip },
  } as const;
  return isRaised ? [stop, raised] : [stop];
}

const receiverShares = [0, 0.5, 2];

/**
 * In some seeds, receivers of customers are closed, or ICMP errors about them are forged. Most of them have
 * just been added, because their accounts often lose their tiers a little later.
 */
function drawReceivers(
  seed: number,
  slots: number,
  events: readonly ScenarioEvent[],
): { atMs: number; action: Action }[] {
  const random = new SeededRandom(BigInt(seed) + 0x1c3b_0000_0000n);
  const share = pick(random, receiverShares);
  const added = events.filter((event) => event.kind === "add destination");
  return Array.from({ length: Math.ceil(added.length * share) }, () => {
    const { address, atMs } = pick(random, added);
    const kind = random.happens(0.6) ? "close receiver" : "forge unreachable";
    const forMs = 1_000 + random.below(40_000);
    return { atMs: atMs + random.below(15_000), action: { kind, address, forMs } } as const;
  }).filter(({ atMs }) => atMs < slots * slotMs);
}

const diskFailureShares = [0, 0.02, 0.05];

/** When a new destination is challenged, after it was added. */
const challengesMs = [0, 2_000, 10_000];

/** Half of them begin shortly before a new destination is challenged. */
function drawDiskFailures(
  seed: number,
  slots: number,
  events: readonly ScenarioEvent[],
): { atMs: number; action: Action }[] {
  const random = new SeededRandom(BigInt(seed) + 0xd15c_0000_0000n);
  const share = pick(random, diskFailureShares);
  const added = events.filter(({ kind }) => kind === "add destination");
  return Array.from({ length: slots }, (_, i) => i * slotMs).flatMap((beginMs) => {
    if (!random.happens(share)) return [];
    const isAtChallenge = added.length > 0 && random.happens(0.5);
    const challengedMs = isAtChallenge ? pick(random, added).atMs + pick(random, challengesMs) : 0;
    const atMs = isAtChallenge ? challengedMs - random.below(40) : beginMs + random.below(slotMs);
    const failure = pick(random, diskFailures);
    const forMs = 50 + random.below(3_000);
    // Not after the last slot: such a run contains a cluster that has stopped.
    const isInRun = atMs >= 0 && atMs < slots * slotMs;
    return isInRun ? [{ atMs, action: { kind: "disk fails", failure, forMs } }] : [];
  });
}

/** A run without quiet periods. */
export function drawBusyScenario(seed: number, slots: number): ScenarioEvent[] {
  const random = new SeededRandom(BigInt(seed) + 0x5eed_0000_0000n);
  const emphasized = rates.map(([kind, rate]) => [kind, rate * pick(random, emphases)] as const);
  const withRestarts = restartDrawer(seed);
  const events: ScenarioEvent[] = [];
  const parents: bigint[] = [];
  let number = 0;
  const add = (
    atMs: number,
    action: Action | GatewayAction | PostgresAction | QuicAction,
  ): void => {
    events.push({ ...action, number: number++, atMs });
  };
  for (let i = 0; i < slots; i++) {
    const atMs = firstSlotMs + i * slotMs;
    const slot = slotAt(i);
    if (!random.happens(0.04)) {
      add(atMs, { kind: "slot", plan: withRestarts(drawPlan(random, slot, parents)) });
      parents.push(slot);
    }
    for (const [kind, rate] of emphasized) {
      if (!random.happens(rate)) continue;
      const call = kind === "crash" && random.happens(0.5) ? events.findLast(isCall) : undefined;
      const isRecent = call !== undefined && call.atMs >= atMs - slotMs;
      const whenMs = isRecent
        ? call.atMs + random.below(crashAfterMaxMs)
        : atMs + random.below(slotMs);
      add(whenMs, drawAction(random, kind));
    }
  }
  number = firstGatewayNumber;
  const drawn = drawGatewayActions(seed, { slots, slotMs, customers: customerCount });
  for (const { atMs, action } of drawn) events.push({ ...action, number: number++, atMs });
  number = firstNonceNumber;
  const ofNonces = drawNonceActions(seed, { slots, slotMs, customers: customerCount });
  for (const { atMs, action } of ofNonces) events.push({ ...action, number: number++, atMs });
  number = firstBurstNumber;
  const bursts = drawBursts(seed, { slots, slotMs, customers: customerCount });
  for (const { atMs, action } of bursts) events.push({ ...action, number: number++, atMs });
  number = firstGatewayReloadNumber;
  const reloads = drawGatewayReloads(seed, { slots, slotMs, customers: customerCount });
  for (const { atMs, action } of reloads) events.push({ ...action, number: number++, atMs });
  number = firstCaptureNumber;
  for (const { atMs, action } of drawCaptures(seed, slots)) add(atMs, action);
  number = firstStopNumber;
  for (const { atMs, action } of drawStops(seed, slots)) add(atMs, action);
  number = firstReceiverNumber;
  for (const { atMs, action } of drawReceivers(seed, slots, events)) add(atMs, action);
  number = firstWatchNumber;
  const watched = drawWatchedNonces(seed, { slots, slotMs, customers: customerCount });
  for (const { atMs, action } of watched) add(atMs, action);
  number = firstSilenceNumber;
  for (const { atMs, action } of drawSilences(seed, slots)) add(atMs, action);
  number = firstDiskNumber;
  for (const { atMs, action } of drawDiskFailures(seed, slots, events)) add(atMs, action);
  number = firstPostgresNumber;
  for (const { atMs, action } of drawPostgresActions(seed, { slots, slotMs })) add(atMs, action);
  number = firstQuicNumber;
  const ofQuic = drawQuicActions(seed, { slots, slotMs, leaderCount });
  for (const { atMs, action } of ofQuic) add(atMs, action);
  return inOrder(events);
}

export function inOrder(events: readonly ScenarioEvent[]): ScenarioEvent[] {
  return events.toSorted((a, b) => a.atMs - b.atMs || a.number - b.number);
}

/** One line for a person. */
export function describeEvent({ number, atMs, ...action }: ScenarioEvent): string {
  const text = JSON.stringify(action, (_, value: unknown) =>
    typeof value === "bigint" ? Number(value) : value,
  );
  return `${String(atMs).padStart(8)} ms  #${number}  ${text}`;
}
