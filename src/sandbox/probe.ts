// The sandbox's own customer: sends a tipped transfer now and then and notes when it lands.
//
// Made by the sandbox. It goes the whole way of a transaction: over HTTP to the chain's endpoint, into
// a block, as shreds through the relay, and back as a landing. Bounded: the last few are kept.

import type { Clock } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { parsePubkey, pubkeyBytes } from "../core/primitives.ts";
import type { LandingWatch } from "../service/landing-watch.ts";
import type { RpcClient } from "../solana/rpc-client.ts";
import { encodeBase58 } from "./chain/base58.ts";
import { buildTransaction, transferInstruction } from "./chain/build.ts";
import type { KeyPair } from "./chain/keys.ts";

export interface ProbeRecord {
  /** Base58. */
  readonly signature: string;
  readonly sentNs: bigint;
  /** Where and when the relay's own shreds showed it; null: not yet. */
  landed: {
    readonly slot: bigint;
    readonly batchIndex: number;
    readonly ordinal: number;
    readonly afterNs: bigint;
  } | null;
}

export interface ProbeParts {
  readonly node: RpcClient;
  readonly landings: LandingWatch;
  readonly wallet: KeyPair;
  readonly tipAddress: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const recordsMax = 64;
const firstLamports = 10_000n;
/** A landing comes within a slot or two, or not at all. */
const patienceMs = 30_000;

export class LandingProbe {
  readonly #parts: ProbeParts;
  readonly #records: ProbeRecord[] = [];
  readonly #waiting = new Set<{ end: () => void }>();
  #sent = 0n;

  constructor(parts: ProbeParts) {
    this.#parts = parts;
  }

  /** Newest first. */
  get records(): readonly ProbeRecord[] {
    return this.#records;
  }

  /** Waits for nothing any more. */
  close(): void {
    for (const waiting of this.#waiting) waiting.end();
  }

  /** Sends one. Never rejects: a failure is logged. */
  async send(): Promise<void> {
    try {
      await this.#send();
    } catch (error) {
      this.#parts.log.warn(`the sandbox's own transaction was not sent: ${messageOf(error)}`);
    }
  }

  async #send(): Promise<void> {
    const { node, wallet, tipAddress, clock } = this.#parts;
    const blockhash = await node.latestBlockhash();
    const tip = transferInstruction(
      wallet.publicKey,
      pubkeyBytes(parsePubkey(tipAddress)),
      firstLamports + (this.#sent++ % 1000n),
    );
    const wire = buildTransaction([wallet], [tip], pubkeyBytes(parsePubkey(blockhash)));
    const signatureBytes = wire.subarray(1, 65);
    const sentNs = clock.nowNs();
    const record: ProbeRecord = { signature: encodeBase58(signatureBytes), sentNs, landed: null };
    this.#wait(signatureBytes, record);
    await node.sendTransaction(wire);
    this.#records.unshift(record);
    this.#records.splice(recordsMax);
  }
  #wait(signature: Uint8Array, record: ProbeRecord): void {
    const unwatch = this.#parts.landings.watch(signature, (landing) => {
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
    const timer = this.#parts.clock.after(patienceMs, waiting.end);
    this.#waiting.add(waiting);
  }
}
