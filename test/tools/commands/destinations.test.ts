// `shredway destinations` as users and programs call it. Over a real folder.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { createLogger } from "../../../src/core/log.ts";
import { methods } from "../../../src/gateway/methods/method-table.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { destinationSettingsOf } from "../../../src/shreds/destinations/destination-rules.ts";
import { AccountDestinations } from "../../../src/shreds/destinations/destinations.ts";
import { challengeBytes } from "../../../src/shreds/destinations/ownership-proof.ts";
import { destinations as command } from "../../../src/tools/commands/destinations.ts";
import { until } from "../../platform/store/files.ts";
import { shredwayHere } from "../../support/processes/shredway.ts";

const log = createLogger({ level: "silent" });
let folder = "";
let data = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "shredway-destinations-"));
  data = join(folder, "data");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const destinations = (...args: readonly string[]) =>
  shredwayHere("destinations", ...args, "--data", data);

/** A data folder with the accounts. */
async function storeWith(...accounts: readonly string[]): Promise<Store> {
  const store = await Store.open({ directory: data, clock: systemClock, log });
  for (const name of accounts) await store.keys.ensureAccount(name, systemClock.nowNs());
  return store;
}

const place = ["--region", "frankfurt", "--address", "192.0.2.1:9000"] as const;

async function json(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await destinations(...args, "--json");
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

describe("shredway destinations", () => {
  it("adds, lists, approves, pauses, resumes and removes", async () => {
    await (await storeWith("a", "b")).close();
    const added = await json("add", "--account", "a", ...place);
    const id = String(added["id"]);
    expect(added).toEqual({
      id: expect.stringMatching(/^d_[0-9a-f]{12}$/),
      account: "a",
      region: "frankfurt",
      address: "192.0.2.1:9000",
      state: "unproved",
      created: expect.stringMatching(/^20\d\d-.*Z$/),
      proved: null,
      provedBy: null,
      proofEnds: null,
      paused: null,
      pauseReason: null,
      recovered: false,
    });
    expect(await json("approve", id)).toMatchObject({
      state: "active",
      proved: expect.stringMatching(/Z$/),
      provedBy: "operator",
      proofEnds: null,
    });
    expect(await json("pause", id)).toMatchObject({ state: "paused", pauseReason: "operator" });
    const { stdout } = await destinations("list", "--account", "a");
    expect(stdout).toMatch(/^id +account +region +address +state +proof/);
    expect(stdout).toMatch(
      /^d_\w+ +a +frankfurt +192\.0\.2\.1:9000 +paused \(operator\) +by operator, permanent/m,
    );
    expect(await json("resume", id)).toMatchObject({ state: "active", pauseReason: null });
    expect(await json("remove", id)).toEqual({ id, state: "removed" });
    expect((await destinations("list", "--account", "b")).stderr).toContain("no destinations yet");
  }, 120_000);

  it("reaches a running service: challenges are sent, and an approved destination is active", async () => {
    const store = await storeWith("a");
    const sent: string[] = [];
    const settings = destinationSettingsOf(
      completeConfig({ relay: { shredVersion: 1, authentication: "off" } }),
    );
    const service = await AccountDestinations.open(
      {
        clock: systemClock,
        store: store.destinations,
        log,
        random: (count) => new Uint8Array(count),
        openProbe: () => ({ check: () => "pending", close: () => {} }),
        sendChallenge: (address) => sent.push(address),
        isOwnListener: () => false,
        regionProblem: () => null,
        isServedElsewhere: () => false,
        countLeases: () => 0,
      },
      settings,
    );
    const added = await json("add", "--account", "a", ...place);
    await until(() => sent.length > 0);
    expect(sent).toEqual(["192.0.2.1:9000"]);
    await json("approve", String(added["id"]));
    await until(() => service.active("frankfurt").length > 0);
    await json("pause", String(added["id"]));
    await until(() => service.active("frankfurt").length === 0);
    service.close();
    await store.close();
  }, 120_000);

  it("applies the configuration of the service", async () => {
    await (await storeWith("a")).close();
    const file = join(folder, "shredway.yaml");
    writeFileSync(
      file,
      `data: { directory: ${JSON.stringify(data)} }
relay:
  listen: "0.0.0.0:20000"
  shredVersion: 1
  authentication: "off"
  destinations: [ { name: x, address: "198.51.100.1:9001", tier: tier-1 } ]
delivery: { regions: [tokyo], destinationsPerAccount: 1, denied: [203.0.113.0/24] }
`,
    );
    const add = (region: string, address: string) =>
      shredwayHere(
        "destinations",
        "add",
        "--account",
        "a",
        "--region",
        region,
        "--address",
        address,
        "--config",
        file,
      );
    const refusals = [
      ["tokyo", "203.0.113.9:9000", "the operator denies this address range"],
      ["tokyo", "198.51.100.1:9001", "destination of the operator's configuration"],
    ] as const;
    for (const [region, address, message] of refusals) {
      const { code, stderr } = await add(region, address);
      expect(stderr).toContain(message);
      expect(code).toBe(1);
    }
    expect((await add("tokyo", "192.0.2.1:9000")).code).toBe(0);
    expect((await add("tokyo", "192.0.2.1:9001")).stderr).toContain(
      "maximum number of destinations, 1",
    );
  }, 120_000);

  it.each([
    [[], "expected one of list, add, approve, pause, resume, remove"],
    [["make"], 'unknown action "make"'],
    [["add", "--account", "a", "--region", "frankfurt"], "missing option --address"],
    [
      ["add", "--account", "a", "--region", "frankfurt", "--address", "here"],
      '--address: invalid value "here"; expected',
    ],
    [["add", "--address", "192.0.2.1:9000"], "missing option --account"],
    [["approve"], "missing id of a destination"],
    [["pause", "d_1", "d_2"], 'unexpected argument "d_2"'],
    [
      ["resume", "d_1", "--account", "a"],
      "it is an option of destinations list or destinations add",
    ],
    [["list", "--config", "a.yaml"], "at most one of --config, --data"],
  ])("refuses %j with exit code 2 and creates nothing", async (args, message) => {
    const { code, stdout, stderr } = await destinations(...args);
    expect(stderr).toContain(message);
    expect(stderr).toContain("shredway destinations --help");
    expect(stdout).toBe("");
    expect(code).toBe(2);
    expect(existsSync(data)).toBe(false);
  });

  it("fails with exit code 1 for unknown destinations or a missing database", async () => {
    const nothing = await destinations("list");
    expect(nothing.stderr).toContain("expected a folder with shredway.db");
    expect(nothing.code).toBe(1);
    await (await storeWith("a")).close();
    const cases = [
      [
        ["approve", "d_none"],
        'unknown destination "d_none" (list them with shredway destinations list)',
      ],
      [["list", "--account", "c"], 'unknown account "c"; expected an account'],
      [["add", "--account", "a", "--region", "mars", "--address", "192.0.2.1:9000"], "mars"],
      [["add", "--account", "a", "--region", "frankfurt", "--address", "192.0.2.1:53"], "port 53"],
    ] as const;
    for (const [args, message] of cases) {
      const { code, stderr } = await destinations(...args);
      expect(stderr).toContain(message);
      expect(code).toBe(1);
    }
  }, 120_000);
});

describe("the documents", () => {
  const text = (name: string) =>
    readFileSync(new URL(`../../../docs/${name}`, import.meta.url), "utf8");

  it("describe every use of the command and no other", () => {
    const section =
      text("command-line.md").split("\n## destinations\n")[1]?.split("\n## ")[0] ?? "";
    const [uses = ""] = section.split("```").slice(1);
    expect(uses.trim().split("\n")).toEqual(command.usage.map((line) => `shredway ${line}`));
    const verbs = command.usage.map((line) => line.split(" ")[1]);
    const shown = [...text("shreds.md").matchAll(/shredway destinations (\w+)/g)];
    expect(new Set(shown.map(([, verb]) => verb))).toEqual(new Set(verbs));
  });

  it("refer to existing methods and describe the challenge correctly", () => {
    const shreds = text("shreds.md");
    const named = [
      ...shreds.matchAll(
        /"method":"(\w+)"|\b((?:get|add|remove|challenge|prove)(?:Tier|Destination)\w*)/g,
      ),
    ];
    expect(named.length).toBeGreaterThan(5);
    for (const [, called, mentioned] of named) {
      expect(Object.keys(methods)).toContain(called ?? mentioned);
    }
    expect(shreds).toContain(`${challengeBytes} bytes:`);
    expect(shreds).toContain("shredway listen --port 9001 --prove");
  });
});
