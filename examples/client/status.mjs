// Status events of a transaction as they occur: the typed client's stream of one signature.
//
// node status.mjs GATEWAY [CHAIN]
//
// GATEWAY is the URL of the first screen, with its key; CHAIN gives the payer money.

import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { ShredwayClient } from "shredway/client";
import { WebSocket } from "ws"; // not needed on Node 22 and later, in browsers and in Deno

const [gateway = "", chainUrl = "http://127.0.0.1:8899"] = process.argv.slice(2);
const client = new ShredwayClient({ url: gateway, WebSocket });
const warm = client.keepAlive(5_000); // the connection is open before it is needed

const chain = new Connection(chainUrl, "confirmed");
const payer = Keypair.generate();
const airdrop = await chain.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
await chain.confirmTransaction({ signature: airdrop, ...(await chain.getLatestBlockhash()) });

// Pay at most the median of the landed tips, and never more than a limit of your own.
const { p50, count } = await client.tipFloor();
const least = 10_000n;
const usual = count === 0n || p50 < least ? least : p50;
const most = 1_000_000n;
const [tipAccount] = await client.getTipAccounts();
const { blockhash, lastValidBlockHeight } = await chain.getLatestBlockhash();
const feePayer = payer.publicKey;
const transaction = new Transaction({ feePayer, blockhash, lastValidBlockHeight }).add(
  SystemProgram.transfer({
    fromPubkey: feePayer,
    toPubkey: new PublicKey(tipAccount),
    lamports: usual < most ? usual : most,
  }),
);
transaction.sign(payer);

const signature = await client.sendTransaction(transaction.serialize());
console.log("sent", signature);

// Each event is reported once, from the first one to the final status; a disconnection loses none.
for await (const { event } of client.watchStatuses({ signatures: [signature] })) {
  const { kind, at, route = "", reason = "" } = event;
  console.log(at, kind, route, event.slot ? `slot ${event.slot}` : "", reason);
}
const { state, slot } = await client.waitForEnd(signature); // immediate: it has a final status
console.log(`${state} in slot ${slot}`);
await warm.stop();
process.exit(0);
