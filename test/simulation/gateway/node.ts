// The simulated node: it answers the questions of the gateway from the chain, sometimes late, of another fork,
// or not at all.

import { base58 } from "@scure/base";
import type { Clock } from "../../../src/core/clock.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { BlockhashState } from "../../../src/core/transactions/lifetimes.ts";
import type { NonceAccountView, NonceNode } from "../../../src/gateway/nonces/types.ts";
import type { Outcomes, SignatureOutcome } from "../../../src/gateway/submission/types.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { firstSlot } from "../cluster.ts";
import {
  ancestorOf,
  type Block,
  type Chain,
  type ChainTransaction,
  confirmedDepth,
  finalizedDepth,
  isAncestor,
  lagBlocks,
  lifetimeBlocks,
} from "./chain.ts";
import { hexOf, type NonceState, nonceUseOf } from "./nonce-accounts.ts";

/** "varies": each answer is from another node behind the same address. */
export const nodeMoods = ["lags", "varies", "other fork", "gone", "stalls"] as const;
export type NodeMood = (typeof nodeMoods)[number] | "healthy";

const answerMs = 15;
const giveUpMs = 2_000;
const rentLamports = 1_447_680n;
const fundingLamports = 10_000_000_000n;
/** No transaction with it lands. */
const firstHash = "ff".repeat(32);
const systemProgram = base58.encode(new Uint8Array(32));

/** The node as one process sees it. */
export type ProcessNode = Outcomes &
  NonceNode & {
    /** The newest slot. */
    readonly slot: () => Promise<bigint>;
    readonly clusterNodes: () => Promise<readonly ListedNode[]>;
  };

/** A leader in the list of all nodes. */
export interface ListedNode {
  readonly identity: string;
  readonly tpuQuic: string | null;
}

interface NodeOptions {
  readonly chain: Chain;
  readonly nowMs: () => number;
  /** Base58. It can pay for everything. */
  readonly fundingAddress: string;
  readonly nodes: () => readonly ListedNode[];
}

function bytesOf(text: string): Uint8Array {
  return base58.decode(text);
}

/** The 80 bytes of an initialised account. */
function viewOf({ authority, value }: NonceState, slot: bigint): NonceAccountView {
  const data = Buffer.alloc(80);
  data.writeUInt32LE(1, 0);
  data.writeUInt32LE(1, 4);
  data.write(authority, 8, "hex");
  data.write(value, 40, "hex");
  data.writeBigUInt64LE(5_000n, 72);
  return { owner: systemProgram, lamports: rentLamports, data, slot };
}

function chainTransactionOf(wire: Uint8Array): ChainTransaction {
  const parsed = parseTransaction(Uint8Array.from(wire));
  return {
    signature: base58.encode(parsed.signatures[0] ?? new Uint8Array(64)),
    parsed,
    blockhash: hexOf(parsed.blockhash),
    fails: false,
    nonce: nonceUseOf(parsed),
  };
}

const caughtUpMs = 3_000;

export class SimulatedNode {
  readonly #options: NodeOptions;
  #mood: NodeMood = "healthy";
  #lastDownMs = Number.NEGATIVE_INFINITY;
  #lastTroubleMs = Number.NEGATIVE_INFINITY;
  #answers = 0;
  /** Transactions of the service for nonce accounts, by the account. */
  readonly #sent = new Map<string, ChainTransaction[]>();

  constructor(options: NodeOptions) {
    this.#options = options;
  }

  get mood(): NodeMood {
    return this.#mood;
  }

  set mood(mood: NodeMood) {
    if (!this.#isUp) this.#lastDownMs = this.#options.nowMs();
    if (this.#mood !== "healthy") this.#lastTroubleMs = this.#options.nowMs();
    this.#mood = mood;
  }

  /** Whether it did not answer at a time since `sinceMs`. */
  wasDown(sinceMs: number): boolean {
    return !this.#isUp || this.#lastDownMs >= sinceMs;
  }

  /** Whether its answers are those of a healthy node since `sinceMs`. */
  isHealthySince(sinceMs: number): boolean {
    return this.#mood === "healthy" && this.#lastTroubleMs < sinceMs;
  }

  ofProcess(clock: Clock): ProcessNode {
    const { chain, fundingAddress, nodes } = this.#options;
    const answer = async <T>(make: (state: NodeState) => T): Promise<T> => {
      const isUp = this.#isUp;
      const lag = this.#lag();
      await clock.sleep(this.#mood === "stalls" ? giveUpMs : answerMs);
      if (!isUp) throw new ShredwayError("rpc_failed", "simulated node: no answer");
      const made = make(this.#stateOf(lag));
      await clock.sleep(answerMs);
      return made;
    };
    const nonceOf = (address: string, { confirmed }: NodeState): NonceState | undefined =>
      chain.noncesAt(confirmed).get(hexOf(bytesOf(address)));
    const accountOf = (address: string, state: NodeState): NonceAccountView | null => {
      if (address === fundingAddress)
        return { owner: systemProgram, lamports: fundingLamports, data: new Uint8Array() };
      const nonce = nonceOf(address, state);
      return nonce ? viewOf(nonce, state.confirmed?.slot ?? this.#slotBefore) : null;
    };
    return {
      signatureStatuses: (signatures) =>
        answer((state) => signatures.map((signature) => this.#outcome(signature, state))),
      blockhashState: (blockhash) => answer((state) => this.#blockhashState(blockhash, state)),
      nonceValue: (account) =>
        answer((state) => {
          const nonce = nonceOf(account, state);
          return nonce ? base58.encode(Buffer.from(nonce.value, "hex")) : null;
        }),
      accounts: (addresses) =>
        answer((state) => addresses.map((address) => accountOf(address, state))),
      slot: () => answer(({ tip }) => tip?.slot ?? this.#slotBefore),
      clusterNodes: () => answer(nodes),
      minimumBalance: () => answer(() => rentLamports),
      latestBlockhash: () =>
        answer(({ confirmed }) => {
          const hash = confirmed?.hash ?? firstHash;
          return base58.encode(Buffer.from(hash, "hex"));
        }),
      sendTransaction: (wire) =>
        answer(() => {
          const transaction = chainTransactionOf(wire);
          this.#note(transaction);
          chain.arrive([transaction], false);
          return transaction.signature;
        }),
    };
  }

  /**
   * The accounts, in hex, for which the service gave up: so many transactions in a row can no longer land and did
   * not succeed. Before a block is confirmed, all of them are the same transaction.
   */
  accountsWithFailures(failures: number): string[] {
    return [...this.#sent].flatMap(([account, sent]) => {
      const last = sent.slice(-failures);
      const isEnough = last.length === failures || last[0]?.blockhash === firstHash;
      return isEnough && last.every((each) => this.#hasFailed(each)) ? [account] : [];
    });
  }

  #note(transaction: ChainTransaction): void {
    const account = transaction.nonce?.account;
    if (account === undefined) return;
    const sent = this.#sent.get(account) ?? [];
    if (sent.at(-1)?.signature !== transaction.signature) sent.push(transaction);
    this.#sent.set(account, sent);
  }

  #hasFailed(transaction: ChainTransaction): boolean {
    const { chain } = this.#options;
    const { signature, blockhash } = transaction;
    if (blockhash === firstHash) return true;
    const block = chain.find(signature, chain.confirmed);
    return block ? block.landed.get(signature) !== null : chain.isOver(transaction);
  }

  get #isUp(): boolean {
    return this.#mood !== "gone" && this.#mood !== "stalls";
  }

  /** The newest confirmed slot while no block of the run is confirmed. */
  get #slotBefore(): bigint {
    return (this.#options.chain.blocks[0]?.slot ?? firstSlot) - 1n;
  }

  /** In blocks. A node that lags catches up while the cluster produces none. */
  #lag(): number {
    if (this.#options.chain.sinceLastBlockMs > caughtUpMs) return 0;
    if (this.#mood === "lags") return lagBlocks;
    return this.#mood === "varies" ? this.#answers++ % (lagBlocks + 1) : 0;
  }

  #stateOf(lag: number): NodeState {
    const { blocks } = this.#options.chain;
    const main = blocks.at(-1 - lag) ?? null;
    // Only what the cluster has not confirmed can differ.
    const orphan = blocks.slice(-confirmedDepth).findLast((block) => !isAncestor(block, main));
    const isOther = this.#mood === "other fork" && orphan !== undefined;
    return { tip: isOther ? orphan : main, main, confirmed: ancestorOf(main, confirmedDepth) };
  }

  #outcome(signature: string, { tip, main }: NodeState): SignatureOutcome | null {
    const { chain } = this.#options;
    const block = chain.find(signature, main) ?? chain.find(signature, tip);
    if (!block) return null;
    const err = block.landed.get(signature);
    const depth = isAncestor(block, main) ? (main?.height ?? 0) - block.height : 0;
    if (depth >= finalizedDepth) return { slot: block.slot, err, commitment: "finalized" };
    if (depth >= confirmedDepth) return { slot: block.slot, err, commitment: "confirmed" };
    const seen = chain.find(signature, tip);
    return seen ? { slot: seen.slot, err, commitment: "processed" } : null;
  }

  /** At commitment "confirmed". */
  #blockhashState(blockhash: string, { confirmed }: NodeState): BlockhashState {
    const block = this.#options.chain.blockOf(hexOf(bytesOf(blockhash)));
    const isKnown = block && confirmed && isAncestor(block, confirmed);
    return {
      isValid: isKnown === true && confirmed.height - block.height <= lifetimeBlocks,
      slot: confirmed?.slot ?? this.#slotBefore,
    };
  }
}

interface NodeState {
  /** The newest block that it has. */
  readonly tip: Block | null;
  /** The same on the chain that the cluster builds on. */
  readonly main: Block | null;
  readonly confirmed: Block | null;
}
