// First slot of the sandbox's chain: every start continues after the slots of the last one.
//
// Called by open-sandbox.ts. Every start creates a new chain, but the relay drops slots before the
// highest one of the previous run (relay/slot-floor.ts). The new chain therefore begins with the next
// epoch after that slot. Its genesis hash contains the first slot, so its blockhashes are new too.

import { ShredwayError } from "../core/errors.ts";
import { readSavedSlot, slotFileIn } from "../relay/slot-floor.ts";
import { sandboxPace } from "./plan.ts";

/** Numbers up to 2^53 are exact; an hour has 9,000 slots. */
const savedSlotMax = 2n ** 52n;

/** Throws ShredwayError "config_invalid" if no slot can follow the saved one. */
export function firstSlotOf(folder: string): bigint {
  const { firstSlot, shredVersion } = sandboxPace;
  const slotsPerEpoch = BigInt(sandboxPace.slotsPerEpoch);
  const path = slotFileIn(folder);
  const saved = savedSlotIn(path);
  if (saved?.shredVersion !== shredVersion || saved.slot < firstSlot) return firstSlot;
  if (saved.slot > savedSlotMax) {
    throw new ShredwayError(
      "config_invalid",
      `${path}: slot: got ${saved.slot}, expected at most ${savedSlotMax}; delete the file`,
    );
  }
  return (saved.slot / slotsPerEpoch + 1n) * slotsPerEpoch;
}

/** null: unknown. The relay ignores an unreadable file too, and logs a warning. */
function savedSlotIn(path: string): ReturnType<typeof readSavedSlot> {
  try {
    return readSavedSlot(path);
  } catch {
    return null;
  }
}
