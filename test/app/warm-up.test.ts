// Warm-up: synthetic submissions through a second gateway, without an effect on the real one.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { WarmUp } from "../../src/app/warm-up.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import type { Logger } from "../../src/core/log.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { hasUws } from "../support/gateway/has-uws.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const partner = { name: "partner", kind: "swqos", url: "http://127.0.0.1:9/" } as const;

interface Wanted {
  readonly directory?: string;
  readonly engine?: "node" | "uws";
  readonly more?: object;
}

function startWith({ directory = temporaryFolder(), engine = "node", more = {} }: Wanted) {
  const config = completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0", webSocketListen: [], engine },
    data: { directory },
    tips: { addresses: [pubkeyOf(new Uint8Array(32).fill(5))] },
    gateway: { warmUpSubmissions: 25 },
    routes: [partner],
    ...more,
  });
  const log = { info: vi.fn<Logger["info"]>(), warn: vi.fn<Logger["warn"]>() };
  // The clock does not advance, so a slow machine does not end the warm-up early.
  const warmUp = WarmUp.start({ config, log, clock: new ManualClock() });
  return { directory, log, warmUp };
}

it.each(hasUws ? (["node", "uws"] as const) : (["node"] as const))(
  "submits all transactions with the engine %s",
  async (engine) => {
    const { directory, log, warmUp } = startWith({ engine });
    await warmUp.ended;
    expect(log.warn).not.toHaveBeenCalled();
    expect(log.info).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ submissions: 25 }),
      "gateway: warmed up with synthetic submissions",
    );
    expect(readdirSync(directory)).toEqual([]);
  },
);

it("removes what a killed process left", async () => {
  const directory = temporaryFolder();
  mkdirSync(join(directory, "warm-up"));
  writeFileSync(join(directory, "warm-up", "shredway.sqlite"), "not a database");
  const { log, warmUp } = startWith({ directory });
  await warmUp.ended;
  expect(log.warn).not.toHaveBeenCalled();
  expect(existsSync(join(directory, "warm-up"))).toBe(false);
});

it("ends early when the service closes, and leaves nothing open", async () => {
  const { directory, log, warmUp } = startWith({
    more: { gateway: { warmUpSubmissions: 100_000 } },
  });
  await warmUp.close();
  await warmUp.close();
  expect(log.warn).not.toHaveBeenCalled();
  expect(log.info).toHaveBeenCalledOnce();
  expect(readdirSync(directory)).toEqual([]);
});

it.each([
  ["no route is configured", { routes: [] }],
  ["the configuration asks for none", { gateway: { warmUpSubmissions: 0 } }],
])("submits nothing if %s", async (_, more) => {
  const { directory, log, warmUp } = startWith({ more });
  await warmUp.ended;
  expect(log.info).not.toHaveBeenCalled();
  expect(readdirSync(directory)).toEqual([]);
});

it("only warns if it fails: the service goes on", async () => {
  const directory = join(temporaryFolder(), "file");
  writeFileSync(directory, "");
  const { log, warmUp } = startWith({ directory });
  await warmUp.ended;
  expect(log.warn).toHaveBeenCalledExactlyOnceWith(
    expect.stringContaining("gateway: the warm-up failed, so the first submissions take longer: "),
  );
});
