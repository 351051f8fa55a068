// sendIdeal: two transactions with one durable nonce, one with a high priority fee for staked
// partners and one with a high tip for block builders. When one of them lands, the other becomes
// invalid.
//
// node ideal.mjs GATEWAY [CHAIN]
//
// The service manages the nonce account of the key: it creates the account at the first call, and
// signs only the advance. GATEWAY is the URL of the first screen; CHAIN gives the payer money.

import {
  ComputeBudgetProgram,
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { ShredwayClient } from "shredway/client";

const [gateway = "", chainUrl = "http://127.0.0.1:8899"] = process.argv.slice(2);
const client = new ShredwayClient({ url: gateway });

const chain = new Connection(chainUrl, "confirmed");
const payer = Keypair.generate();
const airdrop = await chain.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
await chain.confirmTransaction({ signature: airdrop, ...(await chain.getLatestBlockhash()) });

// Creating the account may take longer than one call: "nonce_pending" says when to retry.
const nonce = await client.getNonce(undefined, { retries: 10 });
const [tipAccount] = await client.getTipAccounts();

const partiallySigned = (microLamports, tipLamports) => {
  const transaction = new Transaction();
  transaction.feePayer = payer.publicKey;
  transaction.recentBlockhash = nonce.nonce; // the nonce value is valid until it is used
  transaction.add(
    SystemProgram.nonceAdvance({
      noncePubkey: new PublicKey(nonce.nonceAccount),
      authorizedPubkey: new PublicKey(nonce.nonceAuthority),
    }),
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports }),
    SystemProgram.transfer({
      fromPubkey: payer.publicKey,
      toPubkey: new PublicKey(tipAccount),
      lamports: tipLamports,
    }),
  );
  transaction.partialSign(payer);
  return transaction.serialize({ requireAllSignatures: false });
};

const signatures = await client.sendIdeal([
  partiallySigned(1_000_000, 10_000),
  partiallySigned(100, 1_000_000),
]);
for (const { signature, state, reason } of await client.waitForEnd(signatures)) {
  console.log(signature, state, reason);
}
process.exit(0);
