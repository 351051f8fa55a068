// @solana/web3.js 1.99 against the gateway, over real sockets, configured only with its URL.

import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  NONCE_ACCOUNT_LENGTH,
  PublicKey,
  SendTransactionError,
  SystemProgram,
  sendAndConfirmTransaction,
  Transaction,
} from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../support/network/udp-receiver.ts";
import { deferred } from "./cluster.ts";
import { fundedPayer, GatewayCluster, minimumTipLamports, tipAddress } from "./gateway-cluster.ts";

let gateway: GatewayCluster;
let connection: Connection;
let payer: Keypair;

function transfer(to: PublicKey, lamports: number): Transaction {
  const from = payer.publicKey;
  return new Transaction().add(
    SystemProgram.transfer({ fromPubkey: from, toPubkey: to, lamports }),
    SystemProgram.transfer({
      fromPubkey: from,
      toPubkey: new PublicKey(tipAddress),
      lamports: Number(minimumTipLamports) + 1_000_000,
    }),
  );
}

async function signed(message: Transaction) {
  const latest = await connection.getLatestBlockhash();
  message.recentBlockhash = latest.blockhash;
  message.feePayer = payer.publicKey;
  message.sign(payer);
  return { wire: message.serialize(), latest };
}

beforeAll(async () => {
  gateway = await GatewayCluster.open();
  connection = new Connection(gateway.url, "confirmed");
  // The library caches a blockhash for half a minute, longer than it is valid on this fast chain.
  Reflect.set(connection, "_disableBlockhashCaching", true);
  payer = await fundedPayer(gateway);
});

afterAll(() => {
  gateway.close();
});

describe("web3.js", () => {
  it("sends and confirms with one call", async () => {
    const to = Keypair.generate().publicKey;
    const signature = await sendAndConfirmTransaction(connection, transfer(to, LAMPORTS_PER_SOL), [
      payer,
    ]);
    expect(await connection.getBalance(to)).toBe(LAMPORTS_PER_SOL);
    const status = await connection.getSignatureStatus(signature);
    expect(status.value?.err).toBeNull();
    const found = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
    expect(found?.meta?.fee).toBe(5000);
    expect(gateway.submissions.requests.at(-1)?.transactions[0]?.signature).toBe(signature);
  });

  it.each([true, false])("sends raw bytes, skipPreflight %s", async (skipPreflight) => {
    const to = Keypair.generate().publicKey;
    const { wire, latest } = await signed(transfer(to, LAMPORTS_PER_SOL));
    const signature = await connection.sendRawTransaction(wire, { skipPreflight });
    const { value } = await connection.confirmTransaction({ signature, ...latest });
    expect(value.err).toBeNull();
    expect(await connection.getBalance(to)).toBe(LAMPORTS_PER_SOL);
  });

  it("shows the logs of a preflight failure, and sends nothing", async () => {
    const to = Keypair.generate().publicKey;
    const before = gateway.submissions.requests.length;
    const { wire } = await signed(transfer(to, 5000 * LAMPORTS_PER_SOL));
    const failure: unknown = await connection.sendRawTransaction(wire).catch((thrown) => thrown);
    if (!(failure instanceof SendTransactionError)) throw failure;
    expect(failure.message).toContain(
      "Transaction simulation failed: Error processing Instruction",
    );
    expect(failure.logs?.join("\n")).toContain("insufficient lamports");
    expect(gateway.submissions.requests.length).toBe(before);
  });

  it("sends a legacy transaction that it signs itself", async () => {
    const to = Keypair.generate().publicKey;
    const latest = await connection.getLatestBlockhash();
    // oxlint-disable-next-line typescript/no-deprecated -- what old clients call is what is tested
    const signature = await connection.sendTransaction(transfer(to, LAMPORTS_PER_SOL), [payer]);
    await connection.confirmTransaction({ signature, ...latest });
    expect(await connection.getBalance(to)).toBe(LAMPORTS_PER_SOL);
  });

  it("confirms by the nonce strategy", async () => {
    const nonce = Keypair.generate();
    const lamports = await connection.getMinimumBalanceForRentExemption(NONCE_ACCOUNT_LENGTH);
    const create = SystemProgram.createNonceAccount({
      fromPubkey: payer.publicKey,
      noncePubkey: nonce.publicKey,
      authorizedPubkey: payer.publicKey,
      lamports,
    });
    const tipped = transfer(Keypair.generate().publicKey, LAMPORTS_PER_SOL).add(create);
    await sendAndConfirmTransaction(connection, tipped, [payer, nonce]);
    const nonceAccountPubkey = nonce.publicKey;
    const nonceValue = (await connection.getNonce(nonceAccountPubkey))?.nonce ?? "";
    const to = Keypair.generate().publicKey;
    const nonceInstruction = SystemProgram.nonceAdvance({
      noncePubkey: nonceAccountPubkey,
      authorizedPubkey: payer.publicKey,
    });
    const message = new Transaction({
      feePayer: payer.publicKey,
      nonceInfo: { nonce: nonceValue, nonceInstruction },
      minContextSlot: await connection.getSlot(),
    }).add(...transfer(to, LAMPORTS_PER_SOL).instructions);
    message.sign(payer);
    const signature = await connection.sendRawTransaction(message.serialize());
    const { value } = await connection.confirmTransaction({
      signature,
      minContextSlot: await connection.getSlot(),
      nonceAccountPubkey,
      nonceValue,
    });
    expect(value.err).toBeNull();
    expect(await connection.getBalance(to)).toBe(LAMPORTS_PER_SOL);
  });

  it("receives slots, roots, accounts, logs and signatures at the next port", async () => {
    const to = Keypair.generate().publicKey;
    const slot = deferred<number>();
    const root = deferred<number>();
    const account = deferred<number>();
    const logs = deferred<string>();
    const listeners = {
      slot: connection.onSlotChange((each) => slot.resolve(each.slot)),
      root: connection.onRootChange((each) => root.resolve(each)),
      account: connection.onAccountChange(to, ({ lamports }) => account.resolve(lamports)),
      logs: connection.onLogs(to, ({ signature }) => logs.resolve(signature)),
    };
    // The library does not report that it has subscribed, so the test reads the node's count.
    await until(() => gateway.cluster.endpoint.counts.subscriptions >= 4, "the subscriptions");
    const { wire } = await signed(transfer(to, LAMPORTS_PER_SOL));
    const signature = await connection.sendRawTransaction(wire);
    const result = deferred<unknown>();
    connection.onSignature(signature, ({ err }) => result.resolve(err), "confirmed");
    expect(await slot.promise).toBeGreaterThan(0);
    expect(await root.promise).toBeGreaterThan(0);
    expect(await account.promise).toBe(LAMPORTS_PER_SOL);
    expect(await logs.promise).toBe(signature);
    expect(await result.promise).toBeNull();
    await connection.removeSlotChangeListener(listeners.slot);
    await connection.removeRootChangeListener(listeners.root);
    await connection.removeAccountChangeListener(listeners.account);
    await connection.removeOnLogsListener(listeners.logs);
    await until(() => gateway.cluster.endpoint.counts.subscriptions === 0, "their ends");
  });
});
