// The events of the gateway in a run: calls of customers, and the moods of partners and of the node.
//
// Drawn from a generator of its own, so that the other events of a seed stay as they are.

import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { pick } from "../random-at.ts";
import { type SendMethod, sendMethods } from "./call-rules.ts";
import { type KeyKind, keyKinds } from "./key-kinds.ts";
import { type NodeMood, nodeMoods } from "./node.ts";
import { drawNonceAction, type NonceAction, nonceRates, ownNonces } from "./nonce-scenario.ts";
import { costlyTip, type PartnerMood, type PartnerName, partnerMoods } from "./partners.ts";
import { minimumTip, type TransactionChoice } from "./transactions.ts";

/** null: the option is absent. */
type MaxRetries = number | null;

export type GatewayAction =
  | NonceAction
  | {
      readonly kind: "send";
      readonly customer: number;
      readonly key: KeyKind;
      readonly method: SendMethod;
      readonly transactions: readonly TransactionChoice[];
      /** Blocks since the one whose hash it has. */
      readonly age: number;
      readonly maxRetries: MaxRetries;
      /** A program sends it that repeats the head of its requests, so that the fast path knows them. */
      readonly isSteady?: boolean;
    }
  | {
      readonly kind: "send again";
      readonly customer: number;
      /** Which of the last calls. */
      readonly choice: number;
      readonly maxRetries: MaxRetries;
    }
  | {
      readonly kind: "partners change";
      readonly partners: readonly PartnerName[];
      readonly mood: PartnerMood;
      readonly forMs: number;
    }
  | { readonly kind: "node changes"; readonly mood: NodeMood; readonly forMs: number }
  | { readonly kind: "reload gateway"; readonly minimumTip: number };

export interface TimedGatewayAction {
  readonly atMs: number;
  readonly action: GatewayAction | { readonly kind: "crash"; readonly downMs: number };
}

const rates = [
  ["send", 0.4],
  ["send again", 0.08],
  ["partners change", 0.08],
  ["node changes", 0.05],
] as const;
const emphases = [0.3, 1, 1, 2];
/** A crash so shortly after a call that it is often in progress. */
const crashShare = 0.02;
const crashAfterMaxMs = 40;
/** The same after a pair, whose value is asked for first, and which lands some slots later. */
const pairCrashAfterMaxMs = 2_500;
const tips = [0, minimumTip - 1, minimumTip, 20_000, costlyTip, costlyTip + 1];
/** The same of those that the gateway accepts. */
const goodTips = tips.filter((tip) => tip >= minimumTip);
const choicesMax = 12;
const drawnPartners = ["staked", "costly", "builder"] as const;

function drawTransaction(random: SeededRandom): TransactionChoice {
  const isGood = random.happens(0.9);
  return {
    tip: pick(random, isGood ? goodTips : tips),
    fails: random.happens(0.1),
    isForged: random.happens(0.03),
  };
}

function drawMaxRetries(random: SeededRandom): MaxRetries {
  return random.happens(0.3) ? random.below(3) : null;
}

export function drawSend(random: SeededRandom, customer: number): GatewayAction {
  const method = random.happens(0.7) ? "sendTransaction" : pick(random, sendMethods);
  const count = method === "sendTransaction" ? 1 : 1 + random.below(3);
  return {
    kind: "send",
    customer,
    key: random.happens(0.93) ? "own" : pick(random, keyKinds),
    method,
    transactions: Array.from({ length: count }, () => drawTransaction(random)),
    age: random.happens(0.8) ? 0 : random.below(24),
    maxRetries: method === "sendTransaction" ? drawMaxRetries(random) : null,
  };
}

export function drawAction(
  random: SeededRandom,
  kind: (typeof rates)[number][0],
  customers: number,
): GatewayAction {
  const customer = random.below(customers);
  switch (kind) {
    case "send":
      return drawSend(random, customer);
    case "send again":
      return {
        kind,
        customer,
        choice: random.below(choicesMax),
        maxRetries: drawMaxRetries(random),
      };
    case "partners change":
      return {
        kind,
        partners: random.happens(0.8) ? [pick(random, drawnPartners)] : drawnPartners,
        mood: pick(random, partnerMoods),
        forMs: 300 + random.below(6_000),
      };
    case "node changes":
      return { kind, mood: pick(random, nodeMoods), forMs: 300 + random.below(5_000) };
  }
}

interface RunShape {
  readonly slots: number;
  readonly slotMs: number;
  readonly customers: number;
}

/** Nonces, pairs and alternative partners, in the order of time. */
export function drawNonceActions(
  seed: number,
  { slots, slotMs, customers }: RunShape,
): TimedGatewayAction[] {
  const random = new SeededRandom(BigInt(seed) + 0x4072_0000_0000n);
  const emphasized = nonceRates.map(
    ([kind, rate]) => [kind, rate * pick(random, emphases)] as const,
  );
  const crashes = crashShare * pick(random, [0, 1, 3]);
  return Array.from({ length: slots }, (_, i) =>
    emphasized.flatMap(([kind, rate]): TimedGatewayAction[] => {
      if (!random.happens(rate)) return [];
      const atMs = 100 + i * slotMs + random.below(slotMs);
      const drawn = [{ atMs, action: drawNonceAction(random, kind, customers) }];
      if (kind !== "send pair" || !random.happens(crashes)) return drawn;
      const downMs = 50 + random.below(1_500);
      const crashMs = atMs + random.below(pairCrashAfterMaxMs);
      return [...drawn, { atMs: crashMs, action: { kind: "crash", downMs } }];
    }),
  )
    .flat()
    .toSorted((a, b) => a.atMs - b.atMs);
}

const watchShares = [0, 0, 0.04];
const watchedCalls = 12;
const watchedEveryMs = 500;

/**
 * A customer asks for a value again and again, while its owner advances it in slots one after the other and each
 * answer is from another node.
 */
export function drawWatchedNonces(
  seed: number,
  { slots, slotMs, customers }: RunShape,
): TimedGatewayAction[] {
  const random = new SeededRandom(BigInt(seed) + 0x3a7e_0000_0000n);
  const share = watchShares[random.below(watchShares.length)] ?? 0;
  return Array.from({ length: slots }, (_, i) => 100 + i * slotMs).flatMap((beginMs) => {
    if (!random.happens(share)) return [];
    const customer = random.below(customers);
    const choice = random.below(ownNonces);
    const forMs = 1_500 + random.below(4_000);
    const atMs = beginMs + random.below(slotMs);
    const advance = {
      kind: "advance nonce",
      customer,
      choice,
      times: 2 + random.below(4),
    } as const;
    const account = { kind: "own", customer, number: choice } as const;
    const ask = { kind: "get nonce", customer, key: "own", account } as const;
    const calls = Array.from({ length: watchedCalls }, (_, i) => ({
      atMs: atMs + i * watchedEveryMs + random.below(watchedEveryMs),
      action: ask,
    }));
    return [
      { atMs, action: { kind: "node changes", mood: "varies", forMs } } as const,
      { atMs: atMs + random.below(1_500), action: advance },
      ...calls,
    ];
  });
}

const reloadShares = [0, 0, 0.02, 0.06];
const minimumTips = [minimumTip, 20_000, costlyTip, costlyTip + 1];

/** The operator changes the minimum tip. */
export function drawGatewayReloads(
  seed: number,
  { slots, slotMs }: RunShape,
): TimedGatewayAction[] {
  const random = new SeededRandom(BigInt(seed) + 0x4e10_0000_0000n);
  const share = pick(random, reloadShares);
  return Array.from({ length: slots }, (_, i) => 100 + i * slotMs).flatMap((beginMs) => {
    if (!random.happens(share)) return [];
    const atMs = beginMs + random.below(slotMs);
    return [{ atMs, action: { kind: "reload gateway", minimumTip: pick(random, minimumTips) } }];
  });
}

const burstShares = [0, 0.03, 0.1];
const burstGapsMs = [2, 15, 60, 250];

/** Programs that send one transaction after the other. */
export function drawBursts(
  seed: number,
  { slots, slotMs, customers }: RunShape,
): TimedGatewayAction[] {
  const random = new SeededRandom(BigInt(seed) + 0xb025_0000_0000n);
  const share = pick(random, burstShares);
  return Array.from({ length: slots }, (_, i) => 100 + i * slotMs).flatMap((beginMs) => {
    if (!random.happens(share)) return [];
    const customer = random.below(customers);
    const gapMs = pick(random, burstGapsMs);
    let atMs = beginMs + random.below(slotMs);
    return Array.from({ length: 3 + random.below(8) }, (): TimedGatewayAction => {
      atMs += 1 + random.below(gapMs);
      const isUsual = random.happens(0.95);
      const action: GatewayAction = {
        kind: "send",
        customer,
        key: isUsual ? "own" : pick(random, keyKinds),
        method: "sendTransaction",
        transactions: [drawTransaction(random)],
        age: random.happens(0.9) ? 0 : random.below(24),
        maxRetries: null,
        isSteady: true,
      };
      return { atMs, action };
    });
  });
}

/** In the order of time. */
export function drawGatewayActions(
  seed: number,
  { slots, slotMs, customers }: RunShape,
): TimedGatewayAction[] {
  const random = new SeededRandom(BigInt(seed) + 0x9a7e_0000_0000n);
  const emphasized = rates.map(([kind, rate]) => [kind, rate * pick(random, emphases)] as const);
  const crashes = crashShare * pick(random, [0, 1, 2]);
  const drawn: TimedGatewayAction[] = [];
  for (let i = 0; i < slots; i++) {
    for (const [kind, rate] of emphasized) {
      if (!random.happens(rate)) continue;
      const atMs = 100 + i * slotMs + random.below(slotMs);
      drawn.push({ atMs, action: drawAction(random, kind, customers) });
      if (kind !== "send" || !random.happens(crashes)) continue;
      const downMs = 50 + random.below(1_500);
      const crashMs = atMs + random.below(crashAfterMaxMs);
      drawn.push({ atMs: crashMs, action: { kind: "crash", downMs } });
    }
  }
  return drawn.toSorted((a, b) => a.atMs - b.atMs);
}
