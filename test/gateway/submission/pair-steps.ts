// Steps of the pair tests: sent transactions, events and landings.

import { expect } from "vitest";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import type { SignatureOutcome } from "../../../src/gateway/submission/types.ts";
import type { Harness } from "./harness.ts";

/** Names of the sent transactions. */
export function sentOf(harness: Harness, pair: readonly TransactionFacts[]): string {
  const names = pair.map(({ signature }) => signature);
  const places = harness.outbound.map(({ transactions: [one] }) =>
    names.indexOf(one?.signature ?? ""),
  );
  return places.map((place) => "AB"[place] ?? "?").join("");
}

export async function kindsOf(
  harness: Harness,
  { signature }: TransactionFacts,
): Promise<string[]> {
  const [status] = await harness.pipeline.statuses("ann", [signature]);
  return status?.events.map(({ kind }) => kind) ?? [];
}

/** Lands the transaction, which changes the nonce value. */
export function land(
  harness: Harness,
  { signature }: TransactionFacts,
  some: Partial<SignatureOutcome> = {},
) {
  harness.answers.set(signature, { slot: 8n, err: null, commitment: "confirmed", ...some });
  harness.nonce = "another value";
}

/** Both statuses after the first has landed. */
export async function landed(
  harness: Harness,
  pair: readonly [TransactionFacts, TransactionFacts],
) {
  land(harness, pair[0]);
  await harness.clock.advance(3_000);
  expect(await Promise.all(pair.map((facts) => harness.state(facts)))).toEqual([
    "landed confirmed",
    "superseded sibling_landed",
  ]);
}
