// The signature verifier through the addon: results, a full queue, close, and the end of its
// environment. Native tests check the verification itself.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { SignatureVerifier } from "../../../src/gateway/transactions/transaction-checks.ts";
import { native } from "../../../src/relay/data-plane/native.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { closing } from "../../support/closing.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

const payer = new SandboxKeyPair(new Uint8Array(32).fill(4));
const fine = v1Transfer(payer, new Uint8Array(32).fill(7), 1n, { blockhash: new Uint8Array(32) });

/** With one flipped bit. */
function corrupted(at: number): Uint8Array {
  const copy = Uint8Array.from(fine);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

describe("signature verifier", () => {
  it("answers each transaction in any order of completion", async () => {
    for (const threads of [1, 2, 5]) {
      const verifier = closing(SignatureVerifier.open({ threads, queueMax: 2000 }));
      const wires = Array.from({ length: 1500 }, (_, i) =>
        i % 3 === 0 ? corrupted(i % 200) : fine,
      );
      const answers = wires.map(
        (wire) => verifier.verify(wire) ?? expect.fail("the queue is full"),
      );
      expect(verifier.pending).toBe(1500);
      expect(await Promise.all(answers)).toEqual(wires.map((_, i) => i % 3 !== 0));
      expect(verifier.pending).toBe(0);
    }
  });

  it("wakes up after every result", async () => {
    const verifier = closing(SignatureVerifier.open({ threads: 2, queueMax: 4 }));
    for (let i = 0; i < 200; i++) expect(await verifier.verify(fine)).toBe(true);
    expect(await verifier.verify(new Uint8Array(0))).toBe(false);
    expect(await verifier.verify(new Uint8Array(5000))).toBe(false);
  });

  it("copies the bytes", async () => {
    const verifier = closing(SignatureVerifier.open({ threads: 1, queueMax: 4 }));
    const wire = Uint8Array.from(fine);
    const answer = verifier.verify(wire);
    wire.fill(0);
    expect(await answer).toBe(true);
  });

  it("refuses immediately when the queue is full", async () => {
    const verifier = closing(SignatureVerifier.open({ threads: 1, queueMax: 3 }));
    const answers = [fine, fine, fine].map((wire) => verifier.verify(wire) ?? expect.fail("full"));
    expect(verifier.verify(fine)).toBeNull();
    expect(verifier.pending).toBe(3);
    expect(await Promise.all(answers)).toEqual([true, true, true]);
    expect(await verifier.verify(fine)).toBe(true);
  });

  it("rejects waiting and later transactions after close", async () => {
    const verifier = SignatureVerifier.open({ threads: 2, queueMax: 1000 });
    const answers = Array.from(
      { length: 1000 },
      () => verifier.verify(fine) ?? expect.fail("full"),
    );
    const settled = Promise.allSettled(answers);
    verifier.close();
    verifier.close();
    expect(verifier.pending).toBe(0);
    const reason = expect.objectContaining({ reason: "http_closing" });
    for (const one of await settled) expect(one).toEqual({ status: "rejected", reason });
    await expect(verifier.verify(fine)).rejects.toEqual(reason);
  });

  it("rejects invalid numbers and a second listener", () => {
    const open = (threads: number, queueMax: number) => () =>
      SignatureVerifier.open({ threads, queueMax });
    expect(open(0, 1)).toThrow("1 to 64 threads");
    expect(open(65, 1)).toThrow("0 to 64");
    expect(open(1, 65_537)).toThrow(expect.objectContaining({ reason: "system" }));
    const verifier = closing(new (native().SignatureVerifier)(1, 1));
    verifier.onResults(() => {});
    expect(() => verifier.onResults(() => {})).toThrow("once");
    verifier.close();
    expect(() => verifier.submit(1, fine)).toThrow("closed");
    expect(() => verifier.drain(new Uint8Array(8))).toThrow("closed");
  });

  it("ends with its environment while results arrive", async () => {
    for (let round = 0; round < 5; round++) {
      const worker = new Worker(
        `const { workerData, parentPort } = require("node:worker_threads");
         const addon = require("node-gyp-build")(workerData.root);
         const verifier = new addon.SignatureVerifier(2, 4096);
         const into = new Uint8Array(8);
         verifier.onResults(() => { verifier.drain(into); parentPort.postMessage("rung"); });
         for (let i = 0; i < 4096; i++) verifier.submit(i, workerData.wire);
         parentPort.on("message", () => {}); // the notifier alone does not keep the process alive`,
        { eval: true, workerData: { root: process.cwd(), wire: fine } },
      );
      expect(await once(worker, "message")).toEqual(["rung"]);
      await worker.terminate();
    }
  });
});
