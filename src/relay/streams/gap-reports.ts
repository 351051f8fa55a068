// How each dialect reports a gap to clients that asked to drop messages instead of an end.
//
// Clients of the dialects do not know gaps, so the reports have forms that they read as something harmless:
// a ping with a name, or an empty batch with a field that they ignore.

import { MessageWriter } from "../../core/grpc/protobuf.ts";
import { frameMessage, GrpcError } from "../../core/grpc/status.ts";
import { encodeFilterNames, pingUpdate } from "./geyser-messages.ts";
import type { StreamGap } from "./stream-gap.ts";
import type { Dialect } from "./subscription.ts";

export type GapEncoder = (gap: StreamGap) => Uint8Array;

/** A ping whose only name is the report. */
const pingWithGap: GapEncoder = ({ count, slots }) => {
  const place = slots ? ` first_slot=${slots.first} last_slot=${slots.last}` : "";
  const name = `shredway.dropped count=${count}${place}`;
  return frameMessage(encodeFilterNames([name]), pingUpdate);
};

const gapField = 1000;
/** A vector without entries in bincode. */
const noEntries = new Uint8Array(8);

/** An empty batch with the report as a field of its own. */
const emptyBatchWithGap: GapEncoder = ({ count, slots }) => {
  const gap = new MessageWriter()
    .uint(1, BigInt(count))
    .uint(2, slots?.first ?? 0n)
    .uint(3, slots?.last ?? 0n)
    .finish();
  const entry = new MessageWriter()
    .uint(1, slots?.last ?? 0n)
    .bytes(2, noEntries)
    .message(gapField, gap);
  return frameMessage(entry.finish());
};

const encoders: Readonly<Partial<Record<Dialect, GapEncoder>>> = {
  entries: emptyBatchWithGap,
  deshred: pingWithGap,
  preprocessed: pingWithGap,
};

/** `wanted`: metadata x-on-lag of a call. undefined: a slow client's stream ends. Throws GrpcError. */
export function gapEncoderOf(
  wanted: string | readonly string[] | undefined,
  dialect: Dialect,
): GapEncoder | undefined {
  if (wanted === undefined || wanted === "end") return undefined;
  const refusal = (expected: string) =>
    new GrpcError(
      "INVALID_ARGUMENT",
      `metadata x-on-lag: expected ${expected}, got ${JSON.stringify(wanted).slice(0, 64)}`,
    );
  if (wanted !== "drop") throw refusal("end or drop");
  const encoder = encoders[dialect];
  if (!encoder) throw refusal("end, because this call has no message that can report a gap");
  return encoder;
}
