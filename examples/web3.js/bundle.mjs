// A bundle: two transfers that land together, in order, or not at all. The tip is in the second one.
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

const [gateway = "", chainUrl = "http://127.0.0.1:8899"] = process.argv.slice(2);
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

const [tipAccount] = await call("getTipAccounts");
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

// revertProtection: a single transaction then uses no route that may land it as failed.
const signatures = await call("sendBundle", [
  bundle,
  { encoding: "base64", revertProtection: true },
]);

let statuses = [];
while (statuses.length === 0 || statuses.some(({ state }) => state === "open")) {
  await new Promise((done) => setTimeout(done, 200));
  statuses = await call("getTransactionStatus", [signatures]);
}
for (const { signature, state, slot } of statuses) console.log(signature, state, "in slot", slot);
process.exit(0);
