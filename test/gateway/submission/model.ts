// A simulated environment of the pipeline in which everything can fail and whose true state is
// known.
//
// It has a chain with skipped slots and forks, nodes that lag and fail, routes that drop, refuse,
// delay and go down, and a store that is slow, fails and survives the process. All randomness is
// seeded.

import { pubkeyOf } from "../../../src/core/primitives.ts";
import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import type {
  LandingObservations,
  LeaderContext,
  Outcomes,
  SignatureOutcome,
} from "../../../src/gateway/submission/types.ts";
import type { ManualClock } from "../../support/clocks/manual-clock.ts";

export const slotMs = 400;
export const blockhashBlocks = 50;
const confirmedDepth = 2;
const arrivalMs = 1_200;

interface Block {
  readonly slot: bigint;
  readonly hash: string;
  readonly landed: ReadonlyMap<string, { readonly err: unknown }>;
  /** Nonce values by account after this block. */
  readonly nonces: ReadonlyMap<string, string>;
}

interface Arrival {
  readonly outbound: readonly TransactionFacts[];
  readonly isAtomic: boolean;
  readonly untilMs: number;
}

interface Watcher {
  observed(slot: bigint): void;
  withdrawn(slot: bigint): void;
}

export function textOf(bytes: Uint8Array): string {
  return pubkeyOf(bytes);
}

export class ModelChain implements LandingObservations {
  readonly #clock: ManualClock;
  readonly #random: SeededRandom;
  /** Signatures of transactions whose execution fails. */
  readonly failing = new Set<string>();
  readonly blocks: Block[] = [];
  readonly leaders = ["A", "B", "C", "denied", "E", "F"];
  isLossy = true;
  #arrivals: Arrival[] = [];
  #slot = 0n;
  /** Blocks that no fork can abandon. */
  #confirmed = 0;
  readonly #watchers = new Map<string, Set<Watcher>>();
  watched = 0;

  constructor(clock: ManualClock, random: SeededRandom) {
    this.#clock = clock;
    this.#random = random;
    this.#append(new Map(), new Map());
    clock.every(slotMs, () => this.#pass());
  }

  get leaderContext(): LeaderContext {
    const window = Number(this.#slot / 4n);
    const at = (n: number) => this.leaders[n % this.leaders.length] ?? null;
    // Sometimes the schedule is unknown.
    if (window % 11 === 7) return { slot: this.#slot, current: null, next: null };
    return { slot: this.#slot, current: at(window), next: at(window + 1) };
  }

  get latestBlockhash(): Uint8Array {
    // Some callers are slow, so little of the lifetime remains.
    const oldest = this.#random.happens(0.3) ? blockhashBlocks : 3;
    const tip = this.blocks.at(-1 - this.#random.below(Math.min(oldest, this.blocks.length)));
    return Buffer.from(tip?.hash ?? "", "hex");
  }

  nonceOf(account: string): string | undefined {
    return this.blocks.at(-1)?.nonces.get(account);
  }

  setNonce(account: string, value: string): void {
    for (const block of this.blocks) {
      if (block.nonces instanceof Map) block.nonces.set(account, value);
    }
  }

  arrive(outbound: readonly TransactionFacts[], isAtomic: boolean): void {
    this.#arrivals.push({ outbound: outbound, isAtomic, untilMs: this.#nowMs + arrivalMs });
  }

  outcomeOf(signature: string, blocks: readonly Block[] = this.blocks) {
    for (const [height, { slot, landed }] of blocks.entries()) {
      const found = landed.get(signature);
      if (found) return { slot, err: found.err, height };
    }
    return null;
  }

  watch(...[signature, observed, withdrawn]: Parameters<LandingObservations["watch"]>): () => void {
    const name = Buffer.from(signature).toString("hex");
    const own: Watcher = {
      observed: (slot) => observed({ slot, seenNs: this.#clock.nowNs(), mayRestart: true }),
      withdrawn: (slot) => withdrawn?.({ slot, seenNs: this.#clock.nowNs() }),
    };
    const listeners = this.#watchers.get(name) ?? new Set();
    this.#watchers.set(name, listeners.add(own));
    this.watched++;
    return () => {
      if (listeners.delete(own)) this.watched--;
    };
  }

  /** A node that lags by so many blocks. */
  node(blocksBehindMax: number, failShare: () => number): Outcomes {
    const answer = async <T>(make: (blocks: readonly Block[]) => T): Promise<T> => {
      await this.#clock.sleep(5 + this.#random.below(300));
      if (this.#random.happens(failShare())) throw new Error("the node failed");
      const behind = this.#random.below(blocksBehindMax + 1);
      const created = make(this.blocks.slice(0, Math.max(1, this.blocks.length - behind)));
      await this.#clock.sleep(5 + this.#random.below(100));
      return created;
    };
    const confirmed = (blocks: readonly Block[]) =>
      blocks.slice(0, Math.max(1, blocks.length - confirmedDepth));
    return {
      signatureStatuses: (signatures) =>
        answer((blocks) =>
          signatures.map((signature): SignatureOutcome | null => {
            const found = this.outcomeOf(signature, blocks);
            if (!found) return null;
            const isConfirmed = found.height < blocks.length - confirmedDepth;
            const commitment = isConfirmed ? "confirmed" : "processed";
            return { slot: found.slot, err: found.err, commitment };
          }),
        ),
      blockhashState: (blockhash) =>
        answer((blocks) => ({
          isValid: this.#isRecent(blockhash, confirmed(blocks)),
          slot: confirmed(blocks).at(-1)?.slot ?? 0n,
        })),
      nonceValue: (account) =>
        answer((blocks) => confirmed(blocks).at(-1)?.nonces.get(account) ?? null),
    };
  }

  get #nowMs(): number {
    return Number(this.#clock.monotonicNs() / 1_000_000n);
  }

  #isRecent(blockhash: string, blocks: readonly Block[]): boolean {
    return blocks
      .slice(-blockhashBlocks)
      .some(({ hash }) => textOf(Buffer.from(hash, "hex")) === blockhash);
  }

  #pass(): void {
    this.#slot++;
    if (this.#random.happens(0.1)) return;
    const isForked = this.#random.happens(this.isLossy ? 0.08 : 0);
    this.#confirmed = Math.max(this.#confirmed, this.blocks.length - confirmedDepth);
    if (isForked) {
      const shortest = Math.max(1, this.#confirmed);
      const length = this.blocks.length - 1 - this.#random.below(confirmedDepth);
      this.blocks.length = Math.max(shortest, length);
    }
    const landed = new Map<string, { err: unknown }>();
    const nonces = new Map(this.blocks.at(-1)?.nonces);
    const now = this.#nowMs;
    this.#arrivals = this.#arrivals.filter(({ untilMs }) => untilMs >= now);
    for (const arrival of this.#arrivals) {
      if (!this.#random.happens(0.5)) continue;
      const { outbound, isAtomic } = arrival;
      const advanced = new Map(nonces);
      const done = outbound.filter((facts) => this.#isExecuted(facts, landed, advanced));
      const isComplete = done.length === outbound.length;
      const hasFailed = done.some(({ signature }) => this.failing.has(signature));
      if (!isComplete || (isAtomic && hasFailed)) continue;
      for (const [account, value] of advanced) nonces.set(account, value);
      for (const { signature } of done) {
        const err = this.failing.has(signature) ? { InstructionError: [0, "Custom"] } : null;
        landed.set(signature, { err });
      }
    }
    this.#append(landed, nonces);
    this.#report(landed);
    this.#reportAbandoned(landed);
  }

  #isExecuted(
    facts: TransactionFacts,
    landed: ReadonlyMap<string, unknown>,
    nonces: Map<string, string>,
  ): boolean {
    if (landed.has(facts.signature) || this.outcomeOf(facts.signature)) return false;
    const value = textOf(facts.lifetime);
    if (!facts.nonce) return this.#isRecent(value, this.blocks);
    const account = textOf(facts.nonce.account);
    if (nonces.get(account) !== value) return false;
    nonces.set(account, textOf(this.#random.fillBytes(new Uint8Array(32))));
    return true;
  }

  #append(landed: Block["landed"], nonces: Block["nonces"]): void {
    const hash = Buffer.from(this.#random.fillBytes(new Uint8Array(32))).toString("hex");
    this.blocks.push({ slot: this.#slot, hash, landed, nonces });
  }

  #report(landed: ReadonlyMap<string, unknown>): void {
    const slot = this.#slot;
    for (const signature of landed.keys()) {
      if (this.#random.happens(0.2)) continue;
      const name = nameBySignature.get(signature) ?? "";
      this.#clock.after(20 + this.#random.below(300), () => {
        for (const watcher of this.#watchers.get(name) ?? []) watcher.observed(slot);
      });
    }
  }

  /** The leader began the block again; it does not contain some of its first transactions any more. */
  #reportAbandoned(landed: ReadonlyMap<string, unknown>): void {
    const slot = this.#slot;
    const first = this.#arrivals.flatMap(({ outbound }) => outbound.map((one) => one.signature));
    for (const signature of new Set(first)) {
      if (landed.has(signature) || !this.#random.happens(this.isLossy ? 0.05 : 0)) continue;
      const name = nameBySignature.get(signature) ?? "";
      const observedMs = this.#random.below(300);
      const withdrawnMs = observedMs + 1 + this.#random.below(300);
      this.#clock.after(observedMs, () => {
        for (const watcher of this.#watchers.get(name) ?? []) watcher.observed(slot);
      });
      this.#clock.after(withdrawnMs, () => {
        for (const watcher of this.#watchers.get(name) ?? []) watcher.withdrawn(slot);
      });
    }
  }
}

/** Hex by base58 of all signatures created here. */
const nameBySignature = new Map<string, string>();
const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

export interface TransactionDescription {
  readonly lifetime: Uint8Array;
  readonly nonceAccount?: Uint8Array;
  readonly tipLamports?: bigint;
}

/** Facts of an unsigned transaction; `wire` contains its number. */
export function makeFacts(random: SeededRandom, choices: TransactionDescription): TransactionFacts {
  const signatureBytes = random.fillBytes(new Uint8Array(64));
  const signature = Array.from(signatureBytes, (byte) => digits[byte % 58]).join("");
  nameBySignature.set(signature, Buffer.from(signatureBytes).toString("hex"));
  const authority = new Uint8Array(32);
  const { nonceAccount } = choices;
  return {
    wire: random.fillBytes(new Uint8Array(200)),
    version: 0,
    signatureBytes,
    signature,
    feePayer: random.fillBytes(new Uint8Array(32)),
    lifetime: choices.lifetime,
    nonce: nonceAccount ? { account: nonceAccount, authority } : null,
    tipLamports: choices.tipLamports ?? 20_000n,
    computeUnitLimit: 200_000,
    computeUnitPrice: 0n,
    priorityFeeLamports: 1_000n,
    hasFrontKey: false,
  };
}
