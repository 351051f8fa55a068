// Whether a transaction pays enough for each compute unit that it may use. Pure.
//
// Alternative partners order by this fee and take nothing below a minimum: asked by the gateway before
// anything is submitted, and by the plan for every attempt.

import type { TransactionFacts } from "./facts.ts";

export type UnitFeeFacts = Pick<
  TransactionFacts,
  "version" | "computeUnitLimit" | "computeUnitPrice" | "priorityFeeLamports"
>;

const microPerLamport = 1_000_000n;

/** Least price of legacy and v0, least total of v1, which names no price. */
function minimumOf({ version, computeUnitLimit }: UnitFeeFacts, unitLamports: bigint): bigint {
  return version === 1 ? unitLamports * BigInt(computeUnitLimit) : unitLamports * microPerLamport;
}

/** `unitLamports`: lamports per compute unit. */
export function paysPerUnit(facts: UnitFeeFacts, unitLamports: bigint): boolean {
  const minimum = minimumOf(facts, unitLamports);
  if (facts.version !== 1) return facts.computeUnitPrice >= minimum;
  // Without units every total would be enough.
  return facts.computeUnitLimit > 0 && facts.priorityFeeLamports >= minimum;
}

/** What was expected and what came, with units. */
export function unitFeeText(facts: UnitFeeFacts, unitLamports: bigint): string {
  const { version, computeUnitLimit, computeUnitPrice, priorityFeeLamports } = facts;
  const minimum = minimumOf(facts, unitLamports);
  const least = `priority fee: expected at least ${unitLamports} lamports per compute unit`;
  if (version !== 1) {
    return `${least} (a price of ${minimum} micro-lamports), got a price of ${computeUnitPrice} micro-lamports`;
  }
  if (computeUnitLimit === 0) return `${least}, got a transaction without a compute unit limit`;
  return `${least} (${minimum} lamports for ${computeUnitLimit} units), got ${priorityFeeLamports} lamports`;
}
