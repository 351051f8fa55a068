// Helper of the shell scripts: creates a funded payer, and prints a signed transfer to ADDRESS in
// base64.
//
// node sign.mjs CHAIN ADDRESS LAMPORTS

import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";

const [chainUrl = "", address = "", lamports = ""] = process.argv.slice(2);
const chain = new Connection(chainUrl, "confirmed");
const payer = Keypair.generate();
const airdrop = await chain.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
await chain.confirmTransaction({ signature: airdrop, ...(await chain.getLatestBlockhash()) });

const { blockhash, lastValidBlockHeight } = await chain.getLatestBlockhash();
const feePayer = payer.publicKey;
const transaction = new Transaction({ feePayer, blockhash, lastValidBlockHeight }).add(
  SystemProgram.transfer({
    fromPubkey: feePayer,
    toPubkey: new PublicKey(address),
    lamports: Number(lamports),
  }),
);
transaction.sign(payer);
console.log(transaction.serialize().toString("base64"));
process.exit(0);
