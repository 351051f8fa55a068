// Resuming a stream at an earlier slot: the client's request for it, and its refusals.
//
// The stock clients of the dialects have no field for it, so it is metadata of the call. The refusals have the
// words of Yellowstone's servers, which clients parse.

import { GrpcError } from "../../core/grpc/status.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import { type Dialect, replayedDialects, type Subscription } from "./subscription.ts";

/** A subscriber that begins with the history. */
export interface Resume {
  readonly fromSlot: bigint;
  /** Bytes that its queue can take now. */
  readonly room: () => number;
  /** The history does not have what it needs: `replay_refused` or `replay_overtaken`. */
  readonly refuse: (message: StreamMessage) => void;
}

const slotMax = (1n << 64n) - 1n;

/** `wanted`: metadata x-from-slot of a call. undefined: the stream begins live. Throws GrpcError. */
export function fromSlotOf(
  wanted: string | readonly string[] | undefined,
  dialect: Dialect,
  hasHistory: boolean,
): bigint | undefined {
  if (wanted === undefined) return undefined;
  if (!replayedDialects.has(dialect)) {
    throw new GrpcError(
      "INVALID_ARGUMENT",
      "metadata x-from-slot: expected none, because only transactions can be replayed",
    );
  }
  if (typeof wanted !== "string" || !/^\d{1,20}$/.test(wanted) || BigInt(wanted) > slotMax) {
    throw new GrpcError(
      "INVALID_ARGUMENT",
      `metadata x-from-slot: expected a slot as a decimal number, got ${JSON.stringify(wanted).slice(0, 64)}`,
    );
  }
  if (!hasHistory) throw new GrpcError("OUT_OF_RANGE", "from_slot is not supported");
  return BigInt(wanted);
}

export function resumeOf(subscription: Subscription, fromSlot: bigint | undefined) {
  if (fromSlot === undefined) return undefined;
  const resume: Resume = {
    fromSlot,
    room: () => subscription.replayRoom,
    refuse: ({ kind, slot, parent: newest }) => {
      if (kind === "replay_overtaken") {
        const detail = `lagged: the client reads too slowly for the replay; the history begins at slot ${slot} now`;
        subscription.end("lagged", "RESOURCE_EXHAUSTED", detail);
      } else {
        subscription.end("refused", "OUT_OF_RANGE", refusalOf(fromSlot, slot, newest));
      }
    },
  };
  return resume;
}

/** `oldest`: 0 if no slot can be replayed. */
function refusalOf(fromSlot: bigint, oldest: bigint, newest: bigint): string {
  if (newest === 0n) return `broadcast from ${fromSlot} is not available: no shred has arrived yet`;
  const first = oldest === 0n ? newest + 1n : oldest;
  if (fromSlot < first) {
    return `broadcast from ${fromSlot} is not available, last available: ${first}`;
  }
  return `broadcast from ${fromSlot} is not available: the newest slot is ${newest}`;
}
