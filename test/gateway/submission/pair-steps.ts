// Steps of the tests of pairs: what was sent, what is known, what lands.

import { expect } from "vitest";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import type { SignatureOutcome } from "../../../src/gateway/submission/types.ts";
import type { Harness } from "./harness.ts";

/** Whom the parcels were for, by name. */
export function sentOf(desk: Harness, pair: readonly TransactionFacts[]): string {
  const names = pair.map(({ signature }) => signature);
  const places = desk.parcels.map(({ transactions: [one] }) => names.indexOf(one?.signature ?? ""));
  return places.map((place) => "AB"[place] ?? "?").join("");
}

export async function kindsOf(desk: Harness, { signature }: TransactionFacts): Promise<string[]> {
  const [status] = await desk.pipeline.statuses("ann", [signature]);
  return status?.events.map(({ kind }) => kind) ?? [];
}

/** It is in the chain, and the nonce has another value. */
export function land(
  desk: Harness,
  { signature }: TransactionFacts,
  some: Partial<SignatureOutcome> = {},
) {
  desk.answers.set(signature, { slot: 8n, err: null, commitment: "confirmed", ...some });
  desk.nonce = "another value";
}

/** Both of them, once the first is known to have landed. */
export async function landed(desk: Harness, pair: readonly [TransactionFacts, TransactionFacts]) {
  land(desk, pair[0]);
  await desk.clock.advance(3_000);
  expect(await Promise.all(pair.map((facts) => desk.state(facts)))).toEqual([
    "landed confirmed",
    "superseded sibling_landed",
  ]);
}
