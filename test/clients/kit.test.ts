// @solana/kit 8.4 against the endpoint, over real sockets.

import {
  type Address,
  address,
  airdropFactory,
  appendTransactionMessageInstruction,
  assertIsSendableTransaction,
  assertIsTransactionWithBlockhashLifetime,
  assertIsTransactionWithDurableNonceLifetime,
  createKeyPairSignerFromBytes,
  createSolanaRpc,
  createSolanaRpcSubscriptions_UNSTABLE,
  createTransactionMessage,
  estimateResourceLimitsFactory,
  fetchEncodedAccount,
  fetchJsonParsedAccount,
  generateKeyPairSigner,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  isSolanaError,
  type KeyPairSigner,
  lamports,
  type Nonce,
  pipe,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SLOT_SKIPPED,
  sendAndConfirmDurableNonceTransactionFactory,
  sendAndConfirmTransactionFactory,
  setTransactionMessageConfig,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  setTransactionMessageLifetimeUsingDurableNonce,
  signTransactionMessageWithSigners,
} from "@solana/kit";
import { Connection, Keypair, SystemProgram, sendAndConfirmTransaction } from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Cluster } from "./cluster.ts";
import { transfer } from "./kit-transfer.ts";

function connect(cluster: Cluster) {
  const rpc = createSolanaRpc(cluster.url);
  const rpcSubscriptions = createSolanaRpcSubscriptions_UNSTABLE(cluster.webSocketUrl);
  return {
    rpc,
    rpcSubscriptions,
    airdrop: airdropFactory({ rpc, rpcSubscriptions }),
    sendAndConfirm: sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions }),
  };
}

let cluster: Cluster;
let client: ReturnType<typeof connect>;
let payer: KeyPairSigner;

async function signedTransfer(version: 0 | 1, to: Address, amount: bigint) {
  const { value: latest } = await client.rpc.getLatestBlockhash().send();
  const message =
    version === 0
      ? pipe(
          createTransactionMessage({ version: 0 }),
          (m) => setTransactionMessageFeePayerSigner(payer, m),
          (m) => setTransactionMessageLifetimeUsingBlockhash(latest, m),
          (m) => appendTransactionMessageInstruction(transfer(payer, to, amount), m),
        )
      : pipe(
          createTransactionMessage({ version: 1 }),
          (m) => setTransactionMessageFeePayerSigner(payer, m),
          (m) => setTransactionMessageLifetimeUsingBlockhash(latest, m),
          (m) => appendTransactionMessageInstruction(transfer(payer, to, amount), m),
          (m) =>
            setTransactionMessageConfig(
              {
                computeUnitLimit: 10_000,
                loadedAccountsDataSizeLimit: 65_536,
                priorityFeeLamports: lamports(1_000n),
              },
              m,
            ),
        );
  const signed = await signTransactionMessageWithSigners(message);
  assertIsSendableTransaction(signed);
  assertIsTransactionWithBlockhashLifetime(signed);
  return signed;
}

async function firstOf<T>(notifications: AsyncIterable<T>): Promise<T> {
  for await (const notification of notifications) return notification;
  throw new Error("expected a notification, got the end");
}

beforeAll(async () => {
  cluster = await Cluster.open();
  client = connect(cluster);
  payer = await generateKeyPairSigner();
  await client.airdrop({
    commitment: "confirmed",
    lamports: lamports(100_000_000_000n),
    recipientAddress: payer.address,
  });
});

afterAll(() => {
  cluster.close();
});

describe("kit", () => {
  it("reads the cluster and accounts", async () => {
    const { rpc } = client;
    expect((await rpc.getVersion().send())["solana-core"]).toBe("4.2.0");
    expect(await rpc.getHealth().send()).toBe("ok");
    expect(await rpc.getGenesisHash().send()).toBe(cluster.chain.genesisHash);
    const { value } = await rpc.getBalance(payer.address).send();
    expect(value).toBe(100_000_000_000n);
    const account = await fetchEncodedAccount(rpc, payer.address);
    expect(account).toMatchObject({ exists: true, lamports: 100_000_000_000n, space: 0n });
    const parsed = await fetchJsonParsedAccount(rpc, payer.address);
    expect(parsed.exists).toBe(true);
    expect((await rpc.getVoteAccounts().send()).current.length).toBe(5);
    expect((await rpc.getEpochInfo().send()).slotsInEpoch).toBe(8192n);
  });

  it.each([0, 1] as const)("sends and confirms a v%i transaction", async (version) => {
    const { rpc } = client;
    const to = await generateKeyPairSigner();
    const signed = await signedTransfer(version, to.address, 1_000_000n);
    await client.sendAndConfirm(signed, { commitment: "confirmed" });
    expect((await rpc.getBalance(to.address).send()).value).toBe(1_000_000n);
    const signature = getSignatureFromTransaction(signed);
    const found = await rpc
      .getTransaction(signature, {
        commitment: "confirmed",
        encoding: "json",
        maxSupportedTransactionVersion: 1,
      })
      .send();
    expect(found?.version).toBe(version);
    expect(found?.meta?.fee).toBe(version === 0 ? 5000n : 6000n);
    if (version === 1) {
      expect(found?.transaction.message).toMatchObject({
        transactionConfig: {
          computeUnitLimit: 10_000,
          heapSize: null,
          loadedAccountsDataSizeLimit: 65_536,
          priorityFee: 1_000n,
        },
      });
      // web3.js cannot build such a transaction, but it can read it.
      const read = await new Connection(cluster.url).getTransaction(signature, {
        commitment: "confirmed",
        maxSupportedTransactionVersion: 1,
      });
      expect(read?.version).toBe(1);
    }
    const base64 = await rpc
      .getTransaction(signature, {
        commitment: "confirmed",
        encoding: "base64",
        maxSupportedTransactionVersion: 1,
      })
      .send();
    expect(base64?.transaction[0]).toBe(getBase64EncodedWireTransaction(signed));
    const block = await rpc
      .getBlock(found?.slot ?? 0n, {
        commitment: "confirmed",
        encoding: "jsonParsed",
        maxSupportedTransactionVersion: 1,
      })
      .send();
    expect(block?.transactions.flatMap(({ transaction }) => transaction.signatures)).toContain(
      signature,
    );
  });

  it("estimates the resource limits of a message by simulation", async () => {
    const estimate = estimateResourceLimitsFactory({ rpc: client.rpc });
    const message = pipe(
      createTransactionMessage({ version: 1 }),
      (m) => setTransactionMessageFeePayerSigner(payer, m),
      (m) => appendTransactionMessageInstruction(transfer(payer, payer.address, 1n), m),
    );
    const limits = await estimate(message);
    expect(limits.computeUnitLimit).toBe(150);
    expect(limits.loadedAccountsDataSizeLimit).toBeGreaterThan(0);
  });

  it("shows the cause and the logs of a preflight failure", async () => {
    const signed = await signedTransfer(0, payer.address, 2n ** 63n);
    const failure = await client.sendAndConfirm(signed, { commitment: "confirmed" }).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    const code = SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE;
    if (!isSolanaError(failure, code)) throw failure;
    expect(failure.context.logs?.join("\n")).toContain("insufficient lamports");
    expect(failure.context.unitsConsumed).toBe(150n);
    expect(String(failure.cause)).toContain("Custom program error: #1");
  });

  it("understands the errors of skipped slots and of future slots", async () => {
    const ahead = client.rpc.getBalance(payer.address, { minContextSlot: 2n ** 52n }).send();
    await expect(ahead).rejects.toSatisfy((thrown) =>
      isSolanaError(thrown, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED),
    );
    const faulty = await Cluster.open();
    try {
      const { rpc, rpcSubscriptions } = connect(faulty);
      faulty.chain.faults.skipNext(2);
      const abort = new AbortController();
      const roots = await rpcSubscriptions
        .rootNotifications()
        .subscribe({ abortSignal: abort.signal });
      for await (const root of roots) if (root > 12n) break;
      abort.abort();
      const blocks = await rpc.getBlocks(0n, 12n, { commitment: "confirmed" }).send();
      const skipped = Array.from({ length: 12 }, (_, index) => BigInt(index)).find(
        (slot) => !blocks.includes(slot),
      );
      expect(skipped).toBeDefined();
      await expect(rpc.getBlock(skipped ?? 0n).send()).rejects.toSatisfy((thrown) =>
        isSolanaError(thrown, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SLOT_SKIPPED),
      );
    } finally {
      faulty.close();
    }
  });

  it("iterates notifications until it is stopped", async () => {
    const abort = new AbortController();
    const { rpcSubscriptions } = client;
    const slots = await rpcSubscriptions.slotNotifications().subscribe({
      abortSignal: abort.signal,
    });
    const seen: bigint[] = [];
    for await (const { slot, parent } of slots) {
      expect(parent).toBeLessThan(slot);
      seen.push(slot);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual(seen.toSorted((a, b) => Number(a - b)));
    const to = await generateKeyPairSigner();
    const balances = await rpcSubscriptions
      .accountNotifications(to.address, { commitment: "confirmed", encoding: "base64" })
      .subscribe({ abortSignal: abort.signal });
    const logs = await rpcSubscriptions
      .logsNotifications({ mentions: [to.address] }, { commitment: "confirmed" })
      .subscribe({ abortSignal: abort.signal });
    const blocks = await rpcSubscriptions
      .blockNotifications(
        { mentionsAccountOrProgram: to.address },
        { commitment: "confirmed", maxSupportedTransactionVersion: 1, encoding: "base64" },
      )
      .subscribe({ abortSignal: abort.signal });
    // The library drops messages before the first request, so request first and send then.
    const first = Promise.all([firstOf(balances), firstOf(logs), firstOf(blocks)]);
    const signed = await signedTransfer(1, to.address, 5_000_000n);
    await client.sendAndConfirm(signed, { commitment: "processed" });
    const [balance, log, block] = await first;
    expect(balance.value.lamports).toBe(5_000_000n);
    expect(log.value.signature).toBe(getSignatureFromTransaction(signed));
    expect(block.value.err).toBeNull();
    expect(block.value.block?.transactions.length).toBe(1);
    abort.abort();
  });

  it("spends a durable nonce", async () => {
    const connection = new Connection(cluster.url, "confirmed");
    const funder = Keypair.generate();
    const nonce = Keypair.generate();
    const latest = await connection.getLatestBlockhash();
    const signature = await connection.requestAirdrop(funder.publicKey, 1e10);
    await connection.confirmTransaction({ signature, ...latest });
    const create = SystemProgram.createNonceAccount({
      fromPubkey: funder.publicKey,
      noncePubkey: nonce.publicKey,
      authorizedPubkey: funder.publicKey,
      lamports: await connection.getMinimumBalanceForRentExemption(80),
    });
    await sendAndConfirmTransaction(connection, create, [funder, nonce]);
    const signer = await createKeyPairSignerFromBytes(funder.secretKey);
    const to = await generateKeyPairSigner();
    const nonceAddress = address(nonce.publicKey.toBase58());
    const account = await fetchJsonParsedAccount<{ blockhash: Nonce }>(client.rpc, nonceAddress);
    if (!account.exists || !("blockhash" in account.data)) throw new Error("expected a nonce");
    const { blockhash: value } = account.data;
    const message = pipe(
      createTransactionMessage({ version: 0 }),
      (m) => setTransactionMessageFeePayerSigner(signer, m),
      (m) =>
        setTransactionMessageLifetimeUsingDurableNonce(
          {
            nonce: value,
            nonceAccountAddress: nonceAddress,
            nonceAuthorityAddress: signer.address,
          },
          m,
        ),
      (m) => appendTransactionMessageInstruction(transfer(signer, to.address, 3_000_000n), m),
    );
    const signed = await signTransactionMessageWithSigners(message);
    assertIsSendableTransaction(signed);
    assertIsTransactionWithDurableNonceLifetime(signed);
    const { rpc, rpcSubscriptions } = client;
    const sendAndConfirm = sendAndConfirmDurableNonceTransactionFactory({ rpc, rpcSubscriptions });
    await sendAndConfirm(signed, { commitment: "confirmed" });
    expect((await rpc.getBalance(to.address).send()).value).toBe(3_000_000n);
  });
});
