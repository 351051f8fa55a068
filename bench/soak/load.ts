// Mixed load of one customer: submissions of every kind, registrations, reads, portal sessions, and the
// end of everything that was acknowledged.

import { ShredwayCallError, ShredwayClient } from "../../src/client/index.ts";
import { systemClock } from "../../src/core/clock.ts";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { encodeBase58 } from "../../src/relay/data-plane/base58.ts";
import { CallCounts } from "./call-counts.ts";
import type { ClusterReady } from "./cluster-messages.ts";
import { Ledger } from "./ledger.ts";
import { Transactions } from "./transactions.ts";

interface LoadOptions {
  readonly url: string;
  readonly apiKey: string;
  readonly cluster: ClusterReady;
  /** Transactions per second. */
  readonly rate: number;
  readonly seed: number;
}

interface RawAnswer {
  readonly error?: { readonly message: string; readonly data?: { readonly reason?: string } };
}

function answerOf(text: string): RawAnswer {
  return JSON.parse(text);
}

const underWayMax = 200;
const tierLamports = 600_000_000;
const walletLamports = 1_000_000_000_000;
const refreshMs = 1000;
const registrationsPerPage = 100;
const callMs = 30_000;

export class Load {
  readonly counts = new CallCounts();
  readonly submissions = new Ledger();
  readonly registrations = new Ledger();
  readonly client: ShredwayClient;
  readonly #options: LoadOptions;
  readonly #random: SeededRandom;
  readonly #transactions: Transactions;
  readonly #node: RpcClient;
  readonly #gateway: RpcClient;
  #pair: readonly string[] = [];
  /** Submits the newest pair; again, if it was submitted before. */
  #submitPair: () => Promise<readonly string[]> = () => Promise.resolve([]);
  #isSendingPair = false;
  #tips = 0;

  constructor(options: LoadOptions) {
    const { url, apiKey, cluster, seed } = options;
    this.#options = options;
    this.#random = new SeededRandom(seed);
    this.client = new ShredwayClient({ url: `${url}/relay`, apiKey, timeoutMs: callMs });
    this.#transactions = new Transactions(cluster.tipAddresses);
    this.#node = new RpcClient(cluster.rpcUrl, callMs);
    this.#gateway = new RpcClient(`${url}/relay?api-key=${apiKey}`, callMs);
  }

  /** Pays the wallet, and buys a tier for the account's destination. */
  async prepare(): Promise<void> {
    this.#transactions.blockhash = await this.#node.latestBlockhash();
    const wallet = this.#transactions.wallet.publicKey.toBase58();
    await this.#node.sendTransaction(this.#transactions.transfer(wallet, walletLamports));
    await this.#register(tierLamports);
    if (this.registrations.acknowledged === 0) throw new Error("the first registration failed");
  }

  /** Runs until the signal aborts. Calls under way go on. */
  async run(stopped: AbortSignal): Promise<void> {
    const { rate } = this.#options;
    let refreshedMs = 0;
    let next = performance.now();
    while (!stopped.aborted) {
      if (performance.now() - refreshedMs > refreshMs) {
        refreshedMs = performance.now();
        void this.#refresh();
        void this.settle();
      }
      if (this.counts.underWay < underWayMax) {
        next += (this.#submit() * 1000) / rate;
        if (this.#random.happens(0.1)) void this.#read();
        if (this.#random.happens(0.04)) void this.#register(5000 + (this.#tips++ % 10_000));
        if (this.#random.happens(0.01)) void this.#visitPortal();
      } else next += 100;
      next = Math.max(next, performance.now() - 1000);
      await systemClock.sleep(Math.max(0, next - performance.now()), stopped);
    }
  }

  /** Looks up the ends of what was acknowledged. */
  async settle(): Promise<void> {
    const due = this.submissions.due();
    if (due.length > 0) {
      const statuses = await this.counts.run("getTransactionStatus", () =>
        this.client.getTransactionStatus(due),
      );
      for (const [i, signature] of due.entries()) {
        const status = statuses?.[i];
        if (status !== undefined) this.submissions.note(signature, status);
      }
    }
    if (this.registrations.due().length > 0) await this.#settleRegistrations();
  }

  /** Every page; a registration that none of them holds is unknown. */
  async #settleRegistrations(): Promise<void> {
    const wanted = new Set(this.registrations.openSignatures());
    let beforeMs: number | undefined;
    while (wanted.size > 0) {
      const page = { limit: registrationsPerPage, ...(beforeMs !== undefined && { beforeMs }) };
      const found = await this.counts.run("getRegistrations", () =>
        this.client.getRegistrations(page),
      );
      if (found === undefined) return;
      for (const each of found) {
        this.registrations.note(each.signature, each);
        wanted.delete(each.signature);
      }
      beforeMs = found.at(-1)?.registeredMs;
      if (found.length < registrationsPerPage) break;
    }
    for (const signature of wanted) this.registrations.note(signature, null);
  }

  async #refresh(): Promise<void> {
    const hash = await this.counts.run("getLatestBlockhash", () => this.#gateway.latestBlockhash());
    if (hash !== undefined) this.#transactions.blockhash = hash;
  }

  /** Starts one submission. Returns its number of transactions. */
  #submit(): number {
    const kind = this.#random.below(16);
    const { client } = this;
    const tip = () => this.#transactions.tip();
    if (kind === 0) {
      void this.#acknowledge("sendBundle", async () => {
        return (await client.sendBundle([tip(), tip()])).signatures;
      });
      return 2;
    }
    if (kind === 1) {
      void this.#acknowledge("sendBatch", () => client.sendBatch(Array.from({ length: 5 }, tip)));
      return 5;
    }
    if (kind === 2) {
      const options = { enableFallback: true, revertProtection: false };
      void this.#acknowledge("sendAlt", async () => {
        return [await client.sendAlt(this.#transactions.altTip(), options)];
      });
    } else if (kind === 3) void this.#acknowledge("raw bytes", () => this.#sendRaw(tip()));
    else if (kind === 4) void this.#sendPair();
    else if (kind === 5) {
      void this.counts.run("invalid call", () => client.sendTransaction(new Uint8Array(80)));
    } else {
      const mevProtect = this.#random.happens(0.1);
      void this.#acknowledge("sendTransaction", async () => {
        return [await client.sendTransaction(tip(), { mevProtect })];
      });
    }
    return 1;
  }

  async #acknowledge(kind: string, call: () => Promise<readonly string[]>): Promise<void> {
    const signatures = await this.counts.run(kind, call);
    if (signatures) this.submissions.add(signatures);
  }

  async #sendRaw(wire: Uint8Array): Promise<string[]> {
    const { url, apiKey } = this.#options;
    const response = await fetch(`${url}/relayb?method=sendTransaction`, {
      method: "POST",
      headers: { "api-key": apiKey },
      body: wire,
      signal: AbortSignal.timeout(callMs),
    });
    const { error } = answerOf(await response.text());
    if (error)
      throw new ShredwayCallError(error.message, { reason: error.data?.reason ?? "unknown" });
    return [encodeBase58(wire.subarray(1, 65))];
  }

  /** One pair at a time: they share a nonce. */
  async #sendPair(): Promise<void> {
    if (this.#isSendingPair) return;
    if (this.#pair.some((signature) => this.submissions.isOpen(signature))) return;
    this.#isSendingPair = true;
    const nonce = await this.counts.run("getNonce", () => this.client.getNonce());
    if (nonce) {
      const transactions = this.#transactions.pair(nonce);
      this.#submitPair = () => this.client.sendIdeal(transactions);
      await this.#acknowledge("sendIdeal", async () => {
        this.#pair = await this.#submitPair();
        return this.#pair;
      });
    }
    this.#isSendingPair = false;
  }

  /**
   * Submits an open pair again: its nonce never expires, so a pair whose resends are over stays open until
   * somebody sends it.
   */
  async repeatPair(): Promise<void> {
    if (!this.#pair.some((signature) => this.submissions.isOpen(signature))) return;
    await this.counts.run("sendIdeal", this.#submitPair);
  }

  /** A tip that lands through the node, and its registration. */
  async #register(lamports: number): Promise<void> {
    const address = this.#options.cluster.shredTipAddresses[0] ?? "";
    const wire = this.#transactions.transfer(address, lamports);
    const slot = await this.counts.run("node: send a tip", async () => {
      await this.#node.sendTransaction(wire);
      return this.#node.call("getSlot", []);
    });
    if (typeof slot !== "bigint" && typeof slot !== "number") return;
    const receipt = await this.counts.run("registerTips", () =>
      this.client.registerTips([{ transaction: wire, slot }]),
    );
    if (receipt) this.registrations.add(receipt.accepted);
  }

  async #read(): Promise<void> {
    const { client } = this;
    const reads: Record<string, () => Promise<unknown>> = {
      getTier: () => client.getTier(),
      getTipAccounts: () => client.getTipAccounts(),
      getDestinations: () => client.getDestinations(),
      getTierHistory: () => client.getTierHistory({ limit: 10 }),
      "/tip_floor": () => client.tipFloor(),
      "/api/next_alt_validator": () => client.nextAltValidator(),
      getHealth: () => client.getHealth(),
    };
    const names = Object.keys(reads);
    const name = names[this.#random.below(names.length)] ?? "getHealth";
    await this.counts.run(name, () => reads[name]?.() ?? Promise.resolve());
  }

  /** Sign-in, a call, sign-out. */
  async #visitPortal(): Promise<void> {
    const { url, apiKey } = this.#options;
    await this.counts.run("portal", async () => {
      const ask = async (method: string, path: string, body?: object, cookie = "") => {
        const response = await fetch(`${url}${path}`, {
          method,
          headers: { origin: url, "content-type": "application/json", cookie },
          ...(body && { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(callMs),
        });
        await response.text();
        if (!response.ok) throw new Error(`${path}: status ${response.status}`);
        return response.headers.get("set-cookie")?.split(";")[0] ?? "";
      };
      const cookie = await ask("POST", "/portal/api/session", { key: apiKey });
      await ask("GET", "/portal/", undefined, cookie);
      await ask("POST", "/portal/api/call", { method: "getTier", params: [] }, cookie);
      await ask("DELETE", "/portal/api/session", undefined, cookie);
    });
  }
}
