// Processes that are killed by kill.test.ts: one imports, one moves its database while it keeps
// registrations as fast as it can and prints each when it is acknowledged.
// `child.ts import PLACE FILE`, `child.ts move DIRECTORY URL ROUND`

import { writeSync } from "node:fs";
import { systemClock } from "../../../../src/core/clock.ts";
import { Store } from "../../../../src/platform/store/store.ts";
import { checkExport, importDatabase } from "../../../../src/platform/store/transfer/import.ts";
import { openDatabase } from "../../../../src/platform/store/transfer/place.ts";
import { encodeBase58 } from "../../../../src/relay/data-plane/base58.ts";
import type { Registration } from "../../../../src/shreds/registrations/registration-types.ts";
import { silent } from "../files.ts";

export function placeOf(text: string): { directory: string; postgres?: string } {
  return text.startsWith("postgres:")
    ? { directory: "/nowhere", postgres: text }
    : { directory: text };
}

export function registrationOf(round: number, number: number): Registration {
  const bytes = new Uint8Array(64).fill(1);
  new DataView(bytes.buffer).setUint32(0, round);
  new DataView(bytes.buffer).setUint32(4, number);
  return {
    signature: encodeBase58(bytes),
    accountId: "a_1",
    lamports: BigInt(number),
    slot: 2n ** 64n - 1n,
    registeredMs: 1_767_225_600_000 + number,
    lifetime: new Uint8Array(32),
    nonceAccount: null,
    state: "pending",
    settledMs: null,
    countedLamports: null,
    countedOrder: null,
    reason: null,
  };
}

const tell = (line: string): void => void writeSync(1, `${line}\n`);

async function doImport(place: string, path: string): Promise<void> {
  const options = { clock: systemClock, log: silent, isAlone: false };
  const { driver, blobType } = await openDatabase(placeOf(place), options);
  const checked = await checkExport(path);
  tell("begins");
  await importDatabase({ path, checked, driver, blobType });
  tell("ended");
}

async function doMove(directory: string, postgres: string, round: number): Promise<void> {
  const clock = systemClock;
  const store = await Store.open({ directory, postgres, clock, log: silent, isService: true });
  tell(store.isOnFile ? "file" : "postgres");
  const lane = async (first: number): Promise<void> => {
    for (let number = first; ; number += 4) {
      await store.registrations.add(registrationOf(round, number));
      tell(`kept ${number}`);
    }
  };
  const lanes = [0, 1, 2, 3].map(lane);
  if (store.isOnFile) {
    await store.move(postgres);
    tell("moved");
  }
  await Promise.all(lanes);
}

const [, program, what, place = "", path = "", round = "0"] = process.argv;
if (program?.endsWith("child.ts")) {
  if (what === "import") await doImport(place, path);
  else await doMove(place, path, Number(round));
  // The pipe and the files may be open still; whoever waits for the end waits for this.
  setInterval(() => {}, 1000);
}
