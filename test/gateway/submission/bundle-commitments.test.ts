// Bundle commitments from records and the node; chain.test.ts tests them on the sandbox chain.

import { describe, expect, it } from "vitest";
import { NodeBundleCommitments } from "../../../src/gateway/submission/bundle-commitments.ts";
import { StatusReader } from "../../../src/gateway/submission/status-reader.ts";
import type {
  BundleCommitment,
  BundleProgress,
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
  readonly isFailing?: boolean;
}

function commitmentsWith(node: Node | null): NodeBundleCommitments {
  const reader =
    node &&
    new StatusReader({
      clock,
      node: {
        signatureStatuses: async (signatures, search) =>
          signatures.map((signature) => {
            if (node.isFailing) throw new Error("the node failed");
            const old = search?.searchHistory ? node.history?.[signature] : undefined;
            return node.cached?.[signature] ?? old ?? null;
          }),
      },
      log: { warn: () => {} },
    });
  return new NodeBundleCommitments({ clock, reader });
}

/** null: without a node. */
async function commitmentOf(
  node: Node | null,
  ...transactions: TransactionStatus[]
): Promise<BundleCommitment | null> {
  const answer = commitmentsWith(node).of({ bundleId: "b", transactions });
  await clock.advance(10);
  return answer;
}

/** null: without a node. */
async function progressOf(
  node: Node | null,
  ...transactions: TransactionStatus[]
): Promise<BundleProgress> {
  const answer = commitmentsWith(node).progressOf({ bundleId: "b", transactions });
  await clock.advance(10);
  return answer;
}

const finalized = { slot: 5n, commitment: "finalized" };
const confirmed = { slot: 5n, commitment: "confirmed" };
const pending = { kind: "pending" };
const dropped = { kind: "failed" };
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

describe("a bundle whose part landed in another bundle", () => {
  const rest = open("b", null);
  const long = landed("a", "confirmed", 10_000);

  it("has failed when the node does not know the rest some time later", async () => {
    expect(await progressOf({}, landed("a", "confirmed", 9_999), rest)).toEqual(pending);
    expect(await progressOf({}, long, rest)).toEqual(dropped);
    expect(await progressOf({ isFailing: true }, long, rest)).toEqual(pending);
    const elsewhere = { b: status("confirmed", { slot: 6n }) };
    expect(await progressOf({ cached: elsewhere }, long, rest)).toEqual(dropped);
  });

  it("is pending while the node knows the rest in the same slot", async () => {
    expect(await progressOf({ cached: { b: status("confirmed") } }, long, rest)).toEqual(pending);
    const history = { b: status("finalized") };
    const older = landed("a", "confirmed", 31_000);
    expect(await progressOf({ history }, older, rest)).toEqual(pending);
  });

  it("has failed without a node, some time later", async () => {
    expect(await progressOf(null, landed("a", "seen_in_shreds"), rest)).toEqual(pending);
    expect(await progressOf(null, landed("a", "seen_in_shreds", 10_000), rest)).toEqual(dropped);
  });
});

describe("the progress of a bundle", () => {
  it("is pending while all are open, and landed or failed as soon as that is certain", async () => {
    expect(await progressOf({}, open("a", 5n), open("b", null))).toEqual(pending);
    expect(await progressOf({}, landed("a"), landed("b"))).toEqual({ kind: "landed", slot: 5n });
    for (const state of ["landed_failed", "expired", "superseded", "rejected"] as const) {
      const dead = { ...landed("a"), state };
      expect(await progressOf({}, dead, open("b", null))).toEqual(dropped);
      expect(await progressOf({}, dead, landed("b"))).toEqual(dropped);
    }
  });

  it("is failed, without a commitment, if its transactions landed in different slots", async () => {
    const elsewhere = { ...landed("b"), slot: 6n };
    expect(await progressOf({}, landed("a"), elsewhere)).toEqual(dropped);
    expect(await commitmentOf({}, landed("a"), elsewhere)).toBeNull();
    // An observation in shreds may be of another fork.
    const observed = { ...landed("b", "seen_in_shreds"), slot: 6n };
    expect(await progressOf(null, landed("a"), observed)).toEqual({ kind: "landed", slot: 5n });
  });
});
