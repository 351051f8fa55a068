// The sandbox's own customer: sends a tipped transfer now and then and notes when it lands.
//
// Made by the sandbox. It goes the whole way of a transaction: over HTTP to the gateway, by its routes
// to a leader, into a block, as shreds through the relay, and back as a landing. Then it asks the
// gateway what became of it. Bounded: the last few are kept.

import type { Clock } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { parsePubkey, pubkeyBytes } from "../core/primitives.ts";
import { isObject } from "../core/values.ts";
import type { RpcClient } from "../platform/solana/rpc-client.ts";
import { encodeBase58 } from "../relay/data-plane/base58.ts";
import type { LandingWatchList } from "../relay/landing-watch-list.ts";
import { buildTransaction, transferInstruction } from "./chain/build.ts";
import type { KeyPair } from "./chain/keys.ts";

export interface ProbeRecord {
  /** Base58. */
  readonly signature: string;
  readonly sentNs: bigint;
  /** As the gateway tells it: "open", "landed", …; null: not asked yet. */
  state: string | null;
  /** Where and when the relay's own shreds showed it; null: not yet. */
  landed: {
    readonly slot: bigint;
    readonly batchIndex: number;
    readonly ordinal: number;
    readonly afterNs: bigint;
  } | null;
}

interface ProbeOptions {
  readonly landings: LandingWatchList;
  readonly wallet: KeyPair;
  readonly tipAddresses: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

const recordsMax = 64;
const firstLamports = 10_000n;
/** A landing comes within a slot or two, or not at all. */
const patienceMs = 30_000;

export class LandingProbe {
  readonly #options: ProbeOptions;
  readonly #records: ProbeRecord[] = [];
  readonly #waiting = new Set<{ end: () => void }>();
  #sent = 0;
  #node: RpcClient | undefined;

  constructor(options: ProbeOptions) {
    this.#options = options;
  }

  /** Newest first. */
  get records(): readonly ProbeRecord[] {
    return this.#records;
  }

  /** Waits for nothing any more. */
  close(): void {
    for (const waiting of this.#waiting) waiting.end();
  }

  /** `node` is the gateway, as any client sees it. Nothing is sent before. */
  start(node: RpcClient): void {
    this.#node = node;
  }

  /** Sends one and asks about the ones before. Never rejects: a failure is logged. */
  async send(): Promise<void> {
    try {
      if (!this.#node) return;
      await this.#ask(this.#node);
      await this.#send(this.#node);
    } catch (error) {
      this.#options.log.warn(`the sandbox's own transaction was not sent: ${messageOf(error)}`);
    }
  }

  async #ask(node: RpcClient): Promise<void> {
    const open = this.#records.filter(({ state }) => state === null || state === "open");
    if (open.length === 0) return;
    const signatures = open.map(({ signature }) => signature);
    const statuses = await node.call("getTransactionStatus", [signatures]);
    if (!Array.isArray(statuses)) return;
    for (const [i, record] of open.entries()) {
      const status: unknown = statuses[i];
      if (isObject(status) && typeof status["state"] === "string") record.state = status["state"];
    }
  }

  async #send(node: RpcClient): Promise<void> {
    const { wallet, tipAddresses, clock } = this.#options;
    const blockhash = await node.latestBlockhash();
    const tipAddress = tipAddresses[this.#sent % tipAddresses.length] ?? "";
    const tip = transferInstruction(
      wallet.publicKey,
      pubkeyBytes(parsePubkey(tipAddress)),
      firstLamports + BigInt(this.#sent++ % 1000),
    );
    const wire = buildTransaction([wallet], [tip], pubkeyBytes(parsePubkey(blockhash)));
    const signatureBytes = wire.subarray(1, 65);
    const sentNs = clock.nowNs();
    const record: ProbeRecord = {
      signature: encodeBase58(signatureBytes),
      sentNs,
      state: null,
      landed: null,
    };
    this.#wait(signatureBytes, record);
    await node.sendTransaction(wire);
    this.#records.unshift(record);
    this.#records.splice(recordsMax);
  }

  #wait(signature: Uint8Array, record: ProbeRecord): void {
    const unwatch = this.#options.landings.watch(signature, (landing) => {
      record.landed ??= {
        slot: landing.slot,
        batchIndex: landing.batchIndex,
        ordinal: landing.ordinal,
        afterNs: landing.seenNs - record.sentNs,
      };
    });
    const waiting = {
      end: () => {
        timer.cancel();
        unwatch();
        this.#waiting.delete(waiting);
      },
    };
    const timer = this.#options.clock.after(patienceMs, waiting.end);
    this.#waiting.add(waiting);
  }
}
