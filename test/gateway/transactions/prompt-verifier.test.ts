// The prompt verifier: lone transactions on the event loop, all others on the threads.

import { PublicKey, Transaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { PromptVerifier } from "../../../src/gateway/transactions/prompt-verifier.ts";
import { SignatureVerifier } from "../../../src/gateway/transactions/transaction-checks.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { alice, bob, transferOf } from "../../support/transactions/chain.ts";

/** A legacy transaction of one signature. */
function signedTransfer(): Uint8Array {
  const transaction = new Transaction({
    blockhash: PublicKey.default.toBase58(),
    lastValidBlockHeight: 1,
  });
  transaction.add(transferOf(alice, bob, 1n)).sign(alice);
  return new Uint8Array(transaction.serialize());
}

const fine = signedTransfer();
const forged = fine.map((byte, at) => (at === 5 ? byte ^ 1 : byte));

function opened(): { clock: ManualClock; verifier: PromptVerifier; threads: SignatureVerifier } {
  const clock = new ManualClock();
  const threads = closing(SignatureVerifier.open({ threads: 1, queueMax: 100 }));
  return { clock, threads, verifier: new PromptVerifier(threads, clock) };
}

describe("a lone transaction", () => {
  it("is verified at once, as by the threads", async () => {
    const { verifier, threads } = opened();
    for (const wire of [fine, forged, new Uint8Array(0), new Uint8Array(5000)]) {
      const result = verifier.verify(wire);
      expect(typeof result).toBe("boolean");
      expect(result).toBe(await threads.verify(wire));
    }
  });

  it("goes to the threads while they have others", async () => {
    const { verifier, threads } = opened();
    const waiting = threads.verify(fine);
    const result = verifier.verify(fine);
    expect(result).toBeInstanceOf(Promise);
    expect(await Promise.all([waiting, result])).toEqual([true, true]);
    expect(verifier.verify(fine)).toBe(true);
  });

  it("goes to the threads while submissions wait for the event loop", async () => {
    const { verifier } = opened();
    const result = verifier.verify(fine, true);
    expect(result).toBeInstanceOf(Promise);
    expect(await result).toBe(true);
  });

  it("goes to the threads with many signatures, and as version 1", async () => {
    for (const wire of [Uint8Array.of(3, ...fine.subarray(1)), Uint8Array.of(0x81, 0)]) {
      const result = opened().verifier.verify(wire);
      expect(result).toBeInstanceOf(Promise);
      expect(await result).toBe(false);
    }
  });
});

describe("many transactions", () => {
  it("are verified at once for a bounded share of the time", async () => {
    const { verifier, clock, threads } = opened();
    const kinds = async (count: number): Promise<string> => {
      let text = "";
      for (let i = 0; i < count; i++) {
        const result = verifier.verify(fine);
        text += typeof result === "boolean" ? "now " : "threads ";
        expect(await result).toBe(true);
      }
      return text.trim();
    };
    expect(threads.pending).toBe(0);
    expect(await kinds(6)).toBe("now now now now threads threads");
    await clock.advance(1);
    expect(await kinds(3)).toBe("now now threads");
    await clock.advance(3_600_000);
    expect(await kinds(5)).toBe("now now now now threads");
  });

  it("fill the threads' queue as before", async () => {
    const threads = closing(SignatureVerifier.open({ threads: 1, queueMax: 1 }));
    const verifier = new PromptVerifier(threads, new ManualClock());
    const waiting = threads.verify(fine);
    expect(verifier.verify(fine)).toBeNull();
    expect(await waiting).toBe(true);
  });
});
