// Managed accounts on the sandbox chain: created once, found again, never shared.

import { describe, expect, it } from "vitest";
import { managedNonceLimits } from "../../../src/gateway/nonces/managed-nonces.ts";
import type { NonceInfo } from "../../../src/gateway/nonces/types.ts";
import {
  bytesOf,
  Disk,
  funding,
  keysOf,
  NonceHarness,
  ownerOf,
  signaturesLamports,
  unsignedTransfer,
} from "./nonce-harness.ts";

const one = ownerOf("one");
const two = ownerOf("two");

describe("managed nonces", () => {
  it("are created at the first call and never change", async () => {
    const harness = await NonceHarness.open();
    const disk = new Disk();
    const keys = keysOf("first");
    const { service, node } = await harness.start(disk, keys);
    const before = harness.lamports(funding.address);
    const info = await harness.managed(service, one);
    const address = keys.account(0).address;
    expect(info).toEqual({
      nonce: harness.nonce(address)?.value,
      nonceAccount: address,
      nonceAuthority: keys.authority(0).address,
    });
    expect(disk.rows).toEqual([
      { ...one, index: 0, address, state: "ready", createdMs: expect.any(Number) },
    ]);
    expect(harness.lamports(address)).toBe(harness.rent);
    expect(before - harness.lamports(funding.address)).toBe(harness.rent + signaturesLamports);
    const sent = node.sent.size;
    expect(await harness.until(service.managed(one))).toEqual(info);
    const later = await harness.start(disk, keys);
    expect(await harness.until(later.service.managed(one))).toEqual(info);
    expect([sent, node.sent.size, later.node.sent.size]).toEqual([1, 1, 0]);
  });

  it("are one per key, each with its own authority", async () => {
    const harness = await NonceHarness.open();
    const { service } = await harness.start(new Disk(), keysOf("each"));
    const infos = await harness.until(Promise.all([service.managed(one), service.managed(two)]));
    const [first, second] = infos;
    expect(first.nonceAccount).not.toBe(second.nonceAccount);
    expect(first.nonceAuthority).not.toBe(second.nonceAuthority);
    expect(service.ownerOf(first.nonceAccount)).toEqual(one);
    expect(service.ownerOf(second.nonceAccount)).toEqual(two);
    expect(service.ownerOf(first.nonceAuthority)).toBeNull();
  });

  it("are created once for any number of waiting calls", async () => {
    const harness = await NonceHarness.open();
    const { service, node } = await harness.start(new Disk(), keysOf("many"));
    const calls = Array.from({ length: 30 }, () => service.managed(one));
    const infos = await harness.until(Promise.all(calls));
    expect(new Set(infos.map(({ nonceAccount }) => nonceAccount)).size).toBe(1);
    expect(node.sent.size).toBe(1);
  });

  it("have one account and owner for two processes on one store", async () => {
    const harness = await NonceHarness.open();
    const disk = new Disk();
    const keys = keysOf("processes");
    const [left, right] = [await harness.start(disk, keys), await harness.start(disk, keys)];
    const infos = await harness.until(
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
    expect(harness.nonce(keys.account(2).address)).toBeNull();
  });

  it("let a call wait at most 8 s while the creation continues", async () => {
    const harness = await NonceHarness.open();
    const { service, node } = await harness.start(new Disk(), keysOf("slow"));
    node.losesAll = true;
    const begin = harness.clock.monotonicNs();
    await expect(harness.until(service.managed(one))).rejects.toMatchObject({
      reason: "nonce_pending",
      details: { retryAfterSeconds: 2 },
    });
    expect(harness.clock.monotonicNs() - begin).toBe(8_000_000_000n);
    expect(node.sent.size).toBe(1);
    node.losesAll = false; // the same bytes, resent
    await harness.pass(10_000);
    expect((await harness.until(service.managed(one), 0)).nonceAccount).toBe(
      keysOf("slow").account(0).address,
    );
    expect(node.sent.size).toBe(1);
  });

  it("use another blockhash only after the first expired", async () => {
    const harness = await NonceHarness.open();
    const { service, node, steps } = await harness.start(new Disk(), keysOf("lost"));
    node.losesAll = true;
    const { slotNs } = harness.run;
    const lifeMs = Number((151n * slotNs) / 1_000_000n);
    service.managed(one).catch(() => undefined);
    await harness.pass(29_000);
    expect(steps.log).not.toContain("blockhashState"); // nodes may not know so recent a blockhash
    await harness.pass(lifeMs - 31_000);
    expect(node.sent.size).toBe(1);
    await harness.pass(12_000);
    expect(node.sent.size).toBe(2);
    node.losesAll = false;
    const { nonceAccount } = await harness.managed(service, one);
    expect(harness.lamports(nonceAccount)).toBe(harness.rent);
  });

  it("cannot be blocked by lamports that others send to the address", async () => {
    const harness = await NonceHarness.open();
    const keys = keysOf("early");
    harness.run.chain.airdrop(keys.account(0).address, 900_000n);
    await harness.pass(1000);
    const { service } = await harness.start(new Disk(), keys);
    const { nonceAccount } = await harness.managed(service, one);
    expect(harness.lamports(nonceAccount)).toBe(harness.rent);
    expect(harness.nonce(nonceAccount)?.authority).toBe(keys.authority(0).address);
  });

  it("are created with limited concurrency, and every caller is served", async () => {
    const managed = { ...managedNonceLimits, creationsMax: 2 };
    const harness = await NonceHarness.open({ managed, waitMs: 60_000 });
    const disk = new Disk();
    const { service } = await harness.start(disk, keysOf("crowd"));
    const names = ["a", "b", "c", "d", "e"];
    const calls = Promise.all(names.map((name) => service.managed(ownerOf(name))));
    await harness.pass(100);
    expect(disk.rows.length).toBe(2);
    expect(service.snapshot()).toMatchObject({ managed: 0, creating: 5, inUse: 0 });
    const infos = await harness.until(calls);
    expect(new Set(infos.map(({ nonceAccount }) => nonceAccount)).size).toBe(5);
    expect(service.snapshot()).toMatchObject({ managed: 5, creating: 0, inUse: 5 });
  });

  it("are disabled without keys", async () => {
    const harness = await NonceHarness.open();
    const { service } = await harness.start(new Disk(), null);
    await expect(service.managed(one)).rejects.toMatchObject({ reason: "nonce_unavailable" });
    expect(service.ownerOf(keysOf("first").account(0).address)).toBeNull();
  });

  it("leave no timer and reject waiting calls when the service closes", async () => {
    const harness = await NonceHarness.open();
    const { service, node } = await harness.start(new Disk(), keysOf("closing"));
    node.losesAll = true;
    const call = service.managed(one).catch((error: unknown) => error);
    await harness.pass(1000);
    await service.close();
    expect(await call).toMatchObject({ reason: "nonce_pending" });
    expect(harness.clock.pending).toBe(0);
  });
});

describe("accounts that are on the chain already", () => {
  /** An account with a signed transaction of a former owner that could still land. */
  async function lost(
    harness: NonceHarness,
    name: string,
  ): Promise<{ info: NonceInfo; wire: Uint8Array }> {
    const { service } = await harness.start(new Disk(), keysOf(name));
    const info = await harness.managed(service, one);
    return { info, wire: await service.coSign(info.nonceAccount, unsignedTransfer(info)) };
  }

  it("are found after the loss of the database, and advanced before use", async () => {
    const harness = await NonceHarness.open();
    const { info, wire } = await lost(harness, "lost");
    const before = harness.lamports(funding.address);
    const { service } = await harness.start(new Disk(), keysOf("lost"));
    const restarted = await harness.managed(service, two);
    expect(restarted.nonceAccount).toBe(info.nonceAccount);
    expect(restarted.nonce).not.toBe(info.nonce);
    expect(restarted.nonce).toBe(harness.nonce(info.nonceAccount)?.value);
    expect(before - harness.lamports(funding.address)).toBe(signaturesLamports);
    expect(service.ownerOf(info.nonceAccount)).toEqual(two);
    const signature = harness.run.chain.send(wire);
    await harness.pass(2000);
    expect(harness.run.chain.status(signature)).toBeNull();
    const signed = await service.coSign(
      restarted.nonceAccount,
      unsignedTransfer(restarted, { lamports: 2_000_000n }),
    );
    const landed = harness.run.chain.send(signed);
    await harness.pass(2000);
    expect(harness.run.chain.status(landed)?.err).toBeNull();
  });

  it("have no owner before they are advanced", async () => {
    const harness = await NonceHarness.open();
    const { info } = await lost(harness, "nobody");
    const { service, node } = await harness.start(new Disk(), keysOf("nobody"));
    node.losesAll = true;
    service.managed(two).catch(() => undefined);
    await harness.pass(5000);
    expect(node.sent.size).toBe(1);
    expect(service.ownerOf(info.nonceAccount)).toBeNull();
    await expect(service.coSign(info.nonceAccount, unsignedTransfer(info))).rejects.toMatchObject({
      reason: "co_signing_refused",
    });
  });

  it("are not returned with the old value of a lagging node", async () => {
    const harness = await NonceHarness.open();
    const { info } = await lost(harness, "behind");
    const { service, node } = await harness.start(new Disk(), keysOf("behind"));
    const old = harness.run.chain.account(info.nonceAccount, "confirmed");
    let isBehind = true;
    node.accountsOverride = (actual, address) =>
      isBehind && address === info.nonceAccount ? old : actual;
    service.managed(two).catch(() => undefined);
    await harness.pass(7000);
    expect(harness.nonce(info.nonceAccount)?.value).not.toBe(info.nonce);
    expect(service.ownerOf(info.nonceAccount)).toBeNull();
    isBehind = false;
    expect((await harness.managed(service, two)).nonce).toBe(
      harness.nonce(info.nonceAccount)?.value,
    );
    expect(node.sent.size).toBe(1);
  });

  it("are created again if another chain does not have them", async () => {
    const harness = await NonceHarness.open();
    const disk = new Disk();
    const keys = keysOf("other chain");
    const { address } = keys.account(0);
    disk.add({ ...one, index: 0, address, state: "ready", createdMs: 1 });
    const { service, node } = await harness.start(disk, keys);
    const info = await harness.managed(service, one);
    expect(info.nonceAccount).toBe(address);
    expect(harness.nonce(address)?.value).toBe(info.nonce);
    expect(node.sent.size).toBe(1);
  });

  it("are not created again because a node lags", async () => {
    const harness = await NonceHarness.open();
    const disk = new Disk();
    const first = await harness.start(disk, keysOf("lags"));
    const info = await harness.managed(first.service, one);
    const { service, node } = await harness.start(disk, keysOf("lags"));
    node.accountsOverride = () => null;
    const call = service.managed(one);
    await harness.pass(3000);
    node.accountsOverride = (actual) => actual;
    expect(await harness.until(call)).toEqual(info);
    expect(node.sent.size).toBe(0);
  });

  it("that another key file started cost nothing", async () => {
    const harness = await NonceHarness.open();
    const disk = new Disk();
    const { address } = keysOf("begun file").account(0);
    disk.add({ ...one, index: 0, address, state: "making", createdMs: 1 });
    const { service, node } = await harness.start(disk, keysOf("other file"));
    await expect(harness.until(service.managed(one))).rejects.toMatchObject({
      reason: "nonce_failed",
    });
    expect(node.sent.size).toBe(0);
  });

  it("that another key file created are reported as such", async () => {
    const harness = await NonceHarness.open();
    const disk = new Disk();
    const { address } = keysOf("old file").account(0);
    disk.add({ ...one, index: 0, address, state: "ready", createdMs: 1 });
    const { service, node } = await harness.start(disk, keysOf("new file"));
    for (const call of [service.managed(one), service.coSign(address, new Uint8Array(1))]) {
      await expect(call).rejects.toMatchObject({
        reason: "nonce_failed",
        message: expect.stringContaining(address),
      });
    }
    expect((await harness.managed(service, two)).nonceAccount).toBe(
      keysOf("new file").account(1).address,
    );
    expect(node.sent.size).toBe(1);
  });
});

describe("the order of keys", () => {
  it("follows the derivation and never reuses an index", async () => {
    const harness = await NonceHarness.open();
    const disk = new Disk();
    const keys = keysOf("order");
    disk.add({ ...one, index: 7, address: keys.account(7).address, state: "ready", createdMs: 1 });
    const { service } = await harness.start(disk, keys);
    const { nonceAccount } = await harness.managed(service, two);
    expect(bytesOf(nonceAccount)).toEqual(keys.account(8).publicKey);
  });
});
