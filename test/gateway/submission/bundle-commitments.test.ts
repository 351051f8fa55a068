// Bundle commitments from records and the node; chain.test.ts tests them on the sandbox chain.

import { describe, expect, it } from "vitest";
import { NodeBundleCommitments } from "../../../src/gateway/submission/bundle-commitments.ts";
import { StatusReader } from "../../../src/gateway/submission/status-reader.ts";
import type {
  BundleCommitment,
  Commitment,
  SignatureOutcome,
  TransactionStatus,
} from "../../../src/gateway/submission/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

const clock = new ManualClock();

function landed(signature: string, reason = "confirmed", agoMs = 0): TransactionStatus {
  const atNs = clock.nowNs() - BigInt(agoMs) * 1_000_000n;
  return {
    signature,
    state: "landed",
    method: "sendBundle",
    bundleId: "b",
    receivedNs: 0n,
    slot: 5n,
    reason,
    err: null,
    events: [{ kind: "landed", atNs, reason, slot: 5n, err: null }],
  };
}

function open(signature: string, slot: bigint | null): TransactionStatus {
  return { ...landed(signature), state: "open", slot, reason: null, events: [] };
}

function status(
  commitment: Commitment,
  { slot = 5n, err = null }: { slot?: bigint; err?: unknown } = {},
): SignatureOutcome {
  return { slot, err, commitment };
}

interface Node {
  readonly cached?: Readonly<Record<string, SignatureOutcome>>;
  readonly history?: Readonly<Record<string, SignatureOutcome>>;
}

/** null: without a node. */
async function commitmentOf(
  node: Node | null,
  ...transactions: TransactionStatus[]
): Promise<BundleCommitment | null> {
  const reader =
    node &&
    new StatusReader({
      clock,
      node: {
        signatureStatuses: async (signatures, search) =>
          signatures.map((signature) => {
            const old = search?.searchHistory ? node.history?.[signature] : undefined;
            return node.cached?.[signature] ?? old ?? null;
          }),
      },
      log: { warn: () => {} },
    });
  const answer = new NodeBundleCommitments({ clock, reader }).of({ bundleId: "b", transactions });
  await clock.advance(10);
  return answer;
}

const finalized = { slot: 5n, commitment: "finalized" };
const confirmed = { slot: 5n, commitment: "confirmed" };
const processed = { slot: 5n, commitment: "processed" };

describe("with a node, a bundle", () => {
  it("that landed is confirmed, and finalized when the node reports that for every transaction", async () => {
    const both = [landed("a"), landed("b")];
    expect(await commitmentOf({}, ...both)).toEqual(confirmed);
    const half = { a: status("finalized"), b: status("confirmed") };
    expect(await commitmentOf({ cached: half }, ...both)).toEqual(confirmed);
    const whole = { a: status("finalized"), b: status("finalized") };
    expect(await commitmentOf({ cached: whole }, ...both)).toEqual(finalized);
  });

  it("that landed long ago is found in the node's history", async () => {
    const history = { a: status("finalized") };
    expect(await commitmentOf({ history }, landed("a"))).toEqual(confirmed);
    expect(await commitmentOf({ history }, landed("a", "confirmed", 31_000))).toEqual(finalized);
  });

  it("never has a lower commitment than its record", async () => {
    expect(await commitmentOf({ cached: { a: status("processed") } }, landed("a"))).toEqual(
      confirmed,
    );
    expect(await commitmentOf({}, landed("a", "finalized"))).toEqual(finalized);
    const behind = { a: status("confirmed") };
    expect(await commitmentOf({ cached: behind }, landed("a", "finalized"))).toEqual(finalized);
  });

  it("is not finalized by a status of another slot or of a failure", async () => {
    const elsewhere = { a: status("finalized", { slot: 6n }) };
    expect(await commitmentOf({ cached: elsewhere }, landed("a"))).toEqual(confirmed);
    const failed = { a: status("finalized", { err: "AccountInUse" }) };
    expect(await commitmentOf({ cached: failed }, landed("a"))).toEqual(confirmed);
  });

  it("that was observed is processed only when the node reports it", async () => {
    const both = [open("a", 4n), open("b", 4n)];
    expect(await commitmentOf({}, ...both)).toBeNull();
    expect(await commitmentOf({ cached: { a: status("processed") } }, ...both)).toBeNull();
    const whole = { a: status("processed"), b: status("processed") };
    expect(await commitmentOf({ cached: whole }, ...both)).toEqual(processed);
    const failed = { a: status("processed"), b: status("processed", { err: "AccountInUse" }) };
    expect(await commitmentOf({ cached: failed }, ...both)).toBeNull();
    expect(await commitmentOf({ cached: whole }, open("a", 4n), open("b", null))).toBeNull();
    // One transaction ended earlier than the other.
    expect(await commitmentOf({ cached: whole }, landed("a"), open("b", 5n))).toEqual(processed);
  });

  it("with a transaction that did not land has no commitment", async () => {
    const whole = { a: status("finalized"), b: status("finalized") };
    for (const state of ["landed_failed", "expired", "superseded", "rejected"] as const) {
      const other = { ...landed("b"), state };
      expect(await commitmentOf({ cached: whole }, landed("a"), other)).toBeNull();
    }
    expect(await commitmentOf({ cached: whole })).toBeNull();
  });
});

describe("without a node, a bundle", () => {
  it("that was observed in shreds is processed, and an earlier report of a node remains", async () => {
    expect(await commitmentOf(null, landed("a", "seen_in_shreds"))).toEqual(processed);
    expect(await commitmentOf(null, landed("a"), landed("b", "seen_in_shreds"))).toEqual(processed);
    expect(await commitmentOf(null, landed("a"))).toEqual(confirmed);
    expect(await commitmentOf(null, landed("a", "finalized"))).toEqual(finalized);
    expect(await commitmentOf(null, open("a", null))).toBeNull();
  });

  it("that was observed in shreds is finalized by a node that is configured later", async () => {
    const cached = { a: status("finalized") };
    expect(await commitmentOf({ cached }, landed("a", "seen_in_shreds"))).toEqual(finalized);
  });
});
