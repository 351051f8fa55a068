// A transfer with a tip, sent and confirmed by stock @solana/kit: only the URLs are the gateway's.
//
//   node send.mjs GATEWAY [CHAIN]
//
// GATEWAY is the URL of the first screen, with its key; CHAIN gives the payer money (default
// http://127.0.0.1:8899, the sandbox's own node). In production the payer is a key of yours.

import {
  AccountRole,
  address,
  airdropFactory,
  appendTransactionMessageInstructions,
  assertIsSendableTransaction,
  assertIsTransactionWithBlockhashLifetime,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  createTransactionMessage,
  generateKeyPairSigner,
  getSignatureFromTransaction,
  lamports,
  pipe,
  sendAndConfirmTransactionFactory,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from "@solana/kit";

const [gateway = "", chain = "http://127.0.0.1:8899"] = process.argv.slice(2);

// A transfer of the System program: the package @solana-program/system has it ready.
const transfer = (from, to, amount) => {
  const data = new Uint8Array(12);
  const view = new DataView(data.buffer);
  view.setUint32(0, 2, true);
  view.setBigUint64(4, amount, true);
  const accounts = [
    { address: from, role: AccountRole.WRITABLE_SIGNER },
    { address: to, role: AccountRole.WRITABLE },
  ];
  return { programAddress: address("11111111111111111111111111111111"), accounts, data };
};

const payer = await generateKeyPairSigner();
const airdrop = airdropFactory({
  rpc: createSolanaRpc(chain),
  rpcSubscriptions: createSolanaRpcSubscriptions(chain.replace("http", "ws")),
});
await airdrop({
  commitment: "confirmed",
  lamports: lamports(1_000_000_000n),
  recipientAddress: payer.address,
});

// The gateway's WebSocket is on the same port.
const rpc = createSolanaRpc(gateway);
const rpcSubscriptions = createSolanaRpcSubscriptions(gateway.replace("http", "ws"));
const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getTipAccounts" });
const { result } = await (await fetch(gateway, { method: "POST", body })).json();
const [tipAccount] = result;

const { value: latest } = await rpc.getLatestBlockhash().send();
const to = await generateKeyPairSigner();
const message = pipe(
  createTransactionMessage({ version: 0 }),
  (m) => setTransactionMessageFeePayerSigner(payer, m),
  (m) => setTransactionMessageLifetimeUsingBlockhash(latest, m),
  (m) =>
    appendTransactionMessageInstructions(
      [
        transfer(payer.address, to.address, 5_000_000n),
        transfer(payer.address, address(tipAccount), 10_000n),
      ],
      m,
    ),
);
const signed = await signTransactionMessageWithSigners(message);
assertIsSendableTransaction(signed);
assertIsTransactionWithBlockhashLifetime(signed);

const sendAndConfirm = sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions });
await sendAndConfirm(signed, { commitment: "confirmed", skipPreflight: true });
const signature = getSignatureFromTransaction(signed);
const { value } = await rpc.getSignatureStatuses([signature]).send();
console.log(`${signature} is ${value[0].confirmationStatus} in slot ${value[0].slot}`);
process.exit(0);
