// Methods on the real chain, without sockets: result types and errors that client libraries do not
// reach.

import { type Keypair, PublicKey, SystemProgram, TransactionInstruction } from "@solana/web3.js";
import { beforeAll, describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { Json } from "../../../src/core/json-rpc/json-text.ts";
import type { ChainOptions } from "../../../src/sandbox/chain/options.ts";
import { dispatch } from "../../../src/sandbox/rpc/dispatch.ts";
import type { MethodContext } from "../../../src/sandbox/rpc/method.ts";
import { zstdFrame } from "../../../src/sandbox/rpc/zstd-frame.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import {
  addressOf,
  ChainRun,
  sol,
  transferOf,
  wallet,
  wallets,
} from "../../support/transactions/chain.ts";

const [payer = wallet(1), other = wallet(2)] = wallets;
const payerAddress = addressOf(payer);
const tokenProgram = new PublicKey("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");

async function openChain(
  options: ChainOptions = {},
): Promise<{ run: ChainRun; context: MethodContext }> {
  const run = await ChainRun.open({
    rootedDepth: 2,
    historySlots: 256,
    intervalsPerSlot: 2,
    hashesPerTick: 4,
    ...options,
  });
  const node = {
    identity: run.chain.validators()[0]?.identity ?? "",
    version: "4.2.0",
    featureSet: 0,
    shredVersion: 7,
    rpcAddress: () => null,
  };
  return { run, context: { chain: run.chain, clock: new ManualClock(), node } };
}

let run: ChainRun;
let context: MethodContext;

function ask(method: string, ...params: Json[]): unknown {
  return dispatch(context, method, params);
}

/** The value of a result with context. */
function answerValue(method: string, ...params: Json[]): unknown {
  const answer = ask(method, ...params);
  expect(answer).toMatchObject({ context: { apiVersion: "4.2.0" } });
  return Object(answer).value;
}

/** The JSON-RPC error code. */
function refusalOf(method: string, ...params: Json[]): number | undefined {
  try {
    ask(method, ...params);
  } catch (thrown) {
    if (thrown instanceof ShredwayError) return thrown.row.jsonRpcCode;
    throw thrown;
  }
  throw new Error(`expected an error of ${method}, got a result`);
}

function base64(wire: Uint8Array): string {
  return Buffer.from(wire).toString("base64");
}

function halfSlot(): void {
  run.pass(run.slotNs / 2n);
}

/** In the first half of a slot: processed, not yet confirmed. */
function execute(instructions: TransactionInstruction[], ...signers: Keypair[]): string {
  const signature = run.chain.send(run.legacy(instructions, [payer, ...signers]));
  halfSlot();
  expect(run.chain.status(signature)?.err).toBeNull();
  return signature;
}

/** A slot later: confirmed, not yet finalized. */
function land(instructions: TransactionInstruction[], ...signers: Keypair[]): string {
  const signature = execute(instructions, ...signers);
  halfSlot();
  return signature;
}

function settle(): void {
  run.slots(5);
}

beforeAll(async () => {
  ({ run, context } = await openChain());
  run.slots(2);
});

describe("accounts", () => {
  it("have their state at the commitment", () => {
    settle();
    const to = wallet(30);
    const read = (commitment: string) => answerValue("getBalance", addressOf(to), { commitment });
    const owned = (commitment: string) =>
      ask("getProgramAccounts", "11111111111111111111111111111111", {
        commitment,
        encoding: "base64",
        filters: [{ dataSize: 0 }],
      });
    land([transferOf(payer, to, sol)]);
    execute([transferOf(payer, to, sol)]);
    expect([read("processed"), read("confirmed"), read("finalized")]).toEqual([2n * sol, sol, 0n]);
    expect(answerValue("getAccountInfo", addressOf(to))).toBeNull();
    const row = { pubkey: addressOf(to), account: expect.objectContaining({ lamports: sol }) };
    expect(owned("confirmed")).toContainEqual(row);
    expect(owned("finalized")).not.toContainEqual(expect.objectContaining({ pubkey: row.pubkey }));
    halfSlot();
    settle();
    expect(read("finalized")).toBe(2n * sol);
  });

  it("show the earlier state of nonces, also after it was rooted", () => {
    const nonce = wallet(31);
    const nonceAt = (commitment: string) => {
      const value = answerValue("getAccountInfo", addressOf(nonce), {
        commitment,
        encoding: "jsonParsed",
      });
      return Object(value).data?.parsed?.info?.blockhash;
    };
    const create = SystemProgram.createNonceAccount({
      fromPubkey: payer.publicKey,
      noncePubkey: nonce.publicKey,
      authorizedPubkey: payer.publicKey,
      lamports: Number(run.chain.minimumBalanceForRentExemption(80)),
    });
    land(create.instructions, nonce);
    settle();
    const before = nonceAt("finalized");
    expect(before).toBeTypeOf("string");
    const names = { noncePubkey: nonce.publicKey, authorizedPubkey: payer.publicKey };
    execute([SystemProgram.nonceAdvance(names)]);
    expect(nonceAt("processed")).not.toBe(before);
    expect([nonceAt("confirmed"), nonceAt("finalized")]).toEqual([before, before]);
    halfSlot();
    settle();
    expect(nonceAt("finalized")).toBe(nonceAt("processed"));
  });

  it("follow the cluster to another fork", () => {
    settle();
    const seen = run.eventsOf("abandoned").length;
    run.chain.faults.forkNext(2);
    const payees = Array.from({ length: 8 }, (_, index) => wallet(200 + index));
    for (const to of payees) land([transferOf(payer, to, sol)]);
    const abandoned = run.eventsOf("abandoned").slice(seen);
    const lost = payees.filter((to) =>
      abandoned.some(({ block: { transactions } }) =>
        transactions.some(({ accountKeys }) => accountKeys.includes(addressOf(to))),
      ),
    );
    expect(lost.length).toBe(2);
    settle();
    for (const to of payees) {
      for (const commitment of ["processed", "confirmed", "finalized"]) {
        const balance = answerValue("getBalance", addressOf(to), { commitment });
        expect(balance).toBe(lost.includes(to) ? 0n : sol);
      }
    }
  });

  it("have the encodings of the node", () => {
    settle();
    const info = (config: { readonly [key: string]: Json }) =>
      answerValue("getAccountInfo", addressOf(wallet(31)), config);
    expect(info({ encoding: "base64", dataSlice: { offset: 4, length: 4 } })).toMatchObject({
      data: [base64(Uint8Array.of(1, 0, 0, 0)), "base64"],
      space: 80,
    });
    expect(info({ encoding: "base58", dataSlice: { offset: 0, length: 1 } })).toMatchObject({
      data: ["2", "base58"],
    });
    expect(info({ dataSlice: { offset: 500, length: 1 } })).toMatchObject({ data: "" });
    expect(info({ encoding: "base64+zstd", dataSlice: { offset: 4, length: 4 } })).toMatchObject({
      data: [base64(zstdFrame(Uint8Array.of(1, 0, 0, 0))), "base64+zstd"],
      space: 80,
    });
    expect(refusalOf("getAccountInfo", payerAddress, { minContextSlot: 1e9 })).toBe(-32016);
    expect(refusalOf("getAccountInfo", `${payerAddress}1`)).toBe(-32602);
    expect(refusalOf("getMultipleAccounts", Array<string>(101).fill(payerAddress))).toBe(-32602);
    expect(refusalOf("getBalance", payerAddress, {}, 1)).toBe(-32602);
  });
});

describe("tokens", () => {
  const mint = wallet(40);
  const account = wallet(41);

  function tokenInstruction(data: number[], ...keys: [PublicKey, "w" | "s" | "r"][]) {
    return new TransactionInstruction({
      programId: tokenProgram,
      data: Buffer.from(data),
      keys: keys.map(([pubkey, use]) => ({
        pubkey,
        isSigner: use === "s",
        isWritable: use === "w",
      })),
    });
  }

  function createFor(pair: Keypair, space: number) {
    return SystemProgram.createAccount({
      fromPubkey: payer.publicKey,
      newAccountPubkey: pair.publicKey,
      lamports: Number(run.chain.minimumBalanceForRentExemption(space)),
      space,
      programId: tokenProgram,
    });
  }

  it("are created, read and found", () => {
    const authority = [...payer.publicKey.toBytes()];
    const initializeMint = tokenInstruction([20, 6, ...authority, 0], [mint.publicKey, "w"]);
    const initialize = tokenInstruction(
      [18, ...other.publicKey.toBytes()],
      [account.publicKey, "w"],
      [mint.publicKey, "r"],
    );
    const mintTo = tokenInstruction(
      [14, 64, 66, 15, 0, 0, 0, 0, 0, 6],
      [mint.publicKey, "w"],
      [account.publicKey, "w"],
      [payer.publicKey, "s"],
    );
    const make = [createFor(mint, 82), initializeMint, createFor(account, 165), initialize, mintTo];
    const signature = land(make, mint, account);
    settle();

    const one = { amount: "1000000", decimals: 6, uiAmount: 1, uiAmountString: "1" };
    expect(answerValue("getTokenAccountBalance", addressOf(account))).toEqual(one);
    expect(answerValue("getTokenSupply", addressOf(mint))).toEqual(one);
    expect(answerValue("getTokenLargestAccounts", addressOf(mint))).toEqual([
      { address: addressOf(account), ...one },
    ]);
    const parsed = {
      program: "spl-token",
      space: 165,
      parsed: {
        type: "account",
        info: {
          mint: addressOf(mint),
          owner: addressOf(other),
          tokenAmount: one,
          state: "initialized",
          isNative: false,
        },
      },
    };
    const row = { pubkey: addressOf(account), account: expect.objectContaining({ data: parsed }) };
    for (const filter of [{ mint: addressOf(mint) }, { programId: tokenProgram.toBase58() }]) {
      const config = { encoding: "jsonParsed" };
      expect(answerValue("getTokenAccountsByOwner", addressOf(other), filter, config)).toEqual([
        row,
      ]);
      expect(answerValue("getTokenAccountsByDelegate", addressOf(other), filter)).toEqual([]);
    }
    const memcmp = { memcmp: { offset: 32, bytes: addressOf(other) } };
    const found = ask("getProgramAccounts", tokenProgram.toBase58(), {
      encoding: "jsonParsed",
      filters: [{ dataSize: 165 }, memcmp],
    });
    expect(found).toEqual([row]);
    const mintInfo = answerValue("getAccountInfo", addressOf(mint), { encoding: "jsonParsed" });
    expect(mintInfo).toMatchObject({
      data: { parsed: { type: "mint", info: { supply: "1000000", decimals: 6 } } },
    });

    const transaction = ask("getTransaction", signature, { encoding: "jsonParsed" });
    const { instructions } = Object(transaction).transaction.message;
    expect(instructions.map((each: { parsed: { type: string } }) => each.parsed.type)).toEqual([
      "createAccount",
      "initializeMint2",
      "createAccount",
      "initializeAccount3",
      "mintToChecked",
    ]);
    expect(instructions[4].parsed.info).toEqual({
      mint: addressOf(mint),
      account: addressOf(account),
      tokenAmount: one,
      mintAuthority: payerAddress,
    });
  });

  it("rejects accounts that are not token accounts", () => {
    expect(refusalOf("getTokenAccountBalance", payerAddress)).toBe(-32602);
    expect(refusalOf("getTokenSupply", addressOf(account))).toBe(-32602);
    // The data is too long for base58, the node's default encoding.
    expect(refusalOf("getAccountInfo", addressOf(account))).toBe(-32600);
    expect(refusalOf("getTokenAccountsByOwner", payerAddress, {})).toBe(-32602);
    const program = { programId: "11111111111111111111111111111111" };
    expect(refusalOf("getTokenAccountsByOwner", payerAddress, program)).toBe(-32602);
  });
});

describe("history", () => {
  it("distinguishes future slots, skipped slots and expired blocks", async () => {
    const fresh = await openChain();
    const askFresh = (...params: Json[]): number | undefined => {
      try {
        dispatch(fresh.context, "getBlock", params);
        return 0;
      } catch (thrown) {
        return thrown instanceof ShredwayError ? thrown.row.jsonRpcCode : 1;
      }
    };
    fresh.run.slots(2);
    fresh.run.chain.faults.skipNext(1);
    fresh.run.slots(10);
    const [skipped] = fresh.run.eventsOf("skipped");
    const slot = Number(skipped?.slot ?? 0n);
    expect(askFresh(slot)).toBe(-32007);
    expect(askFresh(slot - 1)).toBe(0);
    expect(askFresh(slot - 1, { commitment: "processed" })).toBe(-32602);
    expect(askFresh(1_000_000)).toBe(-32004);
    expect(dispatch(fresh.context, "getBlocks", [slot - 1, slot + 1])).toEqual([
      BigInt(slot - 1),
      BigInt(slot + 1),
    ]);
    fresh.run.slots(300);
    expect(askFresh(slot - 1)).toBe(-32001);
    expect(dispatch(fresh.context, "getFirstAvailableBlock", [])).toBeGreaterThan(slot);
    expect(dispatch(fresh.context, "getBlocks", [0, { commitment: "confirmed" }])).toHaveLength(
      256,
    );
  });

  it("returns the signatures of an address page by page, newest first", () => {
    settle();
    const to = wallet(50);
    const signatures = [1n, 2n, 3n, 4n].map((n) => land([transferOf(payer, to, n * sol)]));
    settle();
    const newest = signatures.toReversed();
    const list = (config: { readonly [key: string]: Json }) => {
      const rows = ask("getSignaturesForAddress", addressOf(to), config);
      return Array.isArray(rows) ? rows.map((row) => Object(row).signature) : rows;
    };
    expect(list({})).toEqual(newest);
    expect(list({ limit: 2 })).toEqual(newest.slice(0, 2));
    expect(list({ before: newest[1] ?? "" })).toEqual(newest.slice(2));
    expect(list({ until: newest[2] ?? "" })).toEqual(newest.slice(0, 2));
    expect(list({ before: newest[0] ?? "", until: newest[3] ?? "" })).toEqual(newest.slice(1, 3));
    expect(refusalOf("getSignaturesForAddress", addressOf(to), { limit: 1001 })).toBe(-32602);
    const statuses = answerValue("getSignatureStatuses", [newest[0] ?? "", "1".repeat(64)]);
    expect(statuses).toEqual([
      expect.objectContaining({ confirmations: null, status: { Ok: null }, err: null }),
      null,
    ]);
  });

  it("returns statuses of the last 300 rooted slots, and older ones only from its history", async () => {
    const old = await openChain({ historySlots: 1_000 });
    const statusOf = (signature: string, config: { readonly [key: string]: Json } = {}) =>
      Object(dispatch(old.context, "getSignatureStatuses", [[signature], config])).value[0];
    const signature = old.run.chain.send(old.run.transfer(payer, other, sol));
    while (statusOf(signature)?.confirmationStatus !== "finalized") old.run.slots(1);
    const { slot } = statusOf(signature);
    while (old.run.chain.slot("finalized") < slot + 300n) old.run.slots(1);
    expect(statusOf(signature)).toMatchObject({ slot, confirmationStatus: "finalized" });
    old.run.slots(1);
    expect(statusOf(signature)).toBeNull();
    expect(statusOf(signature, { searchTransactionHistory: true })).toMatchObject({
      slot,
      confirmationStatus: "finalized",
    });
  });
});

describe("leaders and fees", () => {
  it("covers this epoch and the next, and no other", () => {
    const [first] = run.chain.validators();
    const identity = first?.identity ?? "";
    const mine = ask("getLeaderSchedule", null, { identity });
    expect(Object.keys(Object(mine))).toEqual([identity]);
    expect(ask("getLeaderSchedule", { identity })).toEqual(mine);
    expect(ask("getLeaderSchedule", 1e9)).toBeNull();
    expect(refusalOf("getSlotLeaders", 1e9, 1)).toBe(-32602);
    expect(refusalOf("getSlotLeaders", 0, 5001)).toBe(-32602);
    expect(ask("getSlotLeaders", 0, 5000)).toHaveLength(5000);
  });

  it("returns the fees of messages and of blocks", () => {
    settle();
    const price = (microLamports: number) =>
      new TransactionInstruction({
        programId: new PublicKey("ComputeBudget111111111111111111111111111111"),
        keys: [],
        data: Buffer.from([
          3,
          ...new Uint8Array(new BigUint64Array([BigInt(microLamports)]).buffer),
        ]),
      });
    const to = wallet(51);
    const wire = run.legacy([price(1_000_000), transferOf(payer, to, sol)], [payer]);
    const message = base64(wire.subarray(65));
    // 5,000 for the signature, and the price of 2 built-in instructions of 3,000 units each.
    expect(answerValue("getFeeForMessage", message)).toBe(5000n + 6000n);
    expect(refusalOf("getFeeForMessage", `${message}AAAA`)).toBe(-32602);
    run.chain.send(wire);
    run.slots(1);
    const fees = ask("getRecentPrioritizationFees", [addressOf(to)]);
    const last = Array.isArray(fees) ? fees.find((row) => row.prioritizationFee > 0n) : null;
    expect(last).toMatchObject({ prioritizationFee: 1_000_000n });
    run.slots(160);
    expect(answerValue("getFeeForMessage", message)).toBeNull();
  });
});

describe("transactions", () => {
  const forged = (): Uint8Array => {
    const wire = run.transfer(payer, other, sol);
    wire[5] = (wire[5] ?? 0) ^ 1;
    return wire;
  };

  it("are rejected with the correct reason", () => {
    settle();
    const encoding = "base64";
    expect(refusalOf("sendTransaction", base64(forged()), { encoding })).toBe(-32002);
    const skip = { encoding, skipPreflight: true };
    expect(refusalOf("sendTransaction", base64(forged()), skip)).toBe(-32003);
    expect(refusalOf("sendTransaction", base64(Uint8Array.of(0x82)), { encoding })).toBe(-32015);
    expect(refusalOf("sendTransaction", "AA", { encoding })).toBe(-32602);
    expect(refusalOf("sendTransaction", "AAAA", { encoding })).toBe(-32602);
    expect(refusalOf("sendTransaction", "A".repeat(5468), { encoding })).toBe(-32602);
    expect(refusalOf("sendTransaction", "2".repeat(1684))).toBe(-32602);
    const wire = run.transfer(payer, other, sol);
    const early = { encoding, minContextSlot: 1e9 };
    expect(refusalOf("sendTransaction", base64(wire), early)).toBe(-32016);
    const signature = ask("sendTransaction", base64(wire), { encoding });
    run.slots(1);
    expect(run.chain.status(String(signature))?.err).toBeNull();
    expect(refusalOf("sendTransaction", base64(wire), { encoding })).toBe(-32002);
  });

  it("are simulated with and without their signatures", () => {
    const encoding = "base64";
    const simulate = (config: { readonly [key: string]: Json }) =>
      answerValue("simulateTransaction", base64(forged()), { encoding, ...config });
    expect(simulate({})).toMatchObject({ err: null, unitsConsumed: 150n, fee: 5000n });
    expect(simulate({ sigVerify: true })).toMatchObject({ err: "SignatureFailure", logs: [] });
    const accounts = { addresses: [addressOf(other), addressOf(wallet(99))], encoding };
    expect(simulate({ accounts })).toMatchObject({
      accounts: [{ owner: "11111111111111111111111111111111" }, null],
    });
    const both = { encoding, sigVerify: true, replaceRecentBlockhash: true };
    expect(refusalOf("simulateTransaction", base64(forged()), both)).toBe(-32602);
    const many = { encoding, accounts: { addresses: Array<string>(4).fill(payerAddress) } };
    expect(refusalOf("simulateTransaction", base64(forged()), many)).toBe(-32602);
  });

  it("are limited for the faucet", () => {
    const to = wallet(60);
    const signature = ask("requestAirdrop", addressOf(to), 5);
    expect(signature).toBeTypeOf("string");
    run.slots(1);
    expect(refusalOf("requestAirdrop", addressOf(to), 0)).toBe(-32602);
    expect(refusalOf("requestAirdrop", addressOf(to), 2n ** 63n)).toBe(-32602);
  });
});
