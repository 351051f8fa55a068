// @solana/kit 8.4 against the gateway, over real sockets, configured only with its URL.

import {
  type Address,
  address,
  airdropFactory,
  appendTransactionMessageInstructions,
  assertIsSendableTransaction,
  assertIsTransactionWithBlockhashLifetime,
  assertIsTransactionWithDurableNonceLifetime,
  createKeyPairSignerFromBytes,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  createTransactionMessage,
  fetchJsonParsedAccount,
  generateKeyPairSigner,
  type Instruction,
  isSolanaError,
  type KeyPairSigner,
  lamports,
  type Nonce,
  pipe,
  SOLANA_ERROR__JSON_RPC__METHOD_NOT_FOUND,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
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
import { GatewayCluster, minimumTipLamports, tipAddress } from "./gateway-cluster.ts";
import { systemProgram, transfer } from "./kit-transfer.ts";

/** The minimum balance of an account. */
const tipLamports = minimumTipLamports + 1_000_000n;

const v1Config = {
  computeUnitLimit: 10_000,
  loadedAccountsDataSizeLimit: 65_536,
  priorityFeeLamports: lamports(1_000n),
};

function withTip(from: KeyPairSigner, to: Address, amount: bigint): Instruction[] {
  return [transfer(from, to, amount), transfer(from, address(tipAddress), tipLamports)];
}

function connect(gateway: GatewayCluster) {
  const rpc = createSolanaRpc(gateway.url);
  const rpcSubscriptions = createSolanaRpcSubscriptions(gateway.webSocketUrl);
  return {
    rpc,
    rpcSubscriptions,
    sendAndConfirm: sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions }),
  };
}

let gateway: GatewayCluster;
let client: ReturnType<typeof connect>;
let payer: KeyPairSigner;

async function signedTransfer(version: 0 | 1, to: Address, amount: bigint) {
  const { value: latest } = await client.rpc.getLatestBlockhash().send();
  const instructions = withTip(payer, to, amount);
  const message =
    version === 0
      ? pipe(
          createTransactionMessage({ version: 0 }),
          (m) => setTransactionMessageFeePayerSigner(payer, m),
          (m) => setTransactionMessageLifetimeUsingBlockhash(latest, m),
          (m) => appendTransactionMessageInstructions(instructions, m),
        )
      : pipe(
          createTransactionMessage({ version: 1 }),
          (m) => setTransactionMessageFeePayerSigner(payer, m),
          (m) => setTransactionMessageLifetimeUsingBlockhash(latest, m),
          (m) => appendTransactionMessageInstructions(instructions, m),
          (m) => setTransactionMessageConfig(v1Config, m),
        );
  const signed = await signTransactionMessageWithSigners(message);
  assertIsSendableTransaction(signed);
  assertIsTransactionWithBlockhashLifetime(signed);
  return signed;
}

beforeAll(async () => {
  gateway = await GatewayCluster.open();
  client = connect(gateway);
  payer = await generateKeyPairSigner();
  const { url, webSocketUrl } = gateway.cluster;
  const airdrop = airdropFactory({
    rpc: createSolanaRpc(url),
    rpcSubscriptions: createSolanaRpcSubscriptions(webSocketUrl),
  });
  await airdrop({
    commitment: "confirmed",
    lamports: lamports(100_000_000_000n),
    recipientAddress: payer.address,
  });
});

afterAll(() => {
  gateway.close();
});

describe("kit", () => {
  it.each([0, 1] as const)("sends and confirms a v%i transaction", async (version) => {
    const to = await generateKeyPairSigner();
    const signed = await signedTransfer(version, to.address, 1_000_000n);
    await client.sendAndConfirm(signed, { commitment: "confirmed" });
    expect((await client.rpc.getBalance(to.address).send()).value).toBe(1_000_000n);
    expect(gateway.submissions.requests.at(-1)?.transactions[0]?.version).toBe(version);
  });

  it("spends a durable nonce", async () => {
    const node = new Connection(gateway.cluster.url, "confirmed");
    const funder = Keypair.generate();
    const nonce = Keypair.generate();
    const latest = await node.getLatestBlockhash();
    const signature = await node.requestAirdrop(funder.publicKey, 1e10);
    await node.confirmTransaction({ signature, ...latest });
    const create = SystemProgram.createNonceAccount({
      fromPubkey: funder.publicKey,
      noncePubkey: nonce.publicKey,
      authorizedPubkey: funder.publicKey,
      lamports: await node.getMinimumBalanceForRentExemption(80),
    });
    await sendAndConfirmTransaction(node, create, [funder, nonce]);
    const signer = await createKeyPairSignerFromBytes(funder.secretKey);
    const to = await generateKeyPairSigner();
    const nonceAccountAddress = address(nonce.publicKey.toBase58());
    const { rpc, rpcSubscriptions } = client;
    const account = await fetchJsonParsedAccount<{ blockhash: Nonce }>(rpc, nonceAccountAddress);
    if (!account.exists || !("blockhash" in account.data)) throw new Error("expected a nonce");
    const lifetime = {
      nonce: account.data.blockhash,
      nonceAccountAddress,
      nonceAuthorityAddress: signer.address,
    };
    const message = pipe(
      createTransactionMessage({ version: 0 }),
      (m) => setTransactionMessageFeePayerSigner(signer, m),
      (m) => setTransactionMessageLifetimeUsingDurableNonce(lifetime, m),
      (m) => appendTransactionMessageInstructions(withTip(signer, to.address, 3_000_000n), m),
    );
    const signed = await signTransactionMessageWithSigners(message);
    assertIsSendableTransaction(signed);
    assertIsTransactionWithDurableNonceLifetime(signed);
    const sendAndConfirm = sendAndConfirmDurableNonceTransactionFactory({ rpc, rpcSubscriptions });
    await sendAndConfirm(signed, { commitment: "confirmed" });
    expect((await rpc.getBalance(to.address).send()).value).toBe(3_000_000n);
  });

  it("shows the cause and the logs of a preflight failure", async () => {
    const signed = await signedTransfer(0, payer.address, 2n ** 63n);
    const failure: unknown = await client
      .sendAndConfirm(signed, { commitment: "confirmed" })
      .catch((thrown: unknown) => thrown);
    const code = SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE;
    if (!isSolanaError(failure, code)) throw failure;
    expect(failure.context.logs?.join("\n")).toContain("insufficient lamports");
    expect(failure.context.unitsConsumed).toBe(150n);
    expect(String(failure.cause)).toContain("Custom program error: #1");
  });

  it("understands the errors of the node and of the gateway", async () => {
    const { rpc } = client;
    const ahead = rpc.getBalance(payer.address, { minContextSlot: 2n ** 52n }).send();
    await expect(ahead).rejects.toSatisfy((thrown) =>
      isSolanaError(thrown, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED),
    );
    await expect(rpc.getProgramAccounts(systemProgram).send()).rejects.toSatisfy((thrown) =>
      isSolanaError(thrown, SOLANA_ERROR__JSON_RPC__METHOD_NOT_FOUND),
    );
  });

  it("reads 64-bit integers exactly", async () => {
    const { value } = await client.rpc.getAccountInfo(systemProgram, { encoding: "base64" }).send();
    const direct = await createSolanaRpc(gateway.cluster.url)
      .getAccountInfo(systemProgram, { encoding: "base64" })
      .send();
    expect(value).toEqual(direct.value);
  });

  it("iterates notifications until it is stopped", async () => {
    const abort = new AbortController();
    const slots = await client.rpcSubscriptions
      .slotNotifications()
      .subscribe({ abortSignal: abort.signal });
    const seen: bigint[] = [];
    for await (const { slot, parent } of slots) {
      expect(parent).toBeLessThan(slot);
      seen.push(slot);
      if (seen.length === 5) break;
    }
    expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => Number(a - b)));
    abort.abort();
  });
});
