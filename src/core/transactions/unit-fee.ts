// Whether a transaction pays enough for each compute unit that it may use. Pure.
//
// Alternative partners order transactions by this fee and accept none below a minimum. The gateway checks
// it before it submits a transaction, and plan.ts before every attempt.

import type { TransactionFacts } from "./facts.ts";

export type UnitFeeFacts = Pick<
  TransactionFacts,
  "version" | "computeUnitLimit" | "computeUnitPrice" | "priorityFeeLamports"
>;

const microPerLamport = 1_000_000n;

/**
 * Minimum price of legacy and v0 transactions; minimum total fee of v1, which has no price field.
 */
function minimumOf({ version, computeUnitLimit }: UnitFeeFacts, unitLamports: bigint): bigint {
  return version === 1 ? unitLamports * BigInt(computeUnitLimit) : unitLamports * microPerLamport;
}

/** `unitLamports`: lamports per compute unit. */
export function paysPerUnit(facts: UnitFeeFacts, unitLamports: bigint): boolean {
  const minimum = minimumOf(facts, unitLamports);
  if (facts.version !== 1) return facts.computeUnitPrice >= minimum;
  // Without a unit limit every total would be sufficient.
  return facts.computeUnitLimit > 0 && facts.priorityFeeLamports >= minimum;
}

/** The error message for a fee that is too low. */
export function unitFeeText(facts: UnitFeeFacts, unitLamports: bigint): string {
  const { version, computeUnitLimit, computeUnitPrice, priorityFeeLamports } = facts;
  const minimum = minimumOf(facts, unitLamports);
  const needed = `minimum ${unitLamports} lamports per compute unit`;
  if (version !== 1) {
    return `priority fee too low: ${computeUnitPrice} micro-lamports per compute unit; ${needed} (${minimum} micro-lamports)`;
  }
  if (computeUnitLimit === 0) {
    return `priority fee unknown: the transaction sets no compute unit limit; ${needed}`;
  }
  return `priority fee too low: ${priorityFeeLamports} lamports for ${computeUnitLimit} compute units; ${needed} (${minimum} lamports)`;
}
