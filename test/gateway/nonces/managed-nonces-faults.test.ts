// Managed accounts with killed processes, unavailable or lying nodes, and missing funds.

import { describe, expect, it } from "vitest";
import { KeyPair } from "../../../src/core/key-pair.ts";
import type { NonceInfo } from "../../../src/gateway/nonces/types.ts";
import {
  Disk,
  funding,
  keysOf,
  NonceHarness,
  ownerOf,
  type Process,
  Steps,
  signaturesLamports,
  unsignedTransfer,
} from "./nonce-harness.ts";

const one = ownerOf("one");
const two = ownerOf("two");

describe("a killed process", () => {
  interface Scenario {
    readonly name: string;
    /** The chain already has an earlier state. */
    readonly before: (harness: NonceHarness, name: string) => Promise<Uint8Array | null>;
  }

  const scenarios: Scenario[] = [
    { name: "making an account", before: async () => null },
    {
      name: "adopting an account",
      before: async (harness, name) => {
        const { service } = await harness.start(new Disk(), keysOf(name));
        const info = await harness.managed(service, one);
        return service.coSign(info.nonceAccount, unsignedTransfer(info, { lamports: 3_000_000n }));
      },
    },
  ];

  async function finish(harness: NonceHarness, disk: Disk, name: string): Promise<NonceInfo> {
    const { service } = await harness.start(disk, keysOf(name));
    return harness.managed(service, two);
  }

  it.each(scenarios)(
    "leaves one account, between any two steps of $name",
    async ({ name: scenario, before }) => {
      const harness = await NonceHarness.open();
      let calls = Number.POSITIVE_INFINITY;
      for (let at = 0; at < calls; at++) {
        for (const when of ["before", "after"] as const) {
          const name = `${scenario} ${at} ${when}`;
          const former = await before(harness, name);
          const disk = new Disk();
          const steps = new Steps();
          const process: Process = await harness.start(disk, keysOf(name), steps);
          const loading = steps.log.length;
          steps.kill = { at: loading + at, when };
          const paid = harness.lamports(funding.address);
          const call = process.service.managed(two).catch(() => undefined);
          while (!steps.isDead && !disk.rows.some(({ state }) => state === "ready")) {
            await harness.pass(100);
          }
          if (!steps.isDead) {
            await call;
            calls = Math.min(calls, steps.log.length - loading);
          }
          await harness.pass(at % 2 === 0 ? 0 : 2000); // the sent transaction has landed, or not yet
          const info = await finish(harness, disk, name);
          const keys = keysOf(name);
          expect(info.nonceAccount).toBe(keys.account(0).address);
          expect(disk.rows).toEqual([
            expect.objectContaining({ ...two, index: 0, state: "ready" }),
          ]);
          expect(info.nonce).toBe(harness.nonce(info.nonceAccount)?.value);
          expect(harness.nonce(info.nonceAccount)?.authority).toBe(keys.authority(0).address);
          expect(harness.lamports(info.nonceAccount)).toBe(harness.rent);
          expect(harness.nonce(keys.account(1).address)).toBeNull();
          const spent = paid - harness.lamports(funding.address) - (former ? 0n : harness.rent);
          expect(spent).toBeLessThanOrEqual(3n * signaturesLamports);
          if (!former) continue;
          const signature = harness.run.chain.send(former);
          await harness.pass(1000);
          expect(harness.run.chain.status(signature)).toBeNull();
        }
      }
      expect(calls).toBeGreaterThan(8);
    },
  );
});

describe("a failure of the node or the funding key", () => {
  it("is reported to the operator with the balance, and to the caller without it", async () => {
    const harness = await NonceHarness.open();
    const poor = new KeyPair(new Uint8Array(32).fill(0xf1));
    const keys = keysOf("poor", poor);
    const { service, node } = await harness.start(new Disk(), keys);
    const left = harness.run.chain.minimumBalanceForRentExemption(0);
    const needed = harness.rent + signaturesLamports + left;
    const refusal = {
      reason: "nonce_failed",
      message:
        `nonce account ${keys.account(0).address}: this service cannot pay for it at present; ` +
        "ask its operator",
      details: undefined,
    };
    const checkReport = (balance: bigint) => {
      expect(harness.warnings.at(-1)).toBe(
        `nonces: nonce account not created: funding key ${poor.address}: ` +
          `expected at least ${needed} lamports, got ${balance}; transfer SOL to it`,
      );
      expect(service.snapshot().fundingLamports).toBe(balance);
    };
    expect(service.snapshot().fundingLamports).toBeNull();
    await expect(harness.until(service.managed(one))).rejects.toMatchObject(refusal);
    checkReport(0n);
    harness.run.chain.airdrop(poor.address, needed - 1n);
    await harness.pass(1000);
    // Repeated for two seconds without a new query.
    node.down.add("accounts");
    await expect(service.managed(one)).rejects.toMatchObject(refusal);
    node.down.clear();
    await harness.pass(1500);
    await expect(harness.until(service.managed(one))).rejects.toMatchObject(refusal);
    checkReport(needed - 1n);
    expect(node.sent.size).toBe(0);
    harness.run.chain.airdrop(poor.address, 1n);
    await harness.pass(2500);
    await harness.managed(service, one);
    expect(harness.lamports(poor.address)).toBe(left);
  });

  it("is retried if the node is briefly unavailable", async () => {
    const harness = await NonceHarness.open();
    const { service, node } = await harness.start(new Disk(), keysOf("away"));
    node.down.add("sendTransaction").add("signatureStatuses");
    const call = service.managed(one);
    await harness.pass(1200);
    node.down.clear();
    await harness.until(call);
    expect(node.sent.size).toBe(1);
  });

  it.each(["accounts", "minimumBalance", "latestBlockhash"])(
    "is reported when %s keeps failing",
    async (name) => {
      const harness = await NonceHarness.open();
      const { service, node, store } = await harness.start(new Disk(), keysOf(name));
      node.down.add(name);
      await expect(harness.until(service.managed(one))).rejects.toMatchObject({
        reason: "rpc_failed",
      });
      node.down.clear();
      store.isDown = true;
      await expect(harness.until(service.managed(one))).rejects.toMatchObject({
        reason: "store_failed",
      });
      store.isDown = false;
      await harness.managed(service, one);
      expect(node.sent.size).toBe(1);
    },
  );

  it("in the final store write does not repeat the creation", async () => {
    const harness = await NonceHarness.open();
    const disk = new Disk();
    const { service, node, store } = await harness.start(disk, keysOf("end"));
    const call = service.managed(one).catch((error: unknown) => error);
    await harness.pass(300);
    expect(disk.rows.length).toBe(1);
    store.isDown = true;
    expect(await harness.until(call)).toMatchObject({ reason: "store_failed" });
    expect(service.ownerOf(keysOf("end").account(0).address)).toBeNull();
    store.isDown = false;
    await harness.managed(service, one);
    expect(node.sent.size).toBe(1);
  });
});

describe("a node that lies", () => {
  it("about the rent cannot drain the funding key", async () => {
    const harness = await NonceHarness.open();
    const { service, node } = await harness.start(new Disk(), keysOf("rent"));
    node.minimumOverride = () => 500_000_000_000n;
    await expect(harness.until(service.managed(one))).rejects.toMatchObject({
      reason: "rpc_failed",
      message: expect.stringContaining("10000000"),
    });
    expect(node.sent.size).toBe(0);
  });

  it("about the account gets only creations and advances signed", async () => {
    const harness = await NonceHarness.open();
    const keys = keysOf("content");
    const { address } = keys.account(0);
    const { service, node } = await harness.start(new Disk(), keys);
    const foreign = Buffer.alloc(80, 1);
    foreign.writeUInt32LE(1, 0);
    foreign.writeUInt32LE(1, 4);
    for (const [owner, data, got] of [
      ["11111111111111111111111111111111", foreign, "authority"],
      [funding.address, Buffer.alloc(0), "0 bytes"],
      ["11111111111111111111111111111111", Buffer.alloc(80), "80 bytes"],
    ] as const) {
      node.accountsOverride = (actual, each) =>
        each === address ? { owner, data, lamports: 1n } : actual;
      await expect(harness.until(service.managed(one))).rejects.toMatchObject({
        reason: "nonce_failed",
        message: expect.stringContaining(got),
      });
      await harness.pass(2500); // the error is repeated for so long
    }
    expect(node.sent.size).toBe(0);
    node.accountsOverride = (actual) => actual;
    await harness.managed(service, one);
  });

  it("about unconfirmed outcomes is not trusted", async () => {
    const harness = await NonceHarness.open();
    const { service, node } = await harness.start(new Disk(), keysOf("fork"));
    let isFork = true;
    node.statusOverride = (actual) =>
      isFork ? { err: { InstructionError: [0, "x"] }, commitment: "processed" } : actual;
    node.accountsOverride = (actual, each) => (isFork && each !== funding.address ? null : actual);
    service.managed(one).catch(() => undefined);
    await harness.pass(5000);
    isFork = false;
    await harness.managed(service, one);
    expect(node.sent.size).toBe(1);
  });

  it("that never shows the account is given up after few fees", async () => {
    const harness = await NonceHarness.open();
    const keys = keysOf("blind");
    const { address } = keys.account(0);
    const { service, node } = await harness.start(new Disk(), keys);
    node.accountsOverride = (actual, each) => (each === address ? null : actual);
    const before = harness.lamports(funding.address);
    await expect(harness.managed(service, one)).rejects.toMatchObject({ reason: "nonce_failed" });
    expect(before - harness.lamports(funding.address)).toBe(harness.rent + signaturesLamports);
    await expect(harness.managed(service, one)).rejects.toMatchObject({ reason: "nonce_failed" });
    const spent = before - harness.lamports(funding.address) - harness.rent;
    expect(spent).toBeLessThanOrEqual(5n * signaturesLamports);
    node.accountsOverride = (actual) => actual;
    await harness.pass(30_000);
    expect((await harness.managed(service, one)).nonceAccount).toBe(address);
    expect(harness.lamports(address)).toBe(harness.rent);
  });

  it("that forgets every outcome is given up, and no nonce is returned", async () => {
    const harness = await NonceHarness.open();
    const { service, node } = await harness.start(new Disk(), keysOf("forgets"));
    node.statusOverride = () => null;
    await expect(harness.managed(service, one)).rejects.toMatchObject({
      reason: "nonce_failed",
      message: expect.stringContaining("no landing before its blockhash expired"),
    });
    const sent = node.sent.size;
    expect(sent).toBe(3);
    await expect(harness.until(service.managed(one))).rejects.toMatchObject({
      reason: "nonce_failed",
    });
    expect(node.sent.size).toBe(sent); // pauses
    node.statusOverride = (actual) => actual;
    await harness.pass(30_000);
    await harness.managed(service, one);
  });
});
