// Simulated runs of the landing benchmark: senders with a known delay and share of drops, without a network.

import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { LandFacts } from "../../../src/tools/land/land-report.ts";
import type { LandPlan, SenderPlan } from "../../../src/tools/land/plan.ts";
import type { RoundRecord, TransactionRecord } from "../../../src/tools/land/records.ts";

export interface SimulatedSender {
  readonly delayMs: number;
  /** Mean of the exponential part of the delay. */
  readonly jitterMs: number;
  readonly drop: number;
  readonly responseMs: number;
}

const slotMs = 400;

export function senderPlan(name: string, changes: Partial<SenderPlan> = {}): SenderPlan {
  return {
    name,
    dialect: "rpc",
    url: new URL("http://127.0.0.1:1/"),
    tipLamports: 1000n,
    tipTo: null,
    price: null,
    maxRetries: null,
    switches: [],
    headers: {},
    apiKey: null,
    fingerprint: null,
    alpn: null,
    ...changes,
  };
}

export function planOf(senders: readonly SenderPlan[], changes: Partial<LandPlan> = {}): LandPlan {
  return {
    senders,
    rounds: 100,
    intervalMs: 1000,
    mark: "amount",
    nonceAccount: null,
    budgetLamports: 10_000_000n,
    computeUnits: 1000,
    price: 0n,
    ...changes,
  };
}

/** Time of a landing below which the share `share` of all landings is. */
export function quantileNs({ delayMs, jitterMs }: SimulatedSender, share: number): number {
  return (delayMs - Math.log(1 - share) * jitterMs) * 1e6;
}

/**
 * The rounds are a second apart, so a turn of four slots contains one or two of them.
 */
export function simulatedRun(
  seed: number,
  senders: readonly SimulatedSender[],
  rounds = 100,
): LandFacts {
  const random = new SeededRandom(seed);
  const plan = planOf(
    senders.map((_, i) => senderPlan(`sender-${i}`)),
    { rounds },
  );
  const records = Array.from({ length: rounds }, (_, i): RoundRecord => {
    const sentMs = i * 1000 + random.share() * slotMs;
    const slot = Math.floor(sentMs / slotMs);
    const transactions = senders.map((sender, number): TransactionRecord => {
      const { delayMs, jitterMs, drop, responseMs } = sender;
      const timeMs = delayMs + random.exponential(jitterMs, Number.POSITIVE_INFINITY);
      const isLanded = !random.happens(drop);
      const landedMs = sentMs + timeMs;
      const index = Math.floor((landedMs % slotMs) * 1000);
      return {
        sender: number,
        signature: `${i}/${number}`,
        lamports: 6000n,
        answer: {
          sentNs: BigInt(Math.round(sentMs * 1e6)),
          order: number,
          responseNs: (responseMs + random.exponential(responseMs, 1e9)) * 1e6,
          error: null,
        },
        end: {
          state: isLanded ? "landed" : "expired",
          landing: isLanded
            ? {
                slot: Math.floor(landedMs / slotMs),
                slots: Math.floor(landedMs / slotMs) - slot,
                timeNs: Math.round(timeMs * 1e6),
                via: "shreds",
                shred: null,
                block: { index, transactions: slotMs * 1000 },
                error: null,
              }
            : null,
        },
      };
    });
    return { round: i + 1, slot, lastValidBlockHeight: slot + 150, nonce: null, transactions };
  });
  return {
    plan,
    rounds: records,
    seconds: rounds,
    observedBy: "shreds",
    resolutionNs: 1,
    reservedLamports: BigInt(rounds * senders.length) * 6000n,
    notes: [],
  };
}
