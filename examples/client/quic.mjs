// A transaction over QUIC: one connection that is kept, raw bytes, the signature as response.
//
// node quic.mjs GATEWAY [CHAIN] [QUIC]
//
// GATEWAY is the URL of the first screen, with its key; CHAIN gives the payer money; QUIC is the address of
// the line "quic" on the first screen.

import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { ShredwayClient } from "shredway/client";
import { connectQuic } from "shredway/client/quic";
import { WebSocket } from "ws"; // not needed on Node 22 and later

const [gateway = "", chainUrl = "http://127.0.0.1:8899", address = "127.0.0.1:7000"] =
  process.argv.slice(2);
const client = new ShredwayClient({ url: gateway, WebSocket });
const quic = await connectQuic({
  address,
  apiKey: new URL(gateway).searchParams.get("api-key") ?? "",
  // On another machine: server: { fingerprint: "…" }, as the operator gives it.
  onClosed: ({ name, message }) => console.error(`closed: ${name} ${message}`),
});

const chain = new Connection(chainUrl, "confirmed");
const payer = Keypair.generate();
const airdrop = await chain.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
await chain.confirmTransaction({ signature: airdrop, ...(await chain.getLatestBlockhash()) });

const [tipAccount] = await client.getTipAccounts();
const { blockhash, lastValidBlockHeight } = await chain.getLatestBlockhash();
const feePayer = payer.publicKey;
const transaction = new Transaction({ feePayer, blockhash, lastValidBlockHeight }).add(
  SystemProgram.transfer({
    fromPubkey: feePayer,
    toPubkey: new PublicKey(tipAccount),
    lamports: 10_000n,
  }),
);
transaction.sign(payer);

const signature = await quic.send(transaction.serialize());
console.log("sent", signature);
const { state, slot } = await client.waitForEnd(signature);
console.log(`${state} in slot ${slot}`);
quic.close();
process.exit(0);
