// A wish for PostgreSQL that a reload brings: tried once at a time, again after a failure, told each time.

import { expect, it } from "vitest";
import { DatabaseMove } from "../../src/app/database-move.ts";
import { gatewayRestartKeys } from "../../src/app/gateway-settings.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import type { MoveSummary } from "../../src/platform/store/transfer/move.ts";

const url = "postgres://db.example.com/shredway";

function configOf(postgres?: string) {
  return completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0" },
    tips: { addresses: [pubkeyOf(new Uint8Array(32).fill(5))] },
    data: { directory: "data", ...(postgres !== undefined && { postgres }) },
  });
}

it("moves once at a time, and again when it failed", async () => {
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const asked: string[] = [];
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const store = {
    isOnFile: true,
    move: (postgres: string) => {
      asked.push(postgres);
      return new Promise<MoveSummary>((resolve, reject) => {
        const summary = { rows: 7, heldMs: 3, movedPath: "a.moved", warnings: ["slow"] };
        ends.push({ resolve: () => resolve({ ...summary, rest: Promise.resolve() }), reject });
      });
    },
  };
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const move = new DatabaseMove(store, log);
  move.apply(configOf());
  expect(asked).toEqual([]);
  move.apply(configOf(url));
  move.apply(configOf(url));
  expect(asked).toEqual([url]);
  move.apply(configOf());
  expect(lines.at(-1)).toContain("the move goes on as begun");
  ends[0]?.reject(new Error("away"));
  await settled();
  expect(lines.at(-1)).toContain("the database was not moved, and is in its file as before");
  expect(lines.at(-1)).toContain("away");
  move.apply(configOf(url));
  expect(asked).toEqual([url, url]);
  store.isOnFile = false;
  ends[1]?.resolve();
  await settled();
  expect(lines.at(-1)).toContain('"rows":7,"heldMs":3,"movedPath":"a.moved"');
  expect(lines.at(-2)).toContain("slow");
  move.apply(configOf(url));
  expect(asked.length).toBe(2);
});

it("needs a restart for another PostgreSQL, but not from a file to the first", () => {
  expect(gatewayRestartKeys(configOf(), configOf(url), true)).toEqual([]);
  expect(gatewayRestartKeys(configOf(url), configOf(), true)).toEqual([]);
  expect(gatewayRestartKeys(configOf(url), configOf(), false)).toEqual(["data"]);
  expect(gatewayRestartKeys(configOf(url), configOf(`${url}2`), false)).toEqual(["data"]);
  const kept = configOf(url);
  kept.data.historyHours = 7;
  expect(gatewayRestartKeys(configOf(), kept, true)).toEqual(["data"]);
});
