// The real captures: their location, and their packets. They are other people's data and must not
// be copied; without them, tests that need them are skipped by name.

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parsePubkey, pubkeyBytes } from "../../../src/core/primitives.ts";
import { openCapture } from "../../../src/relay/captures/read-capture.ts";

const testdata = process.env["SHREDWAY_TESTDATA"] ?? resolve("../shared/testdata");

/** Use it as `it.skipIf(!hasTestdata)`. */
export const hasTestdata = existsSync(join(testdata, "shreds"));

/** A file of a folder of the shred collection. */
export function testdataFile(folder: string, file: string): string {
  return join(testdata, "shreds", folder, file);
}

/** All packets of a capture file. */
export function packetsOf(path: string): Uint8Array[] {
  const capture = openCapture(path);
  try {
    return Array.from(capture.packets, ({ packet }) => packet);
  } finally {
    capture.close();
  }
}

/** Public key of the leader of a folder, 32 bytes. */
export function leaderKey(folder: string): Uint8Array {
  return pubkeyBytes(parsePubkey(readFileSync(testdataFile(folder, "leader.txt"), "utf8").trim()));
}

/** Results of an independent checker for a capture, as far as tests compare them. */
export interface KnownAnswers {
  readonly packets: number;
  readonly variants: Readonly<Record<string, number>>;
  readonly versions: Readonly<Record<string, number>>;
  readonly slots: Readonly<Record<string, number>> | string;
  readonly dataIndex: readonly [number, number] | null;
  readonly codeIndex: readonly [number, number] | null;
  readonly parentOffsets: readonly number[];
  readonly dataSizeMinMax: readonly [number, number] | null;
  readonly flags: Readonly<Record<string, number>> | string;
  readonly fecSets: number;
  readonly sets: readonly { readonly k: string; readonly chain?: string | null }[];
}

/** The known results of a folder, by the name of the capture without its extension. */
export function knownAnswers(folder: string): Readonly<Record<string, KnownAnswers>> {
  const file: { kat: Record<string, KnownAnswers> } = JSON.parse(
    readFileSync(testdataFile(folder, "kat.json"), "utf8"),
  );
  return file.kat;
}
