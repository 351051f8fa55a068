import { createHash } from "node:crypto";
import {
  NONCE_ACCOUNT_LENGTH,
  NonceAccount,
  PublicKey,
  SystemProgram,
  TransactionInstruction,
} from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  transferOf,
  wallet,
  walletLamports,
} from "../../support/transactions/chain.ts";

const nonce = wallet(50);
const fee = 5000n;

function createNonce(run: ChainRun): string {
  const rent = run.chain.minimumBalanceForRentExemption(NONCE_ACCOUNT_LENGTH);
  const wire = run.legacy(
    [
      SystemProgram.createAccount({
        fromPubkey: alice.publicKey,
        newAccountPubkey: nonce.publicKey,
        lamports: Number(rent),
        space: NONCE_ACCOUNT_LENGTH,
        programId: SystemProgram.programId,
      }),
      SystemProgram.nonceInitialize({
        noncePubkey: nonce.publicKey,
        authorizedPubkey: alice.publicKey,
      }),
    ],
    [alice, nonce],
  );
  return run.chain.send(wire);
}

function nonceValue(run: ChainRun): string {
  const data = run.chain.account(addressOf(nonce))?.data ?? new Uint8Array(0);
  return NonceAccount.fromAccountData(Buffer.from(data)).nonce;
}

function valueFor(blockhash: string | undefined): string {
  const hash = createHash("sha256").update("DURABLE_NONCE");
  return new PublicKey(hash.update(new PublicKey(blockhash ?? "").toBytes()).digest()).toBase58();
}

function advance(): TransactionInstruction {
  return SystemProgram.nonceAdvance({
    noncePubkey: nonce.publicKey,
    authorizedPubkey: alice.publicKey,
  });
}

function withNonce(run: ChainRun, lamports: bigint, value = nonceValue(run)): Uint8Array {
  return run.legacy([advance(), transferOf(alice, bob, lamports)], [alice], value);
}

async function openWithNonce(intervalsPerSlot = 8): Promise<ChainRun> {
  const run = await ChainRun.open({ intervalsPerSlot });
  run.slots();
  createNonce(run);
  run.slots();
  return run;
}

describe("durable nonces", () => {
  it("derive from the parent's blockhash, as in a validator", async () => {
    const run = await openWithNonce();
    expect(nonceValue(run)).toBe(valueFor(run.chain.block(2n)?.previousBlockhash));
  });

  it("make a transaction valid once, even after its blockhash would have expired", async () => {
    const run = await openWithNonce(1);
    const wire = withNonce(run, 7n);
    run.slots(200);
    const signature = run.chain.send(wire);
    run.slots();
    expect(run.chain.status(signature)?.err).toBeNull();
    expect(run.balance(bob)).toBe(walletLamports + 7n);
    const slot = run.chain.status(signature)?.slot ?? 0n;
    expect(nonceValue(run)).toBe(valueFor(run.chain.block(slot)?.previousBlockhash));
    run.chain.send(wire);
    run.slots();
    expect(run.dropped.get(signature)).toBe("BlockhashNotFound");
    expect(run.balance(bob)).toBe(walletLamports + 7n);
  });

  it("advance and cost the fee, without other effects, if the transaction fails", async () => {
    const run = await openWithNonce();
    const before = { alice: run.balance(alice), value: nonceValue(run) };
    const wire = run.legacy(
      [advance(), transferOf(alice, bob, 3n), transferOf(alice, bob, 2n * walletLamports)],
      [alice],
      before.value,
    );
    const signature = run.chain.send(wire);
    run.slots();
    expect(run.chain.status(signature)?.err).toEqual({ InstructionError: [2, { Custom: 1 }] });
    expect(run.balance(alice)).toBe(before.alice - fee);
    expect(run.balance(bob)).toBe(walletLamports);
    expect(nonceValue(run)).not.toBe(before.value);
    const slot = run.chain.status(signature)?.slot ?? 0n;
    expect(nonceValue(run)).toBe(valueFor(run.chain.block(slot)?.previousBlockhash));
    run.chain.send(wire);
    run.slots();
    expect(run.dropped.get(signature)).toBe("BlockhashNotFound");
    expect(run.balance(alice)).toBe(before.alice - fee);
    // The new value is usable.
    const next = run.chain.send(withNonce(run, 1n));
    run.slots();
    expect(run.chain.status(next)?.err).toBeNull();
  });

  it("advance if a program of the transaction is missing", async () => {
    const run = await openWithNonce();
    const before = nonceValue(run);
    const call = new TransactionInstruction({
      programId: PublicKey.unique(),
      keys: [],
      data: Buffer.alloc(0),
    });
    const signature = run.chain.send(run.legacy([advance(), call], [alice], before));
    run.slots();
    expect(run.chain.status(signature)?.err).toBe("ProgramAccountNotFound");
    expect(nonceValue(run)).not.toBe(before);
  });

  it("advance once per block", async () => {
    const run = await openWithNonce();
    const first = run.chain.send(withNonce(run, 1n));
    run.pass(run.slotNs / 8n);
    expect(run.chain.status(first)?.err).toBeNull();
    const sameBlock = run.chain.send(withNonce(run, 2n));
    run.pass(run.slotNs / 8n);
    expect(run.dropped.get(sameBlock)).toBe("BlockhashNotFound");
  });

  it("require the authority's signature, the stored value and an advance as the first instruction", async () => {
    const run = await openWithNonce();
    const value = nonceValue(run);
    const stranger = SystemProgram.nonceAdvance({
      noncePubkey: nonce.publicKey,
      authorizedPubkey: bob.publicKey,
    });
    const unsigned = advance();
    unsigned.keys = unsigned.keys.map((each) => ({ ...each, isSigner: false }));
    const wires = [
      run.legacy([unsigned, transferOf(bob, alice, 2n)], [bob], value),
      run.legacy([stranger, transferOf(bob, alice, 1n)], [bob], value),
      run.legacy([transferOf(alice, bob, 1n), advance()], [alice], value),
      withNonce(run, 1n, PublicKey.unique().toBase58()),
    ];
    const signatures = wires.map((wire) => run.chain.send(wire));
    run.slots();
    for (const signature of signatures) {
      expect(run.dropped.get(signature)).toBe("BlockhashNotFound");
    }
    expect(nonceValue(run)).toBe(value);
  });

  it("do not keep other transactions with an expired blockhash in the queue", async () => {
    const run = await openWithNonce(1);
    run.chain.faults.delayMs = 3_600_000;
    run.chain.send(withNonce(run, 1n));
    run.chain.send(run.transfer(alice, bob, 1n));
    run.slots(160);
    expect(run.chain.queued).toBe(1);
  });
});
