import {
  Connection,
  Keypair,
  SystemProgram,
  sendAndConfirmTransaction,
  Transaction,
} from "@solana/web3.js";
import { it } from "vitest";
import { Cluster } from "./cluster.ts";

it("x", async () => {
  const cluster = await Cluster.open();
  const c = new Connection(cluster.url, "confirmed");
  const payer = Keypair.generate();
  const l = await c.getLatestBlockhash();
  const signature = await c.requestAirdrop(payer.publicKey, 1e10);
  await c.confirmTransaction({ signature, ...l });
  for (let i = 0; i < 15; i++) {
    const t = new Transaction().add(
      SystemProgram.transfer({
        fromPubkey: payer.publicKey,
        toPubkey: Keypair.generate().publicKey,
        lamports: 5e15,
      }),
    );
    const r = await sendAndConfirmTransaction(c, t, [payer], { skipPreflight: true }).catch(
      (e) => e,
    );
    console.log(
      i,
      Object.getPrototypeOf(r)?.constructor?.name,
      JSON.stringify(r?.message),
      String(r?.stack).slice(0, 300),
    );
  }
  cluster.close();
});
