// The complete sandbox with real components: chain, endpoint, shreds over UDP, relay, receivers,
// landings. The relay must read every executed transaction from its shreds, through loss, forgery,
// skipped slots and forks.

import { base58 } from "@scure/base";
import { Keypair, LAMPORTS_PER_SOL, SystemProgram, Transaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import type { ChainEvent } from "../../src/sandbox/chain/types.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { stockConnection } from "../support/quic/stock-connection.ts";

function record(sandbox: Sandbox): ChainEvent[] {
  const events: ChainEvent[] = [];
  sandbox.chain.subscribe((event) => events.push(event));
  return events;
}

describe("the sandbox", () => {
  it("delivers every shred to every destination, and observes landings of a stock client", async () => {
    const sandbox = await runningSandbox();
    const begin = { slot: sandbox.chain.currentSlot, ms: performance.now() };
    const paceNs = () =>
      ((performance.now() - begin.ms) * 1e6) / Number(sandbox.chain.currentSlot - begin.slot);
    const connection = stockConnection(`http://${sandbox.endpoint.address}`, "processed");
    const payer = Keypair.generate();
    const airdrop = await connection.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
    await connection.confirmTransaction(
      { signature: airdrop, ...(await connection.getLatestBlockhash()) },
      "processed",
    );
    const transfer = SystemProgram.transfer({
      fromPubkey: payer.publicKey,
      toPubkey: Keypair.generate().publicKey,
      lamports: 1_000_000,
    });
    const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
    const transaction = new Transaction({
      feePayer: payer.publicKey,
      blockhash,
      lastValidBlockHeight,
    });
    transaction.add(transfer).sign(payer);
    const signature = base58.encode(transaction.signature ?? new Uint8Array());
    const seen: bigint[] = [];
    sandbox.landings.watch(base58.decode(signature), ({ slot }) => seen.push(slot));
    await connection.sendRawTransaction(transaction.serialize());
    await until(() => seen.length > 0, "the landing in the relay's own shreds");
    const status = (await connection.getSignatureStatuses([signature])).value[0];
    expect(status).toMatchObject({ err: null, slot: Number(seen[0]) });

    await until(() => sandbox.snapshot().chain.blockHeight > 8n, "eight blocks");
    // 400 ms on a machine that keeps up; a busy one may be slower.
    const measured = () => Number(sandbox.snapshot().slotNs ?? 0n);
    await until(() => Math.abs(measured() / paceNs() - 1) < 0.1, "the slot clock at this pace");
    const ownLanded = () => sandbox.snapshot().landings.some(({ landed }) => landed !== null);
    await until(ownLanded, "the landing of an own transaction");
    sandbox.stopTraffic();
    const { relay, receivers } = sandbox.snapshot();
    expect(relay.verdicts).toMatchObject({ unknown_leader: 0n, slot_behind: 0n, equivocation: 0n });
    for (const { seen: received } of receivers) {
      expect(received.verdicts).toMatchObject({ duplicate: 0n, root_mismatch: 0n });
      expect(Number(received.verdicts.first)).toBeGreaterThan(0);
    }
    expect(relay.deshred).toMatchObject({ batches_malformed: 0n, sets_refused: 0n });
  });

  it("observes every transaction in its slot, from 40 % of each source's shreds", async () => {
    const sandbox = await runningSandbox();
    for (const { delivery } of sandbox.feeds)
      delivery.profile = { ...delivery.profile, loss: 0.6, forged: 0.05 };
    const events = record(sandbox);
    const executed = () =>
      events.filter((event) => event.kind === "executed").map(({ transaction }) => transaction);
    const watched = new Set<string>();
    const landed = new Map<string, bigint>();
    sandbox.chain.subscribe((event) => {
      if (event.kind !== "executed") return;
      const { signature } = event.transaction;
      watched.add(signature);
      sandbox.landings.watch(base58.decode(signature), ({ slot }) => landed.set(signature, slot));
    });
    await until(() => sandbox.snapshot().chain.blockHeight > 6n, "six blocks");
    expect(executed().length).toBeGreaterThan(60);
    const some = [...watched].slice(0, 60);
    await until(() => some.every((signature) => landed.has(signature)), "their landings");
    const { deshred, verdicts } = sandbox.snapshot().relay;
    expect(Number(deshred.sets_recovered)).toBeGreaterThan(0);
    expect(Number(verdicts.root_mismatch)).toBeGreaterThan(0);
    for (const signature of some)
      expect(landed.get(signature)).toBe(sandbox.chain.status(signature)?.slot);
  });

  it("continues through skipped slots and a fork", async () => {
    const sandbox = await runningSandbox();
    const events = record(sandbox);
    const count = (kind: ChainEvent["kind"]) =>
      events.filter((event) => event.kind === kind).length;
    await until(() => count("block") >= 3, "three blocks");
    sandbox.chain.faults.skipNext(2);
    await until(() => count("skipped") >= 2, "two skipped slots");
    sandbox.chain.faults.forkNext(2);
    await until(() => count("abandoned") >= 2, "two abandoned blocks");
    const height = sandbox.snapshot().chain.blockHeight;
    await until(() => sandbox.snapshot().chain.blockHeight > height + 2n, "blocks on the new fork");
    sandbox.chain.faults.restartNext("executed_again");
    await until(() => count("restarted") >= 1, "a block that began again");
    await until(() => sandbox.snapshot().relay.deshred.restarts === 1n, "its marker in the shreds");
    const { relay } = sandbox.snapshot();
    expect(relay.verdicts).toMatchObject({ unknown_leader: 0n, equivocation: 0n });
    expect(relay.deshred.batches_malformed).toBe(0n);
  });
});
