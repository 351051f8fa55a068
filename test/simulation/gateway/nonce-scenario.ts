// The events of nonces, pairs and alternative partners in a run, drawn from a generator of their own.

import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import { pick } from "../random-at.ts";
import { type PairDefect, pairDefects } from "./call-rules.ts";
import { type KeyKind, keyKinds } from "./key-kinds.ts";
import { auctionUnitPrice, costlyTip, type PartnerMood, partnerMoods } from "./partners.ts";
import { minimumTip, type TransactionChoice } from "./transactions.ts";

/** Nonce accounts of each customer that the service does not manage. */
export const ownNonces = 2;

/** managed: the account that the service manages for the caller's key. missing: no account has this address. */
export type NonceAccountChoice =
  | { readonly kind: "own"; readonly customer: number; readonly number: number }
  | { readonly kind: "managed" }
  | { readonly kind: "missing" };

export type NonceAction =
  | {
      readonly kind: "get nonce";
      readonly customer: number;
      readonly key: KeyKind;
      readonly account: NonceAccountChoice;
    }
  | {
      readonly kind: "send pair";
      readonly customer: number;
      readonly key: KeyKind;
      readonly account: NonceAccountChoice;
      readonly transactions: readonly TransactionChoice[];
      readonly defect: PairDefect | null;
      /** It signs with the last value that it knows, and does not ask. */
      readonly isFromMemory: boolean;
    }
  | {
      /** A customer sends one transaction with a nonce by sendTransaction. */
      readonly kind: "send durable";
      readonly customer: number;
      /** Which of its own accounts. */
      readonly choice: number;
      readonly transaction: TransactionChoice;
    }
  | {
      /** The owner advances a nonce without the service. */
      readonly kind: "advance nonce";
      readonly customer: number;
      readonly choice: number;
      /** In slots one after the other. */
      readonly times: number;
    }
  | {
      readonly kind: "send alt";
      readonly customer: number;
      readonly key: KeyKind;
      readonly transaction: TransactionChoice;
      /** Blocks since the one whose hash it has. */
      readonly age: number;
      readonly enableFallback: boolean;
    }
  | {
      readonly kind: "partners change";
      readonly partners: readonly ["auction"];
      readonly mood: PartnerMood;
      readonly forMs: number;
    };

export const nonceRates = [
  ["get nonce", 0.05],
  ["send pair", 0.2],
  ["send durable", 0.04],
  ["advance nonce", 0.03],
  ["send alt", 0.08],
  ["partners change", 0.03],
] as const;

const tips = [minimumTip, 20_000, costlyTip];
const unitPrices = [1, 1_000_000, auctionUnitPrice, 2 * auctionUnitPrice];

function drawTransaction(random: SeededRandom): TransactionChoice {
  return {
    tip: random.happens(0.96) ? pick(random, tips) : pick(random, [0, minimumTip - 1]),
    fails: random.happens(0.15),
    isForged: random.happens(0.02),
    unitPrice: pick(random, unitPrices),
  };
}

function drawAccount(random: SeededRandom, customer: number): NonceAccountChoice {
  if (random.happens(0.35)) return { kind: "managed" };
  if (random.happens(0.03)) return { kind: "missing" };
  return { kind: "own", customer, number: random.below(ownNonces) };
}

/** The kinds of nonceRates. */
export function drawNonceAction(
  random: SeededRandom,
  kind: NonceAction["kind"],
  customers: number,
): NonceAction {
  const customer = random.below(customers);
  const choice = random.below(ownNonces);
  const key = random.happens(0.95) ? "own" : pick(random, keyKinds);
  switch (kind) {
    case "get nonce":
      return { kind, customer, key, account: drawAccount(random, random.below(customers)) };
    case "send pair":
      return {
        kind,
        customer,
        key,
        account: drawAccount(random, customer),
        transactions: [drawTransaction(random), drawTransaction(random)],
        defect: random.happens(0.1) ? pick(random, pairDefects) : null,
        isFromMemory: random.happens(0.3),
      };
    case "send durable":
      return { kind, customer, choice, transaction: drawTransaction(random) };
    case "advance nonce":
      return { kind, customer, choice, times: 1 + random.below(3) };
    case "send alt":
      return {
        kind,
        customer,
        key,
        transaction: drawTransaction(random),
        age: random.happens(0.9) ? 0 : random.below(24),
        enableFallback: random.happens(0.5),
      };
    case "partners change": {
      const mood = pick(random, partnerMoods);
      return { kind, partners: ["auction"], mood, forMs: 300 + random.below(6_000) };
    }
  }
}
