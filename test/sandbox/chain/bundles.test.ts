import { type Keypair, NonceAccount, SystemProgram } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  carol,
  transferOf,
  wallet,
  walletLamports,
  wallets,
} from "../../support/transactions/chain.ts";

const fee = 5000n;

describe("a bundle", () => {
  it("lands completely, in order and consecutively, in one block", async () => {
    const run = await ChainRun.open();
    run.chain.send(run.transfer(carol, alice, 1n));
    const signatures = run.chain.sendBundle([
      run.transfer(alice, bob, 1_000_000n),
      run.transfer(bob, carol, walletLamports), // possible only after alice's transfer
      run.transfer(alice, bob, 20n),
    ]);
    run.chain.send(run.transfer(carol, alice, 2n));
    run.slots();
    const places = signatures.map(
      (signature) => run.chain.transaction(signature)?.transaction.index ?? -1,
    );
    expect(places).toEqual([1, 2, 3]);
    expect(run.balance(bob)).toBe(1_000_000n - fee + 20n);
  });

  it("leaves no trace if one transaction fails", async () => {
    const run = await ChainRun.open();
    run.slots();
    const balances = (): bigint[] => wallets.map((pair) => run.balance(pair));
    const before = balances();
    const failing = [
      run.transfer(alice, bob, 10n),
      run.transfer(bob, carol, 20n),
      run.transfer(carol, alice, 2n * walletLamports),
    ];
    const signatures = run.chain.sendBundle(failing);
    run.slots();
    expect(balances()).toEqual(before);
    for (const signature of signatures) {
      expect(run.chain.status(signature)).toBeNull();
      expect(run.chain.transaction(signature)).toBeNull();
      expect(run.dropped.get(signature)).toEqual({ InstructionError: [0, { Custom: 1 }] });
    }
    expect(run.chain.signaturesFor(addressOf(alice))).toEqual([]);
    expect(run.chain.transactionCount()).toBe(0n);
    expect(run.eventsOf("executed")).toEqual([]);
    // None of the bundle counts as processed: its first transaction lands alone.
    const [first] = failing;
    const alone = run.chain.send(first ?? new Uint8Array(0));
    run.slots();
    expect(run.chain.status(alone)?.err).toBeNull();
  });

  it("undoes new accounts, emptied accounts and an advanced nonce", async () => {
    const run = await ChainRun.open();
    const nonce = wallet(60);
    const fresh = wallet(61);
    const rent = run.chain.minimumBalanceForRentExemption(80);
    const create = (pair: Keypair) =>
      SystemProgram.createAccount({
        fromPubkey: alice.publicKey,
        newAccountPubkey: pair.publicKey,
        lamports: Number(rent),
        space: 80,
        programId: SystemProgram.programId,
      });
    const keys = { noncePubkey: nonce.publicKey, authorizedPubkey: alice.publicKey };
    run.chain.send(
      run.legacy([create(nonce), SystemProgram.nonceInitialize(keys)], [alice, nonce]),
    );
    run.slots(2);
    const before = run.chain.account(addressOf(nonce));
    const value = NonceAccount.fromAccountData(Buffer.from(before?.data ?? [])).nonce;
    const advanced = run.legacy(
      [SystemProgram.nonceAdvance(keys), create(fresh)],
      [alice, fresh],
      value,
    );
    const emptied = run.transfer(bob, carol, walletLamports - fee);
    const bundle = [advanced, emptied, run.transfer(carol, alice, 3n * walletLamports)];
    run.chain.sendBundle(bundle);
    run.slots();
    expect(run.chain.account(addressOf(nonce))).toEqual(before);
    expect(run.chain.account(addressOf(fresh))).toBeNull();
    expect(run.balance(bob)).toBe(walletLamports);
    // Without the failing transaction, the bundle does all of that.
    run.chain.sendBundle(bundle.slice(0, 2));
    run.slots();
    expect(run.chain.account(addressOf(nonce))).not.toEqual(before);
    expect(run.chain.account(addressOf(fresh))?.lamports).toBe(rent);
    expect(run.chain.account(addressOf(bob))).toBeNull();
  });

  it("undoes accounts that were loaded by a lookup table", async () => {
    const run = await ChainRun.open();
    const { lookup } = run.lookupTable(alice, [bob]);
    const wire = run.versioned([transferOf(alice, bob, 77n)], [alice], [lookup]);
    const before = run.balance(alice);
    run.chain.sendBundle([wire, run.transfer(carol, alice, 2n * walletLamports)]);
    run.slots();
    expect(run.balance(bob)).toBe(walletLamports);
    expect(run.balance(alice)).toBe(before);
    run.chain.sendBundle([wire]);
    run.slots();
    expect(run.balance(bob)).toBe(walletLamports + 77n);
  });

  it("does not land with a failing transaction", async () => {
    const run = await ChainRun.open();
    const wire = run.transfer(alice, bob, 2n * walletLamports);
    const [signature] = run.chain.sendBundle([wire]);
    run.slots();
    expect(run.chain.status(signature ?? "")).toBeNull();
    expect(run.balance(alice)).toBe(walletLamports);
    run.chain.send(wire);
    run.slots();
    expect(run.chain.status(signature ?? "")?.err).toEqual({
      InstructionError: [0, { Custom: 1 }],
    });
  });

  it("is rejected if it is empty, too long, has duplicates or invalid signatures", async () => {
    const run = await ChainRun.open();
    const wire = run.transfer(alice, bob, 1n);
    const forged = Uint8Array.from(wire);
    forged[5] = (forged[5] ?? 0) ^ 1;
    const value = expect.objectContaining({ reason: "value_invalid" });
    expect(() => run.chain.sendBundle([])).toThrow(value);
    expect(() => run.chain.sendBundle([wire, wire])).toThrow(value);
    const six = [1n, 2n, 3n, 4n, 5n, 6n].map((lamports) => run.transfer(alice, bob, lamports));
    expect(() => run.chain.sendBundle(six)).toThrow(value);
    expect(() => run.chain.sendBundle([run.transfer(alice, bob, 9n), forged])).toThrow(
      expect.objectContaining({ reason: "signature_invalid" }),
    );
    expect(run.chain.queued).toBe(0);
    run.chain.send(wire);
    expect(() => run.chain.sendBundle([wire])).toThrow(value);
  });
});
