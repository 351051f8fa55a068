// The simulated Solana node: it answers for the chain, late, for another fork, or not at all.

import type { Clock } from "../../../src/core/clock.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { BlockhashState } from "../../../src/core/transactions/lifetimes.ts";
import type { Outcomes, SignatureOutcome } from "../../../src/gateway/submission/types.ts";
import { decodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import {
  ancestorOf,
  type Block,
  type Chain,
  confirmedDepth,
  finalizedDepth,
  isAncestor,
  lifetimeBlocks,
} from "./chain.ts";

/** "varies": each answer is from another node behind the same address. */
export const nodeMoods = ["lags", "varies", "other fork", "gone", "stalls"] as const;
export type NodeMood = (typeof nodeMoods)[number] | "healthy";

const answerMs = 15;
const giveUpMs = 2_000;
/** Blocks that a lagging node lacks. */
const lagBlocks = 3;

export class SimulatedNode {
  readonly #chain: Chain;
  #mood: NodeMood = "healthy";
  #answers = 0;

  constructor(chain: Chain) {
    this.#chain = chain;
  }

  get mood(): NodeMood {
    return this.#mood;
  }

  set mood(mood: NodeMood) {
    this.#mood = mood;
  }

  /** The node as one process sees it. */
  outcomesOf(clock: Clock): Outcomes {
    const answer = async <T>(make: (state: NodeState) => T): Promise<T> => {
      const isUp = this.#mood !== "gone" && this.#mood !== "stalls";
      const lag = this.#lag();
      await clock.sleep(this.#mood === "stalls" ? giveUpMs : answerMs);
      if (!isUp) throw new ShredwayError("rpc_failed", "simulated node: no answer");
      const made = make(this.#stateOf(lag));
      await clock.sleep(answerMs);
      return made;
    };
    return {
      signatureStatuses: (signatures) =>
        answer((state) => signatures.map((signature) => this.#outcome(signature, state))),
      blockhashState: (blockhash) => answer((state) => this.#blockhashState(blockhash, state)),
      nonceValue: () => answer(() => null),
    };
  }

  #lag(): number {
    if (this.#mood === "lags") return lagBlocks;
    return this.#mood === "varies" ? this.#answers++ % (lagBlocks + 1) : 0;
  }

  #stateOf(lag: number): NodeState {
    const { blocks } = this.#chain;
    const main = blocks.at(-1 - lag) ?? null;
    // Only what the cluster has not confirmed can differ.
    const orphan = blocks.slice(-confirmedDepth).findLast((block) => !isAncestor(block, main));
    const isOther = this.#mood === "other fork" && orphan !== undefined;
    return { tip: isOther ? orphan : main, main };
  }

  #outcome(signature: string, { tip, main }: NodeState): SignatureOutcome | null {
    const block = this.#chain.find(signature, main) ?? this.#chain.find(signature, tip);
    if (!block) return null;
    const err = block.landed.get(signature);
    const depth = isAncestor(block, main) ? (main?.height ?? 0) - block.height : 0;
    if (depth >= finalizedDepth) return { slot: block.slot, err, commitment: "finalized" };
    if (depth >= confirmedDepth) return { slot: block.slot, err, commitment: "confirmed" };
    const seen = this.#chain.find(signature, tip);
    return seen ? { slot: seen.slot, err, commitment: "processed" } : null;
  }

  /** At commitment "confirmed". */
  #blockhashState(blockhash: string, { main }: NodeState): BlockhashState {
    const bytes = decodeBase58(blockhash) ?? new Uint8Array();
    const block = this.#chain.blockOf(Buffer.from(bytes).toString("hex"));
    const confirmed = ancestorOf(main, confirmedDepth);
    const isKnown = block && confirmed && isAncestor(block, confirmed);
    return {
      isValid: isKnown === true && confirmed.height - block.height <= lifetimeBlocks,
      slot: confirmed?.slot ?? 0n,
    };
  }
}

interface NodeState {
  /** The newest block that it has. */
  readonly tip: Block | null;
  /** The same on the chain that the cluster builds on. */
  readonly main: Block | null;
}
