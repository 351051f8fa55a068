// Managed accounts on the sandbox chain: created once, found again, never shared.

import { describe, expect, it } from "vitest";
import { managedNonceLimits } from "../../../src/gateway/nonces/managed-nonces.ts";
import type { NonceInfo } from "../../../src/gateway/nonces/types.ts";
import {
  bytesOf,
  Disk,
  funding,
  keysOf,
  ownerOf,
  Stage,
  signaturesLamports,
  unsignedTransfer,
} from "./nonce-stage.ts";

const one = ownerOf("one");
const two = ownerOf("two");

describe("managed nonces", () => {
  it("are created at the first call and never change", async () => {
    const stage = await Stage.open();
    const disk = new Disk();
    const keys = keysOf("first");
    const { service, node } = await stage.start(disk, keys);
    const before = stage.lamports(funding.address);
    const info = await stage.managed(service, one);
    const address = keys.account(0).address;
    expect(info).toEqual({
      nonce: stage.nonce(address)?.value,
      nonceAccount: address,
      nonceAuthority: keys.authority(0).address,
    });
    expect(disk.rows).toEqual([
      { ...one, index: 0, address, state: "ready", createdMs: expect.any(Number) },
    ]);
    expect(stage.lamports(address)).toBe(stage.rent);
    expect(before - stage.lamports(funding.address)).toBe(stage.rent + signaturesLamports);
    const sent = node.sent.size;
    expect(await stage.until(service.managed(one))).toEqual(info);
    const later = await stage.start(disk, keys);
    expect(await stage.until(later.service.managed(one))).toEqual(info);
    expect([sent, node.sent.size, later.node.sent.size]).toEqual([1, 1, 0]);
  });

  it("are one per key, each with its own authority", async () => {
    const stage = await Stage.open();
    const { service } = await stage.start(new Disk(), keysOf("each"));
    const infos = await stage.until(Promise.all([service.managed(one), service.managed(two)]));
    const [first, second] = infos;
    expect(first.nonceAccount).not.toBe(second.nonceAccount);
    expect(first.nonceAuthority).not.toBe(second.nonceAuthority);
    expect(service.ownerOf(first.nonceAccount)).toEqual(one);
    expect(service.ownerOf(second.nonceAccount)).toEqual(two);
    expect(service.ownerOf(first.nonceAuthority)).toBeNull();
  });

  it("are created once for any number of waiting calls", async () => {
    const stage = await Stage.open();
    const { service, node } = await stage.start(new Disk(), keysOf("many"));
    const calls = Array.from({ length: 30 }, () => service.managed(one));
    const infos = await stage.until(Promise.all(calls));
    expect(new Set(infos.map(({ nonceAccount }) => nonceAccount)).size).toBe(1);
    expect(node.sent.size).toBe(1);
  });

  it("have one account and owner for two processes on one store", async () => {
    const stage = await Stage.open();
    const disk = new Disk();
    const keys = keysOf("processes");
    const [left, right] = [await stage.start(disk, keys), await stage.start(disk, keys)];
    const infos = await stage.until(
      Promise.all([
        left.service.managed(one),
        right.service.managed(one),
        right.service.managed(two),
      ]),
    );
    expect(infos[0].nonceAccount).toBe(infos[1].nonceAccount);
    expect(infos[2].nonceAccount).not.toBe(infos[0].nonceAccount);
    expect(disk.rows.length).toBe(2);
    for (const { service } of [left, right]) {
      expect(service.ownerOf(infos[0].nonceAccount)).toEqual(one);
      expect(service.ownerOf(infos[2].nonceAccount)).toEqual(two);
    }
    expect(stage.nonce(keys.account(2).address)).toBeNull();
  });

  it("let a call wait at most 8 s while the creation continues", async () => {
    const stage = await Stage.open();
    const { service, node } = await stage.start(new Disk(), keysOf("slow"));
    node.losesAll = true;
    const begin = stage.clock.monotonicNs();
    await expect(stage.until(service.managed(one))).rejects.toMatchObject({
      reason: "nonce_pending",
      details: { retryAfterSeconds: 2 },
    });
    expect(stage.clock.monotonicNs() - begin).toBe(8_000_000_000n);
    expect(node.sent.size).toBe(1);
    node.losesAll = false; // the same bytes, resent
    await stage.pass(10_000);
    expect((await stage.until(service.managed(one), 0)).nonceAccount).toBe(
      keysOf("slow").account(0).address,
    );
    expect(node.sent.size).toBe(1);
  });

  it("use another blockhash only after the first expired", async () => {
    const stage = await Stage.open();
    const { service, node, steps } = await stage.start(new Disk(), keysOf("lost"));
    node.losesAll = true;
    const { slotNs } = stage.run;
    const lifeMs = Number((151n * slotNs) / 1_000_000n);
    service.managed(one).catch(() => undefined);
    await stage.pass(29_000);
    expect(steps.log).not.toContain("isBlockhashValid"); // nodes may not know so recent a blockhash
    await stage.pass(lifeMs - 31_000);
    expect(node.sent.size).toBe(1);
    await stage.pass(12_000);
    expect(node.sent.size).toBe(2);
    node.losesAll = false;
    const { nonceAccount } = await stage.managed(service, one);
    expect(stage.lamports(nonceAccount)).toBe(stage.rent);
  });

  it("cannot be blocked by lamports that others send to the address", async () => {
    const stage = await Stage.open();
    const keys = keysOf("early");
    stage.run.chain.airdrop(keys.account(0).address, 900_000n);
    await stage.pass(1000);
    const { service } = await stage.start(new Disk(), keys);
    const { nonceAccount } = await stage.managed(service, one);
    expect(stage.lamports(nonceAccount)).toBe(stage.rent);
    expect(stage.nonce(nonceAccount)?.authority).toBe(keys.authority(0).address);
  });

  it("are created with limited concurrency, and every caller is served", async () => {
    const managed = { ...managedNonceLimits, creationsMax: 2 };
    const stage = await Stage.open({ managed, waitMs: 60_000 });
    const disk = new Disk();
    const { service } = await stage.start(disk, keysOf("crowd"));
    const names = ["a", "b", "c", "d", "e"];
    const calls = Promise.all(names.map((name) => service.managed(ownerOf(name))));
    await stage.pass(100);
    expect(disk.rows.length).toBe(2);
    expect(service.snapshot()).toEqual({ managed: 0, making: 5, inUse: 0 });
    const infos = await stage.until(calls);
    expect(new Set(infos.map(({ nonceAccount }) => nonceAccount)).size).toBe(5);
    expect(service.snapshot()).toEqual({ managed: 5, making: 0, inUse: 5 });
  });

  it("are disabled without keys", async () => {
    const stage = await Stage.open();
    const { service } = await stage.start(new Disk(), null);
    await expect(service.managed(one)).rejects.toMatchObject({ reason: "nonce_unavailable" });
    expect(service.ownerOf(keysOf("first").account(0).address)).toBeNull();
  });

  it("leave no timer and reject waiting calls when the service closes", async () => {
    const stage = await Stage.open();
    const { service, node } = await stage.start(new Disk(), keysOf("closing"));
    node.losesAll = true;
    const call = service.managed(one).catch((error: unknown) => error);
    await stage.pass(1000);
    await service.close();
    expect(await call).toMatchObject({ reason: "nonce_pending" });
    expect(stage.clock.pending).toBe(0);
  });
});

describe("accounts that are on the chain already", () => {
  /** An account with a signed transaction of a former owner that could still land. */
  async function lost(stage: Stage, name: string): Promise<{ info: NonceInfo; wire: Uint8Array }> {
    const { service } = await stage.start(new Disk(), keysOf(name));
    const info = await stage.managed(service, one);
    return { info, wire: await service.coSign(info.nonceAccount, unsignedTransfer(info)) };
  }

  it("are found after the loss of the database, and advanced before use", async () => {
    const stage = await Stage.open();
    const { info, wire } = await lost(stage, "lost");
    const before = stage.lamports(funding.address);
    const { service } = await stage.start(new Disk(), keysOf("lost"));
    const anew = await stage.managed(service, two);
    expect(anew.nonceAccount).toBe(info.nonceAccount);
    expect(anew.nonce).not.toBe(info.nonce);
    expect(anew.nonce).toBe(stage.nonce(info.nonceAccount)?.value);
    expect(before - stage.lamports(funding.address)).toBe(signaturesLamports);
    expect(service.ownerOf(info.nonceAccount)).toEqual(two);
    const signature = stage.run.chain.send(wire);
    await stage.pass(2000);
    expect(stage.run.chain.status(signature)).toBeNull();
    const signed = await service.coSign(
      anew.nonceAccount,
      unsignedTransfer(anew, { lamports: 2_000_000n }),
    );
    const landed = stage.run.chain.send(signed);
    await stage.pass(2000);
    expect(stage.run.chain.status(landed)?.err).toBeNull();
  });

  it("have no owner before they are advanced", async () => {
    const stage = await Stage.open();
    const { info } = await lost(stage, "nobody");
    const { service, node } = await stage.start(new Disk(), keysOf("nobody"));
    node.losesAll = true;
    service.managed(two).catch(() => undefined);
    await stage.pass(5000);
    expect(node.sent.size).toBe(1);
    expect(service.ownerOf(info.nonceAccount)).toBeNull();
    await expect(service.coSign(info.nonceAccount, unsignedTransfer(info))).rejects.toMatchObject({
      reason: "co_signing_refused",
    });
  });

  it("are not returned with the old value of a lagging node", async () => {
    const stage = await Stage.open();
    const { info } = await lost(stage, "behind");
    const { service, node } = await stage.start(new Disk(), keysOf("behind"));
    const old = stage.run.chain.account(info.nonceAccount, "confirmed");
    let isBehind = true;
    node.accountsOverride = (truth, address) =>
      isBehind && address === info.nonceAccount ? old : truth;
    service.managed(two).catch(() => undefined);
    await stage.pass(7000);
    expect(stage.nonce(info.nonceAccount)?.value).not.toBe(info.nonce);
    expect(service.ownerOf(info.nonceAccount)).toBeNull();
    isBehind = false;
    expect((await stage.managed(service, two)).nonce).toBe(stage.nonce(info.nonceAccount)?.value);
    expect(node.sent.size).toBe(1);
  });

  it("are created again if another chain does not have them", async () => {
    const stage = await Stage.open();
    const disk = new Disk();
    const keys = keysOf("other chain");
    const { address } = keys.account(0);
    disk.add({ ...one, index: 0, address, state: "ready", createdMs: 1 });
    const { service, node } = await stage.start(disk, keys);
    const info = await stage.managed(service, one);
    expect(info.nonceAccount).toBe(address);
    expect(stage.nonce(address)?.value).toBe(info.nonce);
    expect(node.sent.size).toBe(1);
  });

  it("are not created again because a node lags", async () => {
    const stage = await Stage.open();
    const disk = new Disk();
    const first = await stage.start(disk, keysOf("lags"));
    const info = await stage.managed(first.service, one);
    const { service, node } = await stage.start(disk, keysOf("lags"));
    node.accountsOverride = () => null;
    const call = service.managed(one);
    await stage.pass(3000);
    node.accountsOverride = (truth) => truth;
    expect(await stage.until(call)).toEqual(info);
    expect(node.sent.size).toBe(0);
  });

  it("that another key file started cost nothing", async () => {
    const stage = await Stage.open();
    const disk = new Disk();
    const { address } = keysOf("begun file").account(0);
    disk.add({ ...one, index: 0, address, state: "making", createdMs: 1 });
    const { service, node } = await stage.start(disk, keysOf("other file"));
    await expect(stage.until(service.managed(one))).rejects.toMatchObject({
      reason: "nonce_failed",
    });
    expect(node.sent.size).toBe(0);
  });

  it("that another key file created are reported as such", async () => {
    const stage = await Stage.open();
    const disk = new Disk();
    const { address } = keysOf("old file").account(0);
    disk.add({ ...one, index: 0, address, state: "ready", createdMs: 1 });
    const { service, node } = await stage.start(disk, keysOf("new file"));
    for (const call of [service.managed(one), service.coSign(address, new Uint8Array(1))]) {
      await expect(call).rejects.toMatchObject({
        reason: "nonce_failed",
        message: expect.stringContaining(address),
      });
    }
    expect((await stage.managed(service, two)).nonceAccount).toBe(
      keysOf("new file").account(1).address,
    );
    expect(node.sent.size).toBe(1);
  });
});

describe("the order of keys", () => {
  it("follows the derivation and never reuses an index", async () => {
    const stage = await Stage.open();
    const disk = new Disk();
    const keys = keysOf("order");
    disk.add({ ...one, index: 7, address: keys.account(7).address, state: "ready", createdMs: 1 });
    const { service } = await stage.start(disk, keys);
    const { nonceAccount } = await stage.managed(service, two);
    expect(bytesOf(nonceAccount)).toEqual(keys.account(8).publicKey);
  });
});
