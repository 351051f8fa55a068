// A transfer with a tip, sent and confirmed by stock @solana/web3.js: only the URL is the gateway's.
//
//   node send.mjs GATEWAY [CHAIN]
//
// GATEWAY is the URL of the first screen, with its key; CHAIN gives the payer money (default
// http://127.0.0.1:8899, the sandbox's own node). In production the payer is a key of yours.

import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  sendAndConfirmTransaction,
  Transaction,
} from "@solana/web3.js";

const [gateway = "", chainUrl = "http://127.0.0.1:8899"] = process.argv.slice(2);

// The gateway's own methods are plain JSON-RPC on the same URL.
const call = async (method, params = []) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await (await fetch(gateway, { method: "POST", body })).json();
  if (answer.error) throw new Error(answer.error.message);
  return answer.result;
};

const chain = new Connection(chainUrl, "confirmed");
const payer = Keypair.generate();
const airdrop = await chain.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
await chain.confirmTransaction({ signature: airdrop, ...(await chain.getLatestBlockhash()) });

// The order of the addresses changes with each response: using the first one rotates.
const [tipAccount] = await call("getTipAccounts");
const transaction = new Transaction().add(
  SystemProgram.transfer({
    fromPubkey: payer.publicKey,
    toPubkey: Keypair.generate().publicKey,
    lamports: 5_000_000,
  }),
  SystemProgram.transfer({
    fromPubkey: payer.publicKey,
    toPubkey: new PublicKey(tipAccount),
    lamports: 10_000, // the minimum; /tip_floor has current percentiles
  }),
);

// Blockhash, submission and confirmation all use the gateway. Its WebSocket is one port higher.
const connection = new Connection(gateway, "confirmed");
const signature = await sendAndConfirmTransaction(connection, transaction, [payer], {
  skipPreflight: true,
});
const { value } = await connection.getSignatureStatus(signature);
console.log(`${signature} is ${value.confirmationStatus} in slot ${value.slot}`);
process.exit(0); // web3.js keeps its WebSocket open
