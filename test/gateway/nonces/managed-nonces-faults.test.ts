// Managed accounts with killed processes, unavailable or lying nodes, and missing funds.

import { describe, expect, it } from "vitest";
import { KeyPair } from "../../../src/core/key-pair.ts";
import type { NonceInfo } from "../../../src/gateway/nonces/types.ts";
import {
  Disk,
  funding,
  keysOf,
  ownerOf,
  type Process,
  Stage,
  Steps,
  signaturesLamports,
  unsignedTransfer,
} from "./nonce-stage.ts";

const one = ownerOf("one");
const two = ownerOf("two");

describe("a process that is killed", () => {
  interface Scenario {
    readonly name: string;
    /** The chain already has an earlier state. */
    readonly before: (stage: Stage, name: string) => Promise<Uint8Array | null>;
  }

  const scenarios: Scenario[] = [
    { name: "making an account", before: async () => null },
    {
      name: "adopting an account",
      before: async (stage, name) => {
        const { service } = await stage.start(new Disk(), keysOf(name));
        const info = await stage.managed(service, one);
        return service.coSign(info.nonceAccount, unsignedTransfer(info, { lamports: 3_000_000n }));
      },
    },
  ];

  async function finish(stage: Stage, disk: Disk, name: string): Promise<NonceInfo> {
    const { service } = await stage.start(disk, keysOf(name));
    return stage.managed(service, two);
  }

  it.each(scenarios)(
    "between any two steps of $name leaves one account",
    async ({ name: scenario, before }) => {
      const stage = await Stage.open();
      let calls = Number.POSITIVE_INFINITY;
      for (let at = 0; at < calls; at++) {
        for (const when of ["before", "after"] as const) {
          const name = `${scenario} ${at} ${when}`;
          const former = await before(stage, name);
          const disk = new Disk();
          const steps = new Steps();
          const process: Process = await stage.start(disk, keysOf(name), steps);
          const loading = steps.log.length;
          steps.kill = { at: loading + at, when };
          const paid = stage.lamports(funding.address);
          const call = process.service.managed(two).catch(() => undefined);
          while (!steps.isDead && !disk.rows.some(({ state }) => state === "ready")) {
            await stage.pass(100);
          }
          if (!steps.isDead) {
            await call;
            calls = Math.min(calls, steps.log.length - loading);
          }
          await stage.pass(at % 2 === 0 ? 0 : 2000); // the sent transaction has landed, or not yet
          const info = await finish(stage, disk, name);
          const keys = keysOf(name);
          expect(info.nonceAccount).toBe(keys.account(0).address);
          expect(disk.rows).toEqual([
            expect.objectContaining({ ...two, index: 0, state: "ready" }),
          ]);
          expect(info.nonce).toBe(stage.nonce(info.nonceAccount)?.value);
          expect(stage.nonce(info.nonceAccount)?.authority).toBe(keys.authority(0).address);
          expect(stage.lamports(info.nonceAccount)).toBe(stage.rent);
          expect(stage.nonce(keys.account(1).address)).toBeNull();
          const spent = paid - stage.lamports(funding.address) - (former ? 0n : stage.rent);
          expect(spent).toBeLessThanOrEqual(3n * signaturesLamports);
          if (!former) continue;
          const signature = stage.run.chain.send(former);
          await stage.pass(1000);
          expect(stage.run.chain.status(signature)).toBeNull();
        }
      }
      expect(calls).toBeGreaterThan(8);
    },
  );
});

describe("a failure of the node or the funding key", () => {
  it("is reported with address, balance and needed amount", async () => {
    const stage = await Stage.open();
    const poor = new KeyPair(new Uint8Array(32).fill(0xf1));
    const keys = keysOf("poor", poor);
    const { service, node } = await stage.start(new Disk(), keys);
    const left = stage.run.chain.minimumBalanceForRentExemption(0);
    const needed = stage.rent + signaturesLamports + left;
    const refusal = (balance: bigint) => ({
      reason: "nonce_failed",
      message: `funding key ${poor.address}: expected at least ${needed} lamports, got ${balance}; transfer SOL to it`,
      details: { address: poor.address, balanceLamports: balance, neededLamports: needed },
    });
    await expect(stage.until(service.managed(one))).rejects.toMatchObject(refusal(0n));
    stage.run.chain.airdrop(poor.address, needed - 1n);
    await stage.pass(1000);
    // Repeated for two seconds without a new query.
    node.down.add("accounts");
    await expect(service.managed(one)).rejects.toMatchObject(refusal(0n));
    node.down.clear();
    await stage.pass(1500);
    await expect(stage.until(service.managed(one))).rejects.toMatchObject(refusal(needed - 1n));
    expect(node.sent.size).toBe(0);
    stage.run.chain.airdrop(poor.address, 1n);
    await stage.pass(2500);
    await stage.managed(service, one);
    expect(stage.lamports(poor.address)).toBe(left);
  });

  it("is retried if the node is briefly unavailable", async () => {
    const stage = await Stage.open();
    const { service, node } = await stage.start(new Disk(), keysOf("away"));
    node.down.add("sendTransaction").add("signatureStatuses");
    const call = service.managed(one);
    await stage.pass(1200);
    node.down.clear();
    await stage.until(call);
    expect(node.sent.size).toBe(1);
  });

  it.each(["accounts", "minimumBalance", "latestBlockhash"])(
    "is reported when %s keeps failing",
    async (name) => {
      const stage = await Stage.open();
      const { service, node, store } = await stage.start(new Disk(), keysOf(name));
      node.down.add(name);
      await expect(stage.until(service.managed(one))).rejects.toMatchObject({
        reason: "rpc_failed",
      });
      node.down.clear();
      store.isDown = true;
      await expect(stage.until(service.managed(one))).rejects.toMatchObject({
        reason: "store_failed",
      });
      store.isDown = false;
      await stage.managed(service, one);
      expect(node.sent.size).toBe(1);
    },
  );

  it("in the final store write does not repeat the creation", async () => {
    const stage = await Stage.open();
    const disk = new Disk();
    const { service, node, store } = await stage.start(disk, keysOf("end"));
    const call = service.managed(one).catch((error: unknown) => error);
    await stage.pass(300);
    expect(disk.rows.length).toBe(1);
    store.isDown = true;
    expect(await stage.until(call)).toMatchObject({ reason: "store_failed" });
    expect(service.ownerOf(keysOf("end").account(0).address)).toBeNull();
    store.isDown = false;
    await stage.managed(service, one);
    expect(node.sent.size).toBe(1);
  });
});

describe("a node that lies", () => {
  it("about the rent cannot drain the funding key", async () => {
    const stage = await Stage.open();
    const { service, node } = await stage.start(new Disk(), keysOf("rent"));
    node.minimumOverride = () => 500_000_000_000n;
    await expect(stage.until(service.managed(one))).rejects.toMatchObject({
      reason: "rpc_failed",
      message: expect.stringContaining("10000000"),
    });
    expect(node.sent.size).toBe(0);
  });

  it("about the account gets only creations and advances signed", async () => {
    const stage = await Stage.open();
    const keys = keysOf("content");
    const { address } = keys.account(0);
    const { service, node } = await stage.start(new Disk(), keys);
    const foreign = Buffer.alloc(80, 1);
    foreign.writeUInt32LE(1, 0);
    foreign.writeUInt32LE(1, 4);
    for (const [owner, data, got] of [
      ["11111111111111111111111111111111", foreign, "authority"],
      [funding.address, Buffer.alloc(0), "0 bytes"],
      ["11111111111111111111111111111111", Buffer.alloc(80), "80 bytes"],
    ] as const) {
      node.accountsOverride = (truth, each) =>
        each === address ? { owner, data, lamports: 1n } : truth;
      await expect(stage.until(service.managed(one))).rejects.toMatchObject({
        reason: "nonce_failed",
        message: expect.stringContaining(got),
      });
      await stage.pass(2500); // the error is repeated for so long
    }
    expect(node.sent.size).toBe(0);
    node.accountsOverride = (truth) => truth;
    await stage.managed(service, one);
  });

  it("about unconfirmed outcomes is not trusted", async () => {
    const stage = await Stage.open();
    const { service, node } = await stage.start(new Disk(), keysOf("fork"));
    let isFork = true;
    node.statusOverride = (truth) =>
      isFork ? { err: { InstructionError: [0, "x"] }, commitment: "processed" } : truth;
    node.accountsOverride = (truth, each) => (isFork && each !== funding.address ? null : truth);
    service.managed(one).catch(() => undefined);
    await stage.pass(5000);
    isFork = false;
    await stage.managed(service, one);
    expect(node.sent.size).toBe(1);
  });

  it("that never shows the account is given up after few fees", async () => {
    const stage = await Stage.open();
    const keys = keysOf("blind");
    const { address } = keys.account(0);
    const { service, node } = await stage.start(new Disk(), keys);
    node.accountsOverride = (truth, each) => (each === address ? null : truth);
    const before = stage.lamports(funding.address);
    await expect(stage.managed(service, one)).rejects.toMatchObject({ reason: "nonce_failed" });
    expect(before - stage.lamports(funding.address)).toBe(stage.rent + signaturesLamports);
    await expect(stage.managed(service, one)).rejects.toMatchObject({ reason: "nonce_failed" });
    const spent = before - stage.lamports(funding.address) - stage.rent;
    expect(spent).toBeLessThanOrEqual(5n * signaturesLamports);
    node.accountsOverride = (truth) => truth;
    await stage.pass(30_000);
    expect((await stage.managed(service, one)).nonceAccount).toBe(address);
    expect(stage.lamports(address)).toBe(stage.rent);
  });

  it("that forgets every outcome is given up, and no nonce is returned", async () => {
    const stage = await Stage.open();
    const { service, node } = await stage.start(new Disk(), keysOf("forgets"));
    node.statusOverride = () => null;
    await expect(stage.managed(service, one)).rejects.toMatchObject({
      reason: "nonce_failed",
      message: expect.stringContaining("no landing before its blockhash expired"),
    });
    const sent = node.sent.size;
    expect(sent).toBe(3);
    await expect(stage.until(service.managed(one))).rejects.toMatchObject({
      reason: "nonce_failed",
    });
    expect(node.sent.size).toBe(sent); // pauses
    node.statusOverride = (truth) => truth;
    await stage.pass(30_000);
    await stage.managed(service, one);
  });
});
