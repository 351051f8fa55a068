// A whole sandbox for the tests of one file, and a funded customer.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ComputeBudgetProgram,
  Keypair,
  LAMPORTS_PER_SOL,
  NonceAccount,
  PublicKey,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
} from "@solana/web3.js";
import { ShredwayClient, type ShredwayClientOptions } from "../../src/client/index.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createLogger } from "../../src/core/log.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { openSandbox } from "../../src/sandbox/open-sandbox.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { until } from "../support/network/udp-receiver.ts";

export class ClientHarness {
  readonly sandbox: Sandbox;
  readonly payer = Keypair.generate();
  /** Data folder of the sandbox. */
  readonly folder: string;
  #made = 0;

  private constructor(sandbox: Sandbox, folder: string) {
    this.sandbox = sandbox;
    this.folder = folder;
  }

  static async open(): Promise<ClientHarness> {
    const folder = mkdtempSync(join(tmpdir(), "shredway-client-"));
    const sandbox = await openSandbox({
      udp: "127.0.0.1:0",
      rpc: "127.0.0.1:0",
      http: "127.0.0.1:0",
      data: folder,
      log: createLogger({ level: "silent" }),
      clock: systemClock,
    });
    await sandbox.start();
    const harness = new ClientHarness(sandbox, folder);
    const address = harness.payer.publicKey.toBase58();
    const node = new RpcClient(`http://${sandbox.endpoint.address}`);
    await node.call("requestAirdrop", [address, 5 * LAMPORTS_PER_SOL]);
    await until(() => sandbox.chain.account(address, "confirmed") !== null, "the airdrop");
    return harness;
  }

  get url(): string {
    return this.sandbox.gatewayUrl;
  }

  client(options: Partial<ShredwayClientOptions> = {}): ShredwayClient {
    return new ShredwayClient({ url: this.url, timeoutMs: 60_000, ...options });
  }

  /** A different transaction each time. */
  tip(lamports: number, to: string, ...more: TransactionInstruction[]): Uint8Array {
    const { blockhash, lastValidBlockHeight } = this.#latest();
    const feePayer = this.payer.publicKey;
    const transaction = new Transaction({ feePayer, blockhash, lastValidBlockHeight });
    const tip = {
      fromPubkey: feePayer,
      toPubkey: new PublicKey(to),
      lamports: lamports + this.#made++,
    };
    transaction.add(...more, SystemProgram.transfer(tip));
    transaction.sign(this.payer);
    return transaction.serialize();
  }

  /** One transaction of a pair, without the authority's signature. */
  ofNonce(
    nonce: {
      readonly nonce: string;
      readonly nonceAccount: string;
      readonly nonceAuthority: string;
    },
    microLamports: number,
    to: string,
  ): Uint8Array {
    const transaction = new Transaction();
    transaction.feePayer = this.payer.publicKey;
    transaction.recentBlockhash = nonce.nonce;
    transaction.add(
      SystemProgram.nonceAdvance({
        noncePubkey: new PublicKey(nonce.nonceAccount),
        authorizedPubkey: new PublicKey(nonce.nonceAuthority),
      }),
      ComputeBudgetProgram.setComputeUnitPrice({ microLamports }),
      SystemProgram.transfer({
        fromPubkey: this.payer.publicKey,
        toPubkey: new PublicKey(to),
        lamports: 20_000,
      }),
    );
    transaction.partialSign(this.payer);
    return transaction.serialize({ requireAllSignatures: false });
  }

  /** The status on the chain. */
  nonceValue(account: string): string {
    const data = this.sandbox.chain.account(account, "confirmed")?.data ?? [];
    return NonceAccount.fromAccountData(Buffer.from(data)).nonce;
  }

  async close(): Promise<void> {
    await this.sandbox.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #latest(): { blockhash: string; lastValidBlockHeight: number } {
    const { blockhash, lastValidBlockHeight } = this.sandbox.chain.latestBlockhash("confirmed");
    return { blockhash, lastValidBlockHeight: Number(lastValidBlockHeight) };
  }
}
