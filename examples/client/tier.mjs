// From a tip to a tier: pays a tip for shreds through the chain's own node, registers it, and waits
// until it counts.
//
// node tier.mjs GATEWAY [CHAIN] [LAMPORTS]
//
// GATEWAY is the URL of the first screen, with its key; CHAIN gives the payer money and lands the
// tip. Any provider may land it, as long as a copy is registered here.

import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { ShredwayClient } from "shredway/client";

const [gateway = "", chainUrl = "http://127.0.0.1:8899", lamports = "500000000"] =
  process.argv.slice(2);
const client = new ShredwayClient({ url: gateway });

const chain = new Connection(chainUrl, "confirmed");
const payer = Keypair.generate();
const airdrop = await chain.requestAirdrop(payer.publicKey, 2 * LAMPORTS_PER_SOL);
await chain.confirmTransaction({ signature: airdrop, ...(await chain.getLatestBlockhash()) });

const [tipAccount] = await client.getShredTipAccounts();
// The reference key names the account, so that the tip counts for no other account.
const { tipProof } = await client.getTier();
const { blockhash, lastValidBlockHeight } = await chain.getLatestBlockhash();
const feePayer = payer.publicKey;
const transfer = SystemProgram.transfer({
  fromPubkey: feePayer,
  toPubkey: new PublicKey(tipAccount),
  lamports: BigInt(lamports),
});
const reference = new PublicKey(tipProof.referenceKey);
transfer.keys.push({ pubkey: reference, isSigner: false, isWritable: false });
const transaction = new Transaction({ feePayer, blockhash, lastValidBlockHeight }).add(transfer);
transaction.sign(payer);
const wire = transaction.serialize();
const slot = await chain.getSlot();
await chain.sendRawTransaction(wire, { skipPreflight: true });

const { accepted, rejected } = await client.registerTips([{ transaction: wire, slot }]);
for (const { reason, message } of rejected) console.log("rejected:", reason, message);
const [signature] = accepted;
if (!signature) process.exit(1);

for (;;) {
  const registrations = await client.getRegistrations({ limit: 10 });
  const own = registrations.find((one) => one.signature === signature);
  if (own && own.state !== "pending") {
    console.log(`${signature} ${own.state} ${own.reason ?? ""}`.trimEnd());
    break;
  }
  await new Promise((done) => setTimeout(done, 200));
}
const { tier, sumLamports, thresholds } = await client.getTier();
console.log(`tier ${tier} of ${sumLamports} lamports`);
for (const { tier: name, missingLamports } of thresholds) {
  console.log(
    " ",
    name,
    missingLamports === 0n ? "reached" : `${missingLamports} lamports missing`,
  );
}
const [latest] = await client.getTierHistory({ limit: 1 });
console.log(latest.at, latest.text);
process.exit(0);
