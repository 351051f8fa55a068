import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionInstruction,
  VersionedTransaction,
} from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  carol,
  dave,
  erin,
  transferOf,
  walletLamports,
} from "../../support/transactions/chain.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

const memoProgram = new PublicKey("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");
const fee = 5000n;

function memo(text: string, ...signers: readonly Keypair[]): TransactionInstruction {
  return new TransactionInstruction({
    programId: memoProgram,
    keys: signers.map(({ publicKey }) => ({
      pubkey: publicKey,
      isSigner: true,
      isWritable: false,
    })),
    data: Buffer.from(text),
  });
}

describe("a transaction in the chain", () => {
  it("moves lamports, pays its fee and is found by signature, address and block", async () => {
    const run = await ChainRun.open();
    const signature = run.chain.send(run.transfer(alice, bob, 7n));
    expect(run.chain.status(signature)).toBeNull();
    run.pass(run.slotNs / 16n);
    expect(run.chain.status(signature)).toEqual({
      slot: 1n,
      confirmations: 0n,
      err: null,
      confirmationStatus: "processed",
    });
    run.slots();
    expect(run.balance(alice)).toBe(walletLamports - 7n - fee);
    expect(run.balance(bob)).toBe(walletLamports + 7n);
    const found = run.chain.transaction(signature);
    expect(found?.block.slot).toBe(1n);
    expect(found?.transaction).toMatchObject({
      signature,
      index: 0,
      version: "legacy",
      err: null,
      fee,
      computeUnits: 150n,
      accountKeys: [addressOf(alice), addressOf(bob), SystemProgram.programId.toBase58()],
      preBalances: [walletLamports, walletLamports, 1n],
      postBalances: [walletLamports - 7n - fee, walletLamports + 7n, 1n],
      returnData: null,
    });
    expect(found?.transaction.logs).toEqual([
      "Program 11111111111111111111111111111111 invoke [1]",
      "Program 11111111111111111111111111111111 success",
    ]);
    expect(run.chain.signaturesFor(addressOf(bob))).toEqual([{ signature, slot: 1n }]);
    expect(run.chain.block(1n)?.transactions.map((each) => each.signature)).toEqual([signature]);
    expect(run.chain.transactionCount()).toBe(1n);
  });

  it("lands with its error and its fee when an instruction fails", async () => {
    const run = await ChainRun.open();
    const signature = run.chain.send(run.transfer(alice, bob, walletLamports));
    run.slots();
    expect(run.chain.status(signature)?.err).toEqual({ InstructionError: [0, { Custom: 1 }] });
    expect(run.balance(alice)).toBe(walletLamports - fee);
    expect(run.balance(bob)).toBe(walletLamports);
    expect(run.chain.transaction(signature)?.transaction.logs.at(-1)).toContain("failed");
  });

  it("is dropped without a trace if the payer cannot pay the fee", async () => {
    const run = await ChainRun.open();
    const poor = Keypair.fromSeed(new Uint8Array(32).fill(99));
    const unknown = run.chain.send(run.transfer(poor, alice, 1n));
    run.slots();
    expect(run.dropped.get(unknown)).toBe("AccountNotFound");
    run.chain.send(run.transfer(alice, poor, 890_880n));
    run.slots();
    const rent = run.chain.send(run.transfer(poor, alice, 1n));
    run.slots();
    expect(run.dropped.get(rent)).toEqual({ InsufficientFundsForRent: { account_index: 0 } });
    expect(run.chain.status(rent)).toBeNull();
    expect(run.balance(poor)).toBe(890_880n);
  });

  it("pays the priority fee of its compute budget, with and without a limit", async () => {
    const run = await ChainRun.open();
    const price = ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 1_000_001 });
    const limit = ComputeBudgetProgram.setComputeUnitLimit({ units: 777 });
    const tooMuch = ComputeBudgetProgram.setComputeUnitLimit({ units: 2_000_000_000 });
    const instructions = [
      [price, limit, transferOf(alice, bob, 0n)],
      [price, transferOf(alice, bob, 0n)],
      [price, memo("hello"), transferOf(alice, bob, 0n)],
      [price, tooMuch, transferOf(alice, bob, 0n)],
    ];
    for (const each of instructions) {
      const before = run.balance(alice);
      const signature = run.chain.send(run.legacy(each, [alice]));
      run.slots();
      const landed = run.chain.transaction(signature)?.transaction;
      expect(landed?.err).toBeNull();
      // The fee that the VM charged must equal the chain's calculation.
      expect(landed?.fee).toBe(before - run.balance(alice));
      expect(landed?.fee).toBeGreaterThan(fee);
    }
  });

  it("accepts each message once while its blockhash is valid", async () => {
    const run = await ChainRun.open();
    const wire = run.transfer(alice, bob, 5n);
    const signature = run.chain.send(wire);
    expect(run.chain.send(wire)).toBe(signature); // already in the queue
    run.slots(2);
    run.chain.send(wire);
    run.slots();
    expect(run.dropped.get(signature)).toBe("AlreadyProcessed");
    expect(run.balance(bob)).toBe(walletLamports + 5n);
    expect(run.chain.simulate(wire, { verifySignatures: true, replaceBlockhash: false }).err).toBe(
      "AlreadyProcessed",
    );
  });

  it("is dropped if its blockhash is unknown or older than 150 blocks", async () => {
    const run = await ChainRun.open({ slotMs: 16, intervalsPerSlot: 1 });
    const unknown = run.chain.send(run.transfer(alice, bob, 1n, PublicKey.unique().toBase58()));
    run.slots();
    expect(run.dropped.get(unknown)).toBe("BlockhashNotFound");
    const { blockhash, lastValidBlockHeight } = run.chain.latestBlockhash("processed");
    while (run.chain.blockHeight("processed") < lastValidBlockHeight) run.slots();
    expect(run.chain.isBlockhashValid(blockhash)).toBe(true);
    const last = run.chain.send(run.transfer(alice, bob, 2n, blockhash));
    run.slots();
    expect(run.chain.status(last)?.err).toBeNull();
    expect(run.chain.isBlockhashValid(blockhash)).toBe(false);
    const late = run.chain.send(run.transfer(alice, bob, 3n, blockhash));
    run.slots();
    expect(run.dropped.get(late)).toBe("BlockhashNotFound");
    expect(run.chain.status(late)).toBeNull();
  });

  it("pays its fee and fails if a program is missing or not executable", async () => {
    const run = await ChainRun.open();
    const call = (programId: PublicKey) =>
      new TransactionInstruction({ programId, keys: [], data: Buffer.alloc(0) });
    const missing = run.chain.send(run.legacy([call(PublicKey.unique())], [alice]));
    const noProgram = run.chain.send(run.legacy([call(bob.publicKey)], [alice]));
    const tooBig = run.chain.send(
      run.legacy(
        [
          new TransactionInstruction({
            programId: ComputeBudgetProgram.programId,
            keys: [],
            data: Buffer.from([4, 1, 0, 0, 0]), // loads at most one byte
          }),
        ],
        [carol],
      ),
    );
    run.slots();
    expect(run.chain.status(missing)?.err).toBe("ProgramAccountNotFound");
    expect(run.chain.status(noProgram)?.err).toBe("InvalidProgramForExecution");
    expect(run.chain.status(tooBig)?.err).toBe("MaxLoadedAccountsDataSizeExceeded");
    expect(run.balance(carol)).toBe(walletLamports - fee);
    expect(run.balance(alice)).toBe(walletLamports - 2n * fee);
  });

  it("loads accounts through lookup tables (v0)", async () => {
    const run = await ChainRun.open();
    const { signature: created, lookup } = run.lookupTable(alice, [carol, bob]);
    const transaction = run.chain.transaction(created)?.transaction;
    expect(transaction?.err).toBeNull();
    expect(transaction?.innerInstructions.map(({ index }) => index)).toEqual([0, 1]);
    expect(transaction?.innerInstructions[0]?.instructions[0]).toMatchObject({ stackHeight: 2 });
    const wire = run.versioned([transferOf(alice, bob, 9n)], [alice], [lookup]);
    expect(VersionedTransaction.deserialize(wire).message.addressTableLookups.length).toBe(1);
    const signature = run.chain.send(wire);
    run.slots();
    const landed = run.chain.transaction(signature)?.transaction;
    expect(landed).toMatchObject({
      version: 0,
      err: null,
      loadedAddresses: { writable: [addressOf(bob)], readonly: [] },
      accountKeys: [addressOf(alice), SystemProgram.programId.toBase58(), addressOf(bob)],
    });
    expect(landed?.postBalances[2]).toBe(walletLamports + 9n);
    expect(run.balance(bob)).toBe(walletLamports + 9n);
  });

  it("may be of version 1, with its signatures at the end and a fee in lamports", async () => {
    const run = await ChainRun.open();
    const key = new SandboxKeyPair(alice.secretKey.subarray(0, 32));
    const wire = v1Transfer(key, bob.publicKey.toBytes(), 11n, {
      blockhash: new PublicKey(run.blockhash).toBytes(),
      priorityFeeLamports: 123n,
      computeUnitLimit: 400,
      loadedBytesLimit: 100_000,
    });
    const signature = run.chain.send(wire);
    run.slots();
    const landed = run.chain.transaction(signature)?.transaction;
    expect(landed).toMatchObject({ version: 1, err: null, fee: fee + 123n });
    expect(run.balance(alice)).toBe(walletLamports - 11n - fee - 123n);
    expect(run.balance(bob)).toBe(walletLamports + 11n);
  });

  it("may be a v1 transaction without requested resources, which pays and fails", async () => {
    const run = await ChainRun.open();
    const key = new SandboxKeyPair(alice.secretKey.subarray(0, 32));
    const wire = v1Transfer(key, bob.publicKey.toBytes(), 11n, {
      blockhash: new PublicKey(run.blockhash).toBytes(),
    });
    const signature = run.chain.send(wire);
    run.slots();
    expect(run.chain.status(signature)?.err).toBe("MaxLoadedAccountsDataSizeExceeded");
    expect(run.balance(alice)).toBe(walletLamports - fee);
  });
});

describe("send", () => {
  it("is rejected for invalid signatures, malformed bytes, an unknown version or its size", async () => {
    const run = await ChainRun.open();
    const good = run.transfer(alice, bob, 1n);
    const reasonOf = (wire: Uint8Array): unknown => {
      try {
        run.chain.send(wire);
        return "accepted";
      } catch (error) {
        return error instanceof Error && "reason" in error ? error.reason : error;
      }
    };
    const forged = Uint8Array.from(good);
    forged[10] = (forged[10] ?? 0) ^ 1;
    expect(reasonOf(forged)).toBe("signature_invalid");
    const altered = Uint8Array.from(good);
    altered[good.length - 1] = 77;
    expect(reasonOf(altered)).toBe("signature_invalid");
    expect(reasonOf(good.subarray(0, good.length - 1))).toBe("transaction_invalid");
    expect(reasonOf(Uint8Array.of(...good, 0))).toBe("transaction_invalid");
    expect(reasonOf(new Uint8Array(0))).toBe("transaction_invalid");
    expect(reasonOf(new Uint8Array(1233))).toBe("transaction_invalid");
    const v1 = new Uint8Array(4097);
    v1[0] = 0x81;
    expect(reasonOf(v1)).toBe("transaction_invalid");
    expect(reasonOf(Uint8Array.of(0x82, 1, 2))).toBe("transaction_version");
    const v2 = Uint8Array.from(good);
    v2[65] = 0x82;
    expect(reasonOf(v2)).toBe("transaction_version");
    expect(run.chain.queued).toBe(0);
    expect(reasonOf(good)).toBe("accepted");
  });

  it("does not depend on the caller's bytes afterwards", async () => {
    const run = await ChainRun.open();
    const wire = run.transfer(alice, bob, 4n);
    const signature = run.chain.send(wire);
    wire.fill(0xff);
    run.slots();
    expect(run.chain.status(signature)?.err).toBeNull();
  });

  it("is rejected while the queue is full, and accepted when a leader has emptied it", async () => {
    const run = await ChainRun.open({ queueMax: 3 });
    for (const lamports of [1n, 2n, 3n]) run.chain.send(run.transfer(alice, bob, lamports));
    const d = run.transfer(alice, bob, 4n);
    expect(() => run.chain.send(d)).toThrow(expect.objectContaining({ reason: "queue_full" }));
    expect(() => run.chain.sendBundle([d])).toThrow(
      expect.objectContaining({ reason: "queue_full" }),
    );
    run.slots();
    expect(run.chain.queued).toBe(0);
    expect(run.chain.status(run.chain.send(d))).toBeNull();
    run.slots();
    expect(run.balance(bob)).toBe(walletLamports + 10n);
  });

  it("is ordered by priority fee, then by arrival", async () => {
    const run = await ChainRun.open();
    const bid = (from: Keypair, microLamports: number) =>
      run.legacy(
        [
          ComputeBudgetProgram.setComputeUnitLimit({ units: 1000 }),
          ComputeBudgetProgram.setComputeUnitPrice({ microLamports }),
          transferOf(from, bob, 1n),
        ],
        [from],
      );
    const plain = run.chain.send(run.transfer(alice, bob, 1n));
    const low = run.chain.send(bid(carol, 10));
    const high = run.chain.send(bid(dave, 1000));
    const lowLater = run.chain.send(bid(erin, 10));
    run.slots();
    expect(run.chain.block(1n)?.transactions.map(({ signature }) => signature)).toEqual([
      high,
      low,
      lowLater,
      plain,
    ]);
  });
});

describe("simulate", () => {
  it("returns the effects and leaves no trace", async () => {
    const run = await ChainRun.open();
    const wire = run.transfer(alice, bob, 5n, PublicKey.unique().toBase58());
    const options = { verifySignatures: true, replaceBlockhash: false };
    expect(run.chain.simulate(wire, options).err).toBe("BlockhashNotFound");
    const replaced = run.chain.simulate(wire, { ...options, replaceBlockhash: true });
    expect(replaced).toMatchObject({ err: null, unitsConsumed: 150n, fee });
    expect(replaced.replacementBlockhash?.blockhash).toBe(run.blockhash);
    expect(replaced.accounts.get(addressOf(bob))?.lamports).toBe(walletLamports + 5n);
    expect(run.balance(bob)).toBe(walletLamports);
    expect(run.balance(alice)).toBe(walletLamports);
    const failing = run.transfer(alice, bob, 2n * walletLamports);
    const failed = run.chain.simulate(failing, options);
    expect(failed.err).toEqual({ InstructionError: [0, { Custom: 1 }] });
    expect(run.balance(alice)).toBe(walletLamports);
  });

  it("verifies signatures on request", async () => {
    const run = await ChainRun.open();
    const wire = run.transfer(alice, bob, 5n);
    wire.set(new SandboxKeyPair(alice.secretKey.subarray(0, 32)).sign(Buffer.from("other")), 1);
    expect(() =>
      run.chain.simulate(wire, { verifySignatures: true, replaceBlockhash: false }),
    ).toThrow(expect.objectContaining({ reason: "signature_invalid" }));
    expect(
      run.chain.simulate(wire, { verifySignatures: false, replaceBlockhash: false }).err,
    ).toBeNull();
  });
});

describe("airdrop", () => {
  it("is a real transfer from the faucet, and two equal ones are different transactions", async () => {
    const run = await ChainRun.open();
    const otherKey = Keypair.fromSeed(new Uint8Array(32).fill(200));
    const first = run.chain.airdrop(addressOf(otherKey), 3_000_000_000n);
    const second = run.chain.airdrop(addressOf(otherKey), 3_000_000_000n);
    expect(first).not.toBe(second);
    run.slots();
    expect(run.balance(otherKey)).toBe(6_000_000_000n);
    expect(run.chain.transaction(first)?.transaction.accountKeys[0]).toBe(run.chain.faucetAddress);
    expect(() => run.chain.airdrop("nonsense", 1n)).toThrow(
      expect.objectContaining({ reason: "value_invalid" }),
    );
  });
});
