// SandboxProbe: sends a tipped transfer at an interval and records its landing.
//
// Created by the sandbox. It uses the full path of a transaction: over HTTP to the gateway, by its
// routes to a leader, into a block, as shreds through the relay, and back as a landing. Then it
// queries the gateway for the status. Bounded: it keeps the last few transfers.

import type { Clock } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { parsePubkey, pubkeyBytes } from "../core/primitives.ts";
import { buildTransaction, transferInstruction } from "../core/transactions/build-legacy.ts";
import { isObject } from "../core/values.ts";
import type { RpcClient } from "../platform/solana/rpc-client.ts";
import { encodeBase58 } from "../relay/data-plane/base58.ts";
import type { LandingWatchList } from "../relay/landing-watch-list.ts";
import type { SandboxKeyPair } from "./chain/keys.ts";

export interface ProbeRecord {
  /** Signature in base58. */
  readonly signature: string;
  readonly sentNs: bigint;
  /** Status from the gateway: "open", "landed", …; null: not queried yet. */
  state: string | null;
  /** Slot and time of the landing in the relay's own shreds; null: not yet. */
  landed: {
    readonly slot: bigint;
    readonly batchIndex: number;
    readonly ordinal: number;
    readonly afterNs: bigint;
  } | null;
}

interface ProbeOptions {
  readonly landings: LandingWatchList;
  readonly wallet: SandboxKeyPair;
  readonly tipAddresses: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

const recordsMax = 64;
const firstLamports = 10_000n;
/** A landing takes a slot or two, or never happens. */
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

  /** Stops all pending work. */
  close(): void {
    for (const waiting of this.#waiting) waiting.end();
  }

  /** `node` is the gateway, used like any client does. Nothing is sent before. */
  start(node: RpcClient): void {
    this.#node = node;
  }

  /**
   * Sends one transfer and queries the status of the earlier ones. Never rejects: a failure is
   * logged.
   */
  async send(): Promise<void> {
    try {
      if (!this.#node) return;
      await this.#ask(this.#node);
      await this.#send(this.#node);
    } catch (error) {
      this.#options.log.warn(`sandbox: the probe transaction was not sent: ${messageOf(error)}`);
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
