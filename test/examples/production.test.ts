// The files of examples/production: what an operator copies must be accepted by those who read it.

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { configWarnings, loadConfig } from "../../src/core/configuration/configuration.ts";
import { isForwardedSource } from "../../src/core/configuration/relay-sources.ts";
import { configuredSettingsOf } from "../../src/platform/doctor/config-checks.ts";
import { groupListenersOf } from "../../src/relay/multicast/group-plan.ts";
import { shredway } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = "examples/production";
const regions = ["frankfurt", "new-york"];

/** A region's configuration as an operator installs it, with secrets of its own. */
function installed(region: string): string {
  const to = temporaryFolder();
  mkdirSync(join(to, "secrets"));
  writeFileSync(join(to, "secrets/postgres"), "hidden/pass@word\n");
  writeFileSync(join(to, "secrets/rpc"), "https://rpc.example.com/?key=hidden\n");
  writeFileSync(join(to, "secrets/swqos"), "hidden\n");
  copyFileSync(join(folder, `${region}.yaml`), join(to, "shredway.yaml"));
  return join(to, "shredway.yaml");
}

describe("the single machine", () => {
  it("is accepted without a warning, uses SQLite, and sells tiers", async () => {
    const file = installed("single");
    const { code, stdout, stderr } = await shredway("start", "--config", file, "--print-config");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).not.toContain("hidden");
    const { data, delivery, regions: all } = loadConfig(file);
    expect(data.postgres).toBeUndefined();
    expect(delivery.region).toBe("frankfurt");
    expect(all[0]?.shredTipAddresses.length).toBeGreaterThan(0);
  });
});

describe("the relay at a block engine", () => {
  it("is accepted, at the only port of the relay", () => {
    const { relay } = loadConfig(installed("shredstream"));
    expect(relay.listen).toEqual(["0.0.0.0:20000"]);
    expect(relay.sources).toMatchObject([{ kind: "shredstream" }, {}]);
  });
});

describe("the relay with multicast groups", () => {
  it("is accepted, forwards only the provider's shreds, and receives on the groups' port", () => {
    const config = loadConfig(installed("multicast"));
    expect(configWarnings(config)).toEqual([]);
    const { sources } = config.relay;
    expect(sources.map((source) => [source.name, isForwardedSource(source)])).toEqual([
      ["edge-leaders", false],
      ["edge", false],
      ["provider", true],
    ]);
    expect(groupListenersOf(sources)).toEqual(["0.0.0.0:7733", "[::]:7733"]);
  });
});

describe("the relay with subscribers", () => {
  it("is accepted, with the limits of a subscriber", () => {
    const { shredstream } = loadConfig(installed("subscribers"));
    expect(shredstream).toMatchObject({ ttlSeconds: 120, subscribers: [{ destinations: 2 }] });
  });
});

describe("the two regions", () => {
  it("are accepted, each for itself, without their secrets being shown", async () => {
    const shown = await Promise.all(
      regions.map((region) => shredway("start", "--config", installed(region), "--print-config")),
    );
    const hosts = ["db-frankfurt.example.com,db-new-york", "db-new-york.example.com,db-frankfurt"];
    shown.forEach(({ code, stdout, stderr }, i) => {
      expect(stderr).toBe("");
      expect(code).toBe(0);
      expect(stdout).not.toContain("hidden");
      expect(stdout).toContain(`postgres: postgres://${hosts[i]}.example.com/masked`);
    });
  });

  it("have the same where nodes on one database must", () => {
    const [frankfurt, newYork] = regions.map((region) => loadConfig(installed(region)));
    if (!frankfurt || !newYork) throw new Error("expected two regions");
    for (const key of ["regions", "tips", "tiers", "solana"] as const)
      expect(newYork[key]).toEqual(frankfurt[key]);
    expect(newYork.relay.tiers).toEqual(frankfurt.relay.tiers);
    expect(newYork.data.historyHours).toBe(frankfurt.data.historyHours);
    expect(newYork.delivery.regions).toEqual(frankfurt.delivery.regions);
    expect([frankfurt.region, frankfurt.delivery.region]).toEqual(["frankfurt", "frankfurt"]);
    expect([newYork.region, newYork.delivery.region]).toEqual(["new-york", "new-york"]);
    expect(newYork.data.node).not.toBe(frankfurt.data.node);
    expect(frankfurt.data.postgres).toContain("shredway:hidden%2Fpass%40word@db-frankfurt");
  });

  it("get what they ask of the kernel from shredway.sysctl.conf", () => {
    const text = readFileSync(join(folder, "shredway.sysctl.conf"), "utf8");
    const numberAt = (key: string) =>
      Number(new RegExp(`^${key.replaceAll(".", "\\.")} = (\\d+)$`, "m").exec(text)?.[1]);
    const { receiveBufferBytes, sendBufferBytes } = configuredSettingsOf(
      loadConfig(installed("frankfurt")),
    );
    expect(numberAt("net.core.rmem_max")).toBe(receiveBufferBytes);
    expect(numberAt("net.core.wmem_max")).toBe(sendBufferBytes);
    const lines = text.split("\n").filter((line) => !/^(#.*)?$/.test(line));
    const known = lines.filter((line) => existsSync(pathOf(line.split(" ")[0] ?? "")));
    expect(known).toEqual(lines);
  });
});

function pathOf(sysctl: string): string {
  return `/proc/sys/${sysctl.replaceAll(".", "/")}`;
}

const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;

/** The unit in a folder of its own, with or without the drop-in. */
function unit(...dropIns: readonly string[]): string {
  const to = temporaryFolder();
  const text = readFileSync(join(folder, "shredway.service"), "utf8");
  // This machine's Node may live elsewhere, and a checkout has nothing in /opt.
  writeFileSync(
    join(to, "shredway.service"),
    text.replaceAll("/usr/bin/node", process.execPath).replaceAll("file:/opt", "file:/"),
  );
  mkdirSync(join(to, "shredway.service.d"));
  for (const name of dropIns)
    copyFileSync(join(folder, "shredway.service.d", name), join(to, "shredway.service.d", name));
  return join(to, "shredway.service");
}

function analyze(...words: readonly string[]) {
  const { status, stdout, stderr } = spawnSync("systemd-analyze", words, {
    encoding: "utf8",
    env: { ...process.env, SYSTEMD_PAGER: "" },
  });
  return { status, text: `${stdout}${stderr}` };
}

describe("shredway.service", () => {
  it.skipIf(!hasAnalyze).each([
    [[], 21],
    [["unprivileged.conf"], 15],
  ])("is understood by systemd with %o, and exposes at most %d tenths", (dropIns, tenths) => {
    const file = unit(...dropIns);
    expect(analyze("verify", file)).toEqual({ status: 0, text: "" });
    const report = analyze("security", "--offline=true", `--threshold=${tenths}`, file);
    expect(report.text).toContain("Overall exposure level");
    expect(report.status).toBe(0);
  });

  it("waits longer for the end than the service drains", () => {
    const text = readFileSync(join(folder, "shredway.service"), "utf8");
    const drainMs = /const answerMs = (\d+)/.exec(
      readFileSync("src/tools/commands/start.ts", "utf8"),
    )?.[1];
    const stopSeconds = /^TimeoutStopSec=(\d+)$/m.exec(text)?.[1];
    expect(Number(stopSeconds) * 1000).toBeGreaterThanOrEqual(2 * Number(drainMs));
    expect(text).toContain("Type=notify\n");
    expect(text).toContain("ExecReload=/bin/sh -c 'kill -HUP $MAINPID'\n");
  });
});

describe("Dockerfile", () => {
  it("copies what exists and what its ignore file lets through", () => {
    const text = readFileSync(join(folder, "Dockerfile"), "utf8");
    const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from = ""]) =>
      from.split(" "),
    );
    expect(copied.length).toBeGreaterThan(5);
    const ignore = readFileSync(join(folder, "Dockerfile.dockerignore"), "utf8").split("\n");
    for (const path of copied) {
      expect(existsSync(path)).toBe(true);
      expect(ignore).toContain(`!${path}`);
    }
    expect(readFileSync("src/app/tsconfig.json", "utf8")).toContain('"outDir": "../../dist"');
  });
});
