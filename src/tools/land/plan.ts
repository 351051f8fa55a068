// Plan of a landing benchmark: its senders, its transactions and what they cost at most. Pure.
//
// Read from the command line by land-options.ts. The journal stores the public part, so that a run
// continues only with the same plan.

import { createHash } from "node:crypto";
import { lamportsPerSignature } from "../../gateway/nonces/nonce-transactions.ts";

/** Ways to hand a transaction to a sender. */
export const senderDialects = [
  "rpc",
  "shredway",
  "jito",
  "astralane",
  "text",
  "bytes",
  "quic",
] as const;
export type SenderDialect = (typeof senderDialects)[number];

/** Options without a value, and the dialects that accept them. */
export const senderSwitches: Readonly<Record<string, readonly SenderDialect[]>> = {
  "mev-protect": ["shredway", "astralane", "quic"],
  "swqos-only": ["shredway"],
  "bundle-only": ["jito"],
  unverified: ["quic"],
};

export interface SenderPlan {
  readonly name: string;
  readonly dialect: SenderDialect;
  /** May contain a key. */
  readonly url: URL;
  readonly tipLamports: bigint;
  /** Base58; null: the sender is asked for its tip accounts. */
  readonly tipTo: string | null;
  /** Micro-lamports per compute unit; null: that of the run. */
  readonly price: bigint | null;
  /** Resends by the sender; null: as it does by default. */
  readonly maxRetries: number | null;
  readonly switches: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly apiKey: string | null;
  /** SHA-256 of the certificate, for QUIC. */
  readonly fingerprint: string | null;
  /** ALPN protocol, for QUIC; null: the default. */
  readonly alpn: string | null;
}

export interface LandPlan {
  readonly senders: readonly SenderPlan[];
  readonly rounds: number;
  readonly intervalMs: number;
  /** The part that differs between the transactions. */
  readonly mark: "amount" | "memo";
  /** Nonce account that all transactions of a round use; null: each lands by itself. */
  readonly nonceAccount: string | null;
  readonly budgetLamports: bigint;
  readonly computeUnits: number;
  /** Micro-lamports per compute unit. */
  readonly price: bigint;
}

const microPerLamport = 1_000_000n;

interface Cost {
  readonly feeLamports: bigint;
  readonly tipLamports: bigint;
  /** The most that a transaction can cost. */
  readonly totalLamports: bigint;
}

export function priceOf(plan: LandPlan, sender: SenderPlan): bigint {
  return sender.price ?? plan.price;
}

/** Cost of a landed transaction of `sender`. One that fails in its block costs the fee only. */
export function costOf(plan: LandPlan, sender: SenderPlan): Cost {
  const micro = priceOf(plan, sender) * BigInt(plan.computeUnits);
  const feeLamports = lamportsPerSignature + (micro + microPerLamport - 1n) / microPerLamport;
  const { tipLamports } = sender;
  return { feeLamports, tipLamports, totalLamports: feeLamports + tipLamports };
}

/**
 * The most that a round can cost: the sum of its transactions, or with one nonce the most expensive one,
 * because only one can land.
 */
export function roundCost(plan: LandPlan): bigint {
  const costs = plan.senders.map((sender) => costOf(plan, sender).totalLamports);
  if (plan.nonceAccount === null) return costs.reduce((sum, cost) => sum + cost, 0n);
  return costs.reduce((most, cost) => (cost > most ? cost : most), 0n);
}

/** Only the host: every other part of a URL may be a key. */
export function publicAddress({ url }: SenderPlan): string {
  return url.host;
}

/** Digits that differ for another path at the same host. */
function pathDigest({ url }: SenderPlan): string {
  return createHash("sha256").update(`${url.host}${url.pathname}`).digest("hex").slice(0, 16);
}

/** Everything that must be the same after a resumption, without secrets. */
export function publicPlan(plan: LandPlan): Readonly<Record<string, string>> {
  const senders = plan.senders.map((sender) => {
    const { name, dialect, tipLamports, tipTo, maxRetries, switches } = sender;
    const tip = `tip=${tipLamports} tip-to=${tipTo ?? "-"} price=${priceOf(plan, sender)} max-retries=${maxRetries ?? "-"}`;
    const text =
      `${dialect} ${publicAddress(sender)} path=${pathDigest(sender)} ${tip} ${switches.join(" ")}`.trim();
    return [`sender ${name}`, text] as const;
  });
  return {
    ...Object.fromEntries(senders),
    order: plan.senders.map(({ name }) => name).join(" "),
    rounds: String(plan.rounds),
    mark: plan.mark,
    nonce: plan.nonceAccount ?? "-",
    budget: String(plan.budgetLamports),
    units: String(plan.computeUnits),
  };
}
