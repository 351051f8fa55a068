// @solana/web3.js 1.99 against the endpoint, over real sockets, configured only with its URL.

import {
  AddressLookupTableProgram,
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  NONCE_ACCOUNT_LENGTH,
  NonceAccount,
  PublicKey,
  SendTransactionError,
  SystemProgram,
  sendAndConfirmTransaction,
  Transaction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../support/network/udp-receiver.ts";
import { Cluster, call, deferred } from "./cluster.ts";

let cluster: Cluster;
let connection: Connection;
let payer: Keypair;

async function airdrop(to: PublicKey, sol = 10): Promise<string> {
  const latest = await connection.getLatestBlockhash();
  const signature = await connection.requestAirdrop(to, sol * LAMPORTS_PER_SOL);
  const { value } = await connection.confirmTransaction({ signature, ...latest });
  expect(value.err).toBeNull();
  return signature;
}

function transfer(to: PublicKey, lamports: number): Transaction {
  return new Transaction().add(
    SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports }),
  );
}

beforeAll(async () => {
  cluster = await Cluster.open();
  connection = new Connection(cluster.url, "confirmed");
  // The library caches a blockhash for half a minute, longer than it is valid on this fast chain.
  Reflect.set(connection, "_disableBlockhashCaching", true);
  payer = Keypair.generate();
  await airdrop(payer.publicKey, 1000);
});

afterAll(() => {
  cluster.close();
});

describe("reading", () => {
  it("reads the cluster, its slots, blockhashes and leaders", async () => {
    expect((await connection.getVersion())["solana-core"]).toBe("4.2.0");
    expect(await connection.getGenesisHash()).toBe(cluster.chain.genesisHash);
    const [slot, height, epoch] = await Promise.all([
      connection.getSlot(),
      connection.getBlockHeight(),
      connection.getEpochInfo(),
    ]);
    expect(slot).toBeGreaterThan(0);
    expect(height).toBeGreaterThan(0);
    expect(epoch.slotsInEpoch).toBe(8192);
    expect((await connection.getEpochSchedule()).slotsPerEpoch).toBe(8192);
    const leader = await connection.getSlotLeader();
    const identities = cluster.chain.validators().map(({ identity }) => identity);
    expect(identities).toContain(leader);
    const leaders = await connection.getSlotLeaders(slot, 8);
    expect(leaders.map((key) => key.toBase58())).toEqual(
      Array.from({ length: 8 }, (_, index) => cluster.chain.leaderOf(BigInt(slot + index))),
    );
    const schedule = await connection.getLeaderSchedule();
    expect(Object.values(schedule).flat().length).toBe(8192);
    const { current, delinquent } = await connection.getVoteAccounts();
    expect(current.map(({ nodePubkey }) => nodePubkey)).toEqual(identities);
    expect(delinquent).toEqual([]);
    const nodes = await connection.getClusterNodes();
    expect(nodes.map(({ rpc }) => rpc)).toContain(cluster.endpoint.address);
    const { blockhash } = await connection.getLatestBlockhash();
    expect((await connection.isBlockhashValid(blockhash)).value).toBe(true);
    expect((await connection.isBlockhashValid(PublicKey.default.toBase58())).value).toBe(false);
    expect(await connection.getTransactionCount()).toBeGreaterThan(0);
    expect(await connection.getMinimumBalanceForRentExemption(80)).toBe(1_447_680);
    expect(await connection.getFirstAvailableBlock()).toBe(0);
    expect((await connection.getInflationRate()).total).toBe(0);
    expect((await connection.getBlockProduction()).value.range.firstSlot).toBe(0);
  });

  it("reads accounts, singly, in groups and parsed", async () => {
    const info = await connection.getAccountInfo(payer.publicKey);
    expect(info?.owner.equals(SystemProgram.programId)).toBe(true);
    expect(info?.lamports).toBe(await connection.getBalance(payer.publicKey));
    expect(info?.data.length).toBe(0);
    expect(await connection.getAccountInfo(Keypair.generate().publicKey)).toBeNull();
    const many = await connection.getMultipleAccountsInfo([payer.publicKey, PublicKey.default]);
    expect(many[0]?.lamports).toBe(info?.lamports);
    const parsed = await connection.getParsedAccountInfo(payer.publicKey);
    expect(Buffer.isBuffer(parsed.value?.data)).toBe(true);
  });
});

describe("sending", () => {
  it("sends and confirms a legacy transaction, then reads it back in every form", async () => {
    const to = Keypair.generate().publicKey;
    const before = await connection.getBalance(payer.publicKey);
    const message = transfer(to, LAMPORTS_PER_SOL);
    const signature = await sendAndConfirmTransaction(connection, message, [payer]);
    expect(await connection.getBalance(to)).toBe(LAMPORTS_PER_SOL);
    expect(await connection.getBalance(payer.publicKey)).toBe(before - LAMPORTS_PER_SOL - 5000);
    const status = await connection.getSignatureStatus(signature);
    expect(status.value?.err).toBeNull();
    expect(["confirmed", "finalized"]).toContain(status.value?.confirmationStatus);

    const found = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
    expect(found?.version).toBe("legacy");
    expect(found?.meta?.fee).toBe(5000);
    expect(found?.meta?.logMessages?.at(-1)).toBe(
      "Program 11111111111111111111111111111111 success",
    );
    expect(found?.transaction.message.staticAccountKeys[0]?.equals(payer.publicKey)).toBe(true);

    const parsed = await connection.getParsedTransaction(signature, {
      maxSupportedTransactionVersion: 0,
    });
    expect(parsed?.transaction.message.instructions[0]).toMatchObject({
      program: "system",
      parsed: {
        type: "transfer",
        info: {
          source: payer.publicKey.toBase58(),
          destination: to.toBase58(),
          lamports: LAMPORTS_PER_SOL,
        },
      },
    });
    const [row] = await connection.getSignaturesForAddress(to);
    expect(row).toMatchObject({ signature, slot: found?.slot, err: null, memo: null });

    const slot = found?.slot ?? 0;
    const block = await connection.getBlock(slot, { maxSupportedTransactionVersion: 0 });
    const signatures = block?.transactions.map(({ transaction }) => transaction.signatures[0]);
    expect(signatures).toContain(signature);
    expect(block?.parentSlot).toBeLessThan(slot);
    const accounts = await connection.getBlock(slot, {
      transactionDetails: "accounts",
      maxSupportedTransactionVersion: 0,
    });
    expect(accounts?.transactions.length).toBe(block?.transactions.length);
    const none = await connection.getBlock(slot, {
      transactionDetails: "none",
      maxSupportedTransactionVersion: 0,
    });
    expect(none?.blockhash).toBe(block?.blockhash);
    expect((await connection.getBlockSignatures(slot)).signatures).toEqual(signatures);
    const parsedBlock = await connection.getParsedBlock(slot, {
      maxSupportedTransactionVersion: 0,
    });
    expect(parsedBlock.blockhash).toBe(block?.blockhash);
    expect(await connection.getBlocks(slot, slot)).toEqual([slot]);
    expect(await connection.getBlockTime(slot)).toBe(block?.blockTime);
    const [fee] = (await connection.getRecentPrioritizationFees()).slice(-1);
    expect(fee?.prioritizationFee).toBe(0);
  });

  it("reads the fee of a message", async () => {
    const { blockhash } = await connection.getLatestBlockhash();
    const message = new TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: blockhash,
      instructions: transfer(payer.publicKey, 1).instructions,
    });
    const legacy = await connection.getFeeForMessage(message.compileToLegacyMessage());
    expect(legacy.value).toBe(5000);
    expect((await connection.getFeeForMessage(message.compileToV0Message())).value).toBe(5000);
  });

  it("sends a v0 transaction with a lookup table", async () => {
    const to = Keypair.generate().publicKey;
    const [create, table] = AddressLookupTableProgram.createLookupTable({
      authority: payer.publicKey,
      payer: payer.publicKey,
      recentSlot: await connection.getSlot("finalized"),
    });
    const extend = AddressLookupTableProgram.extendLookupTable({
      lookupTable: table,
      authority: payer.publicKey,
      payer: payer.publicKey,
      addresses: [to],
    });
    const setUp = new Transaction().add(create, extend);
    await sendAndConfirmTransaction(connection, setUp, [payer]);
    const { value: lookupTable } = await connection.getAddressLookupTable(table);
    expect(lookupTable?.state.addresses.map(String)).toEqual([to.toBase58()]);
    const parsedTable = await connection.getParsedAccountInfo(table);
    expect(parsedTable.value?.data).toMatchObject({
      program: "address-lookup-table",
      parsed: { type: "lookupTable", info: { addresses: [to.toBase58()] } },
    });

    const latest = await connection.getLatestBlockhash();
    const message = new TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: latest.blockhash,
      instructions: transfer(to, 2_000_000).instructions,
    }).compileToV0Message(lookupTable ? [lookupTable] : []);
    expect(message.addressTableLookups.length).toBe(1);
    const transaction = new VersionedTransaction(message);
    transaction.sign([payer]);
    const signature = await connection.sendTransaction(transaction);
    const { value } = await connection.confirmTransaction({ signature, ...latest });
    expect(value.err).toBeNull();
    expect(await connection.getBalance(to)).toBe(2_000_000);

    const found = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
    expect(found?.version).toBe(0);
    expect(found?.meta?.loadedAddresses?.writable.map(String)).toEqual([to.toBase58()]);
    const parsed = await connection.getParsedTransaction(signature, {
      maxSupportedTransactionVersion: 0,
    });
    expect(parsed?.transaction.message.accountKeys.at(-1)).toMatchObject({
      source: "lookupTable",
      writable: true,
      signer: false,
    });
    // A caller that does not declare support for v0 gets an error.
    const refusals = await Promise.all([
      call(cluster, "getTransaction", [signature, { commitment: "confirmed" }]),
      call(cluster, "getBlock", [found?.slot ?? 0, { commitment: "confirmed" }]),
    ]);
    expect(refusals.map(({ error }) => error?.code)).toEqual([-32015, -32015]);
  });

  it("creates a durable nonce and spends it", async () => {
    const nonce = Keypair.generate();
    const lamports = await connection.getMinimumBalanceForRentExemption(NONCE_ACCOUNT_LENGTH);
    const create = SystemProgram.createNonceAccount({
      fromPubkey: payer.publicKey,
      noncePubkey: nonce.publicKey,
      authorizedPubkey: payer.publicKey,
      lamports,
    });
    const commitment = "finalized";
    await sendAndConfirmTransaction(connection, create, [payer, nonce], { commitment });
    const account = await connection.getNonce(nonce.publicKey);
    expect(account).toBeInstanceOf(NonceAccount);
    const nonceValue = account?.nonce ?? "";
    const parsed = await connection.getParsedAccountInfo(nonce.publicKey);
    expect(parsed.value?.data).toMatchObject({
      program: "nonce",
      parsed: {
        type: "initialized",
        info: { authority: payer.publicKey.toBase58(), blockhash: nonceValue },
      },
    });

    const to = Keypair.generate().publicKey;
    const transaction = new Transaction({
      feePayer: payer.publicKey,
      nonceInfo: {
        nonce: nonceValue,
        nonceInstruction: SystemProgram.nonceAdvance({
          noncePubkey: nonce.publicKey,
          authorizedPubkey: payer.publicKey,
        }),
      },
      minContextSlot: await connection.getSlot(),
    }).add(...transfer(to, LAMPORTS_PER_SOL).instructions);
    transaction.sign(payer);
    const signature = await connection.sendRawTransaction(transaction.serialize());
    while ((await connection.getSignatureStatus(signature)).value === null);
    // The transaction is processed, not finalized. At "finalized" the nonce must not seem to have
    // advanced, or the library considers the transaction expired.
    const strategy = {
      signature,
      nonceAccountPubkey: nonce.publicKey,
      nonceValue,
      minContextSlot: 0,
    };
    const { value } = await connection.confirmTransaction(strategy, commitment);
    expect(value.err).toBeNull();
    expect(await connection.getBalance(to)).toBe(LAMPORTS_PER_SOL);
    expect((await connection.getNonce(nonce.publicKey))?.nonce).not.toBe(nonceValue);
  });

  it("reports a failing transaction with its logs", async () => {
    const tooMuch = transfer(Keypair.generate().publicKey, 5_000_000 * LAMPORTS_PER_SOL);
    const failure = await sendAndConfirmTransaction(connection, tooMuch, [payer]).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (!(failure instanceof SendTransactionError)) throw failure;
    const { message, logs } = failure;
    expect(message).toContain("custom program error: 0x1");
    expect(logs?.join("\n")).toContain("insufficient lamports");
  });

  it("reports the error of a transaction that lands and fails", async () => {
    const tooMuch = transfer(Keypair.generate().publicKey, 5_000_000 * LAMPORTS_PER_SOL);
    const sent = sendAndConfirmTransaction(connection, tooMuch, [payer], { skipPreflight: true });
    const failure: unknown = await sent.catch((thrown: unknown) => thrown);
    // The library throws an Error, or the bare cause if its polling is first.
    const text = failure instanceof Error ? failure.message : JSON.stringify(failure);
    expect(text).toContain('"InstructionError":[0,{"Custom":1}]');
  });

  it("simulates without changes", async () => {
    const to = Keypair.generate().publicKey;
    const message = new TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: PublicKey.default.toBase58(),
      instructions: transfer(to, LAMPORTS_PER_SOL).instructions,
    }).compileToV0Message();
    const { value } = await connection.simulateTransaction(new VersionedTransaction(message), {
      replaceRecentBlockhash: true,
      innerInstructions: true,
      accounts: { encoding: "base64", addresses: [to.toBase58()] },
    });
    expect(value.err).toBeNull();
    expect(value.unitsConsumed).toBe(150);
    expect(value.accounts?.[0]?.lamports).toBe(LAMPORTS_PER_SOL);
    expect(value.innerInstructions).toEqual([]);
    expect(await connection.getBalance(to)).toBe(0);
    const stale = await connection.simulateTransaction(new VersionedTransaction(message));
    expect(stale.value.err).toBe("BlockhashNotFound");
  });
});

describe("subscriptions", () => {
  it("receives slots, roots and slot updates", async () => {
    const slots = deferred<number>();
    const roots = deferred<number>();
    const frozen = deferred<number>();
    const ids = [
      connection.onSlotChange(({ slot }) => slots.resolve(slot)),
      connection.onSlotUpdate((update) => {
        if (update.type === "frozen") frozen.resolve(update.slot);
      }),
    ];
    const rootId = connection.onRootChange((root) => roots.resolve(root));
    expect(await slots.promise).toBeGreaterThan(0);
    expect(await roots.promise).toBeGreaterThan(0);
    expect(await frozen.promise).toBeGreaterThan(0);
    await connection.removeSlotChangeListener(ids[0] ?? -1);
    await connection.removeSlotUpdateListener(ids[1] ?? -1);
    await connection.removeRootChangeListener(rootId);
  });

  it("receives an account, its program, its logs and its signature", async () => {
    const to = Keypair.generate().publicKey;
    const account = deferred<number>();
    const program = deferred<string>();
    const logs = deferred<string>();
    const result = deferred<unknown>();
    const accountId = connection.onAccountChange(to, ({ lamports }) => account.resolve(lamports));
    const programId = connection.onProgramAccountChange(SystemProgram.programId, (keyed) => {
      if (keyed.accountId.equals(to)) program.resolve(keyed.accountId.toBase58());
    });
    const logsId = connection.onLogs(to, ({ signature }) => logs.resolve(signature));
    // The library subscribes after it has connected. A second airdrop would hide a first one that
    // came too early, so wait until all three are registered.
    await until(() => cluster.endpoint.counts.subscriptions >= 3, "the subscriptions");
    const signature = await connection.requestAirdrop(to, LAMPORTS_PER_SOL);
    connection.onSignature(signature, ({ err }) => result.resolve(err), "finalized");
    expect(await account.promise).toBe(LAMPORTS_PER_SOL);
    expect(await program.promise).toBe(to.toBase58());
    expect(await logs.promise).toBe(signature);
    expect(await result.promise).toBeNull();
    // It has already reached the commitment, so the notification is immediate.
    const repeated = deferred<unknown>();
    connection.onSignature(signature, ({ err }) => repeated.resolve(err), "confirmed");
    expect(await repeated.promise).toBeNull();
    await connection.removeAccountChangeListener(accountId);
    await connection.removeProgramAccountChangeListener(programId);
    await connection.removeOnLogsListener(logsId);
    await until(() => cluster.endpoint.counts.subscriptions === 0, "their ends");
  });
});
