// A bundle by stock jito-js-rpc: the gateway's paths below /api/v1 are those of a block engine.
//
//   node bundle.mjs GATEWAY [CHAIN]
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
import { JitoJsonRpcClient } from "jito-js-rpc";

const [gateway = "", chainUrl = "http://127.0.0.1:8899"] = process.argv.slice(2);
const { origin, searchParams } = new URL(gateway);
const client = new JitoJsonRpcClient(`${origin}/api/v1`, searchParams.get("api-key"));

const chain = new Connection(chainUrl, "confirmed");
const payer = Keypair.generate();
const airdrop = await chain.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
await chain.confirmTransaction({ signature: airdrop, ...(await chain.getLatestBlockhash()) });

const tipAccount = await client.getRandomTipAccount();
const { blockhash, lastValidBlockHeight } = await chain.getLatestBlockhash();
const signed = (to, lamports) => {
  const feePayer = payer.publicKey;
  const transaction = new Transaction({ feePayer, blockhash, lastValidBlockHeight });
  transaction.add(SystemProgram.transfer({ fromPubkey: feePayer, toPubkey: to, lamports }));
  transaction.sign(payer);
  return transaction.serialize().toString("base64");
};
const bundle = [
  signed(Keypair.generate().publicKey, 5_000_000),
  signed(new PublicKey(tipAccount), 50_000),
];

const { result: id, error } = await client.sendBundle([bundle, { encoding: "base64" }]);
if (error) throw new Error(error.message);
console.log("bundle", id);

let status = "Pending";
while (status === "Pending") {
  await new Promise((done) => setTimeout(done, 200));
  const { result } = await client.getInFlightBundleStatuses([[id]]);
  status = result.value[0].status;
}
if (status !== "Landed") throw new Error(`the bundle ended as ${status}`);

let landed = null;
while (landed?.confirmation_status !== "finalized") {
  await new Promise((done) => setTimeout(done, 500));
  const { result } = await client.getBundleStatuses([[id]]);
  landed = result.value[0];
}
console.log(`finalized in slot ${landed.slot}: ${landed.transactions.join(" ")}`);
process.exit(0);
