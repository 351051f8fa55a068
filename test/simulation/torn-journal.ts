// The journal of submissions as a killed process leaves it: perhaps with a part of one more frame.
//
// It reads the files by itself: a first line, then frames of a length (4 bytes, little-endian), a CRC-32 and
// the payload.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { SeededRandom } from "../../src/core/seeded-random.ts";

const headBytes = 8;
const tornShare = 0.5;

/** The first frame of a file; null: it has none. */
function frameOf(bytes: Buffer): Buffer | null {
  const begin = bytes.indexOf("\n") + 1;
  if (begin === 0 || begin + headBytes > bytes.length) return null;
  return bytes.subarray(begin, begin + headBytes + bytes.readUInt32LE(begin));
}

/** Appends a part of a frame that nobody has acknowledged. */
export function tearJournals(databasePath: string, random: SeededRandom): void {
  for (const name of ["1", "2"]) {
    const path = `${databasePath}-submissions-${name}`;
    const isTorn = random.happens(tornShare);
    const frame = existsSync(path) ? frameOf(readFileSync(path)) : null;
    if (frame && isTorn) appendFileSync(path, frame.subarray(0, random.below(frame.length)));
  }
}
