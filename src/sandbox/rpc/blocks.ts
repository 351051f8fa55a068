// Block access by commitment, with the node's errors for missing blocks.
//
// Called by the methods that read blocks and transactions and by subscriptions. The node has
// different errors for future slots, skipped slots and expired blocks.

import { ShredwayError } from "../../core/errors.ts";
import type { Block, ChainApi, Commitment } from "../chain/types.ts";
import { type Config, invalidParams } from "./params.ts";

/** Blocks and transactions are visible when confirmed. Throws "value_invalid" for "processed". */
export function settledCommitment(config: Config): Exclude<Commitment, "processed"> {
  const commitment = config.commitment();
  if (commitment !== "processed") return commitment;
  throw invalidParams("commitment", "confirmed or finalized for this method", commitment);
}

/** Throws "block_unavailable", "slot_skipped" or "block_cleaned_up". */
export function blockAt(chain: ChainApi, slot: bigint, commitment: Commitment): Block {
  const tip = chain.slot(commitment);
  if (slot > tip) {
    throw new ShredwayError(
      "block_unavailable",
      `Block not available for slot ${slot}: expected at most ${tip} (${commitment})`,
    );
  }
  const block = chain.block(slot);
  if (block) return block;
  if (block === null) {
    throw new ShredwayError(
      "slot_skipped",
      `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`,
    );
  }
  throw new ShredwayError(
    "block_cleaned_up",
    `Block ${slot} cleaned up, does not exist on node. First available block: ${chain.firstKeptSlot()}`,
  );
}

/** Slots from `first` to `last` with a retained block. */
export function* blocksBetween(chain: ChainApi, first: bigint, last: bigint): Generator<Block> {
  const firstSlot = chain.firstKeptSlot();
  for (let slot = first > firstSlot ? first : firstSlot; slot <= last; slot++) {
    const block = chain.block(slot);
    if (block) yield block;
  }
}
