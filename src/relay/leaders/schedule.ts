// Leader schedule: the public key that signs the shreds of each slot.
//
// Reads leaders.json, `{ "firstSlot": N, "leaders": { "<base58>": [0, 1, …] } }`, with slots relative to
// firstSlot, as returned by getLeaderSchedule. Called by start and listen; the result is published to
// the data plane as a table. Ambiguous input is rejected, because a wrong schedule drops real shreds.

import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { readTextFile } from "../../core/files.ts";
import { isSmallOrderKey } from "../../core/key-pair.ts";
import {
  isPubkey,
  parsePubkey,
  pubkeyBytes,
  pubkeyBytesLength,
  u64Max,
} from "../../core/primitives.ts";
import { isObject } from "../../core/values.ts";

/** Mark in `leaderBySlot`: the slot has no known leader. */
export const noLeader = 0xffff_ffff;
/** Two epochs of 432,000 slots: the current and the next one, which is all that a cluster knows. */
export const scheduleSlotsMax = 864_000;
/** Maximum number of leaders in a schedule, as in native/shred/leader_table.h. */
export const leaderKeysMax = 65_536;
/** A full schedule of two epochs has about 6 MB. */
const leadersFileBytesMax = 32 * 1024 * 1024;

export interface LeaderSchedule {
  readonly firstSlot: bigint;
  /** For firstSlot, firstSlot + 1, …: index into `keys`, or `noLeader`. */
  readonly leaderBySlot: Uint32Array;
  /** 32 bytes each, each once. */
  readonly keys: readonly Uint8Array[];
  /** First slots of its epochs, ascending; the first is `firstSlot`. */
  readonly epochFirstSlots: readonly bigint[];
}

function invalid(message: string, cause?: unknown): ShredwayError {
  return new ShredwayError(
    "leaders_invalid",
    `leader schedule: ${message}`,
    cause === undefined ? {} : { cause },
  );
}

/** A leader and its slots, relative to the first slot of the schedule. */
export interface LeaderSlots {
  /** 32 bytes. */
  readonly key: Uint8Array;
  readonly slots: readonly number[];
}

function checkSlots(leaders: readonly LeaderSlots[]): number {
  let length = 0;
  for (const { key, slots } of leaders) {
    if (key.length !== pubkeyBytesLength) {
      throw invalid(`expected a public key of 32 bytes, got ${key.length}`);
    }
    for (const slot of slots) {
      if (!Number.isInteger(slot) || slot < 0 || slot >= scheduleSlotsMax) {
        throw invalid(
          `expected slots 0 to ${scheduleSlotsMax - 1} relative to firstSlot, got ${quote(slot)}`,
        );
      }
      length = Math.max(length, slot + 1);
    }
  }
  return length;
}

/**
 * A schedule from leaders and their slots, of one epoch unless `epochFirstSlots` (ascending, starting
 * with `firstSlot`) names more. Throws ShredwayError "leaders_invalid" if a slot has two leaders, is
 * repeated or out of range, if a key is repeated, or if no slot has a leader.
 */
export function buildSchedule(
  firstSlot: bigint,
  leaders: readonly LeaderSlots[],
  epochFirstSlots: readonly bigint[] = [firstSlot],
): LeaderSchedule {
  if (leaders.length > leaderKeysMax) {
    throw invalid(`expected at most ${leaderKeysMax} leaders, got ${leaders.length}`);
  }
  const length = checkSlots(leaders);
  if (length === 0) throw invalid("expected at least one leader with at least one slot, got none");
  if (firstSlot < 0n || firstSlot > u64Max - BigInt(length)) {
    throw invalid(`firstSlot: expected an integer 0..${u64Max - BigInt(length)}, got ${firstSlot}`);
  }
  const leaderBySlot = new Uint32Array(length).fill(noLeader);
  const known = new Set<string>();
  for (const [number, { key, slots }] of leaders.entries()) {
    const hex = Buffer.from(key).toString("hex");
    if (known.has(hex)) throw invalid(`duplicate leader ${hex}; expected every leader once`);
    known.add(hex);
    for (const slot of slots) {
      if (leaderBySlot[slot] !== noLeader) {
        const what = leaderBySlot[slot] === number ? "twice from one leader" : "from two leaders";
        throw invalid(`duplicate slot ${slot} ${what}; expected every slot once`);
      }
      leaderBySlot[slot] = number;
    }
  }
  const keys = leaders.map(({ key }) => key.slice());
  return { firstSlot, leaderBySlot, keys, epochFirstSlots: [...epochFirstSlots] };
}

/** The slots that a schedule covers, both included. */
export function coveredSlots(schedule: LeaderSchedule): { first: bigint; last: bigint } {
  const { firstSlot, leaderBySlot } = schedule;
  return { first: firstSlot, last: firstSlot + BigInt(leaderBySlot.length) - 1n };
}

export function coverageText(schedule: LeaderSchedule): string {
  const { first, last } = coveredSlots(schedule);
  return `the leader schedule covers slots ${first} to ${last}`;
}

/** Leader of `slot`: 32 bytes; null: the schedule has no leader for it. */
export function leaderOf(schedule: LeaderSchedule, slot: bigint): Uint8Array | null {
  const index = slot - schedule.firstSlot;
  if (index < 0n || index >= BigInt(schedule.leaderBySlot.length)) return null;
  const number = schedule.leaderBySlot[Number(index)] ?? noLeader;
  return schedule.keys[number] ?? null;
}

/**
 * JSON.parse silently keeps the last of two equal keys, but two lists for one leader are an error.
 */
function refuseRepeatedKeys(text: string): void {
  const known = new Set<string>();
  // In valid JSON, every quote outside a string begins one, and a string before a colon is a key.
  for (const [, key, colon] of text.matchAll(/"((?:[^"\\]|\\.)*)"\s*(:?)/g)) {
    if (colon !== ":" || key === undefined) continue;
    if (known.has(key)) throw invalid(`duplicate key ${quote(key)}; expected every key once`);
    known.add(key);
  }
}

function leaderFrom(key: string, slots: unknown): LeaderSlots {
  let bytes: Uint8Array;
  try {
    bytes = pubkeyBytes(parsePubkey(key));
  } catch (cause) {
    throw invalid(`leaders: ${messageOf(cause)}`, cause);
  }
  if (isSmallOrderKey(bytes)) {
    throw invalid(
      `leaders.${key}: expected the public key of a leader, got a point of small order`,
    );
  }
  if (!Array.isArray(slots)) {
    throw invalid(`leaders.${key}: expected a list of slots, got ${quote(slots)}`);
  }
  const wrong: unknown = slots.find((slot) => typeof slot !== "number");
  if (wrong !== undefined) throw invalid(`leaders.${key}: expected integers, got ${quote(wrong)}`);
  return { key: bytes, slots };
}

const nodeResponseRefusal =
  "this is the response to getLeaderSchedule, which does not name the epoch's first slot; expected " +
  '{"firstSlot": N, "leaders": {…}} with the response\'s result as leaders, and absoluteSlot - slotIndex ' +
  "of getEpochInfo as firstSlot (docs/operations.md shows the command)";

/** The response of a node to getLeaderSchedule, or its result. */
function isNodeResponse(file: Readonly<Record<string, unknown>>): boolean {
  if (file["jsonrpc"] !== undefined) return isObject(file["result"]);
  const lists = Object.entries(file);
  return lists.every(([key, slots]) => Array.isArray(slots) && isPubkey(key));
}

/**
 * The schedule in the text of a leaders.json. Throws ShredwayError "leaders_invalid" with the expected
 * and the received value.
 */
export function parseLeaderSchedule(text: string): LeaderSchedule {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (cause) {
    throw invalid(`expected JSON, got ${messageOf(cause)}`, cause);
  }
  if (!isObject(file)) throw invalid(`expected an object, got ${quote(file)}`);
  refuseRepeatedKeys(text);
  const { firstSlot, leaders, ...unknown } = file;
  const [unknownKey] = Object.keys(unknown);
  if (unknownKey !== undefined && isNodeResponse(file)) throw invalid(nodeResponseRefusal);
  if (unknownKey !== undefined) {
    throw invalid(`unknown key ${quote(unknownKey)}; expected firstSlot and leaders`);
  }
  if (typeof firstSlot !== "number" || !Number.isSafeInteger(firstSlot) || firstSlot < 0) {
    throw invalid(`firstSlot: expected an integer 0 or more, got ${quote(firstSlot)}`);
  }
  if (!isObject(leaders)) {
    throw invalid(`leaders: expected an object of base58 public keys, got ${quote(leaders)}`);
  }
  return buildSchedule(
    BigInt(firstSlot),
    Object.entries(leaders).map(([key, slots]) => leaderFrom(key, slots)),
  );
}

/** The schedule in the file `path`. Throws ShredwayError "leaders_invalid" that names the file. */
export function loadLeaderSchedule(path: string): LeaderSchedule {
  const text = readTextFile(path, leadersFileBytesMax, "leaders_invalid");
  try {
    return parseLeaderSchedule(text);
  } catch (cause) {
    throw new ShredwayError("leaders_invalid", `${path}: ${messageOf(cause)}`, { cause });
  }
}
