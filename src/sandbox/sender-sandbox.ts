// Sender sandbox: a small chain, and three senders that differ by a known delay and a known share of drops.
//
// Opened by `shredway land --sandbox` and by tests. The senders accept every transaction, as real ones do, and pass
// it to the chain later or never. The chain's shreds go over UDP to one receiver.

import type { Clock, Timer } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import { SeededRandom } from "../core/seeded-random.ts";
import { nonceAccountBytes } from "../gateway/nonces/nonce-account.ts";
import { createNonce } from "../gateway/nonces/nonce-transactions.ts";
import { encodeBase58 } from "../relay/data-plane/base58.ts";
import { PacedSender } from "../relay/data-plane/paced-sender.ts";
import { SandboxChain } from "./chain/chain.ts";
import { SandboxKeyPair } from "./chain/keys.ts";
import { parseTransaction } from "./chain/wire.ts";
import { Delivery } from "./delivery.ts";
import { type PartnerHandler, PartnerServer } from "./partners/partner-endpoint.ts";
import { readTransaction } from "./partners/swqos.ts";
import { tickMs } from "./plan.ts";
import { RpcEndpoint } from "./rpc/endpoint.ts";
import { paced } from "./sandbox.ts";
import { SourceFeed } from "./source-feed.ts";

export interface SandboxSender {
  readonly name: string;
  /** Dialect of `shredway land`. */
  readonly dialect: "rpc" | "jito" | "astralane";
  /** Time until the transaction reaches the leader's queue. */
  readonly delayMs: number;
  /** Share of transactions that never reach it. */
  readonly drop: number;
  readonly responseMs: number;
}

export const sandboxSenders: readonly SandboxSender[] = [
  { name: "near", dialect: "rpc", delayMs: 20, drop: 0.02, responseMs: 2 },
  { name: "far", dialect: "jito", delayMs: 170, drop: 0.02, responseMs: 25 },
  { name: "lossy", dialect: "astralane", delayMs: 20, drop: 0.4, responseMs: 8 },
];

const slotMs = 200;
const seed = 1;
const tipAccountLamports = 1_000_000_000n;
const payerLamports = 1_000_000_000_000n;
const catchUpSlotsMax = 4;
/** Delay of the shreds like that of a good source. */
const feedProfile = { delayNs: 300_000, jitterNs: 200_000, loss: 0, forged: 0 };

interface SenderSandboxOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly senders?: readonly SandboxSender[];
  /** Seed of the drops. */
  readonly seed?: number;
}

interface Opened {
  readonly chain: SandboxChain;
  readonly endpoint: RpcEndpoint;
  readonly servers: readonly PartnerServer[];
}

function senderHandler(
  chain: SandboxChain,
  sender: SandboxSender,
  { clock, random, tipAddress }: { clock: Clock; random: SeededRandom; tipAddress: string },
): PartnerHandler {
  const paths = { rpc: "/", jito: "/api/v1/transactions", astralane: "/iris" };
  return (request, server) => {
    const isTips = sender.dialect === "jito" && request.path === "/api/v1/getTipAccounts";
    if (request.method !== "POST" || (request.path !== paths[sender.dialect] && !isTips)) {
      return { status: 404, headers: {}, body: "not found" };
    }
    return server.answerJsonRpc(request, async (method, params) => {
      if (isTips) return [tipAddress];
      const wire = readTransaction(method, params);
      const [signature = new Uint8Array(64)] = parseTransaction(wire).signatures;
      server.counts.transactions++;
      if (!random.happens(sender.drop)) {
        clock.after(sender.delayMs, () => {
          try {
            chain.send(wire);
          } catch {
            // As on a network, the caller does not learn about it.
          }
        });
      }
      await clock.sleep(sender.responseMs);
      return encodeBase58(signature);
    });
  };
}

export class SenderSandbox {
  readonly chain: SandboxChain;
  readonly payer = SandboxKeyPair.named(seed, "customer");
  readonly tipAddress = SandboxKeyPair.named(seed, "tip account 0").address;
  /** The senders with their URLs. */
  readonly senders: readonly (SandboxSender & { readonly url: string })[];
  readonly #endpoint: RpcEndpoint;
  readonly #servers: readonly PartnerServer[];
  readonly #clock: Clock;
  readonly #feeds: SourceFeed[];
  #timer: Timer | undefined;

  /** Throws ShredwayError "sandbox_missing" without the virtual machine, or "http_open". */
  static async open(options: SenderSandboxOptions): Promise<SenderSandbox> {
    const { clock, log, senders = sandboxSenders } = options;
    const payer = SandboxKeyPair.named(seed, "customer");
    const tipAddress = SandboxKeyPair.named(seed, "tip account 0").address;
    const feeds: SourceFeed[] = [];
    const chain = await SandboxChain.open({
      seed,
      slotMs,
      catchUpSlotsMax,
      genesisSeconds: clock.nowNs() / 1_000_000_000n,
      background: { tipAddresses: [tipAddress] },
      funded: new Map([
        [payer.address, payerLamports],
        [tipAddress, tipAccountLamports],
      ]),
      onShreds: ({ packets }) => {
        const nowNs = clock.monotonicNs();
        for (const feed of feeds) feed.add(paced(packets), nowNs);
      },
    });
    const node = { listen: "127.0.0.1:0", shredVersion: 50_093, log };
    const endpoint = await RpcEndpoint.open(chain, clock, node);
    const servers: PartnerServer[] = [];
    try {
      for (const [i, sender] of senders.entries()) {
        const random = new SeededRandom((options.seed ?? seed) * 100 + i);
        const handler = senderHandler(chain, sender, { clock, random, tipAddress });
        servers.push(await PartnerServer.open("127.0.0.1", handler, { clock, log }));
      }
    } catch (error) {
      for (const server of servers) server.close();
      endpoint.close();
      throw error;
    }
    return new SenderSandbox({ chain, endpoint, servers }, senders, { clock, feeds });
  }

  private constructor(
    { chain, endpoint, servers }: Opened,
    senders: readonly SandboxSender[],
    { clock, feeds }: { clock: Clock; feeds: SourceFeed[] },
  ) {
    this.chain = chain;
    this.#endpoint = endpoint;
    this.#servers = servers;
    this.#clock = clock;
    this.#feeds = feeds;
    this.senders = senders.map((sender, i) => ({ ...sender, url: servers[i]?.url ?? "" }));
  }

  /** URL of the chain's node. */
  get nodeUrl(): string {
    return `http://${this.#endpoint.address}`;
  }

  /** Transactions that the senders accepted. */
  get submissions(): number {
    return this.#servers.reduce((sum, { counts }) => sum + counts.transactions, 0);
  }

  /** Begins the first slot. */
  start(): void {
    this.#timer = this.#clock.every(tickMs, () => this.#tick());
    this.#tick();
  }

  /** Sends all later shreds to "ip:port". Throws ShredwayError "sender_open". */
  sendShredsTo(address: string): void {
    const player = PacedSender.open({ to: address, from: "127.0.0.1:0" });
    const delivery = new Delivery(feedProfile, seed);
    this.#feeds.push(new SourceFeed({ delivery, player, clock: this.#clock }));
  }

  /** Creates a nonce account of the payer, and returns its address when it is confirmed. */
  async createNonceAccount(): Promise<string> {
    const account = SandboxKeyPair.named(seed, "nonce account");
    const { wire } = createNonce({
      payer: this.payer,
      account,
      authority: this.payer.publicKey,
      lamports: this.chain.minimumBalanceForRentExemption(nonceAccountBytes),
      blockhash: this.chain.latestBlockhash("processed").blockhash,
    });
    this.chain.send(wire);
    while (this.chain.account(account.address, "confirmed") === null) {
      await this.#clock.sleep(slotMs / 4);
    }
    return account.address;
  }

  /** Idempotent. */
  close(): void {
    this.#timer?.cancel();
    for (const feed of this.#feeds.splice(0)) feed.close();
    for (const server of this.#servers) server.close();
    this.#endpoint.close();
  }

  #tick(): void {
    this.chain.advanceTo(this.#clock.monotonicNs());
    for (const feed of this.#feeds) feed.tick(BigInt(2 * tickMs) * 1_000_000n);
  }
}
