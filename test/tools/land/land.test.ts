// `shredway land` in the sandbox and through the sender sandbox: results, one nonce, dry run, resumption, bad input.

import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { land } from "../../../src/tools/commands/land.ts";
import type { LandReport } from "../../../src/tools/land/land-report.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { CommandRun } from "../../support/processes/command-run.ts";
import { shredwayHere } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { isFullRun } from "../../support/vitest/test-scope.ts";
import { senderSandboxRun } from "./sender-sandbox-run.ts";

type FinalReport = LandReport & { readonly final: boolean; readonly verdict: readonly string[] };

function finalReport(stdout: string): FinalReport {
  const lines = stdout.trimEnd().split("\n");
  return JSON.parse(lines.at(-1) ?? "");
}

/** Rows of a CSV file as objects. */
function rowsOf(path: string): Readonly<Record<string, string>>[] {
  const [head = "", ...lines] = readFileSync(path, "utf8").trimEnd().split("\n");
  const names = head.split(",");
  return lines.map((line) =>
    Object.fromEntries(line.split(",").map((value, i) => [names[i] ?? "", value])),
  );
}

describe("land --sandbox", () => {
  it("writes report, page, picture and table of a short run", { timeout: 180_000 }, async () => {
    const folder = temporaryFolder();
    const files = ["svg", "html", "csv"].flatMap((kind) => [
      `--${kind}`,
      join(folder, `land.${kind}`),
    ]);
    const words = ["--rounds", "5", "--interval", "80", "--wait", "20", "--mark", "memo"];
    const { code, stdout, stderr } = await shredwayHere("land", "--sandbox", ...words, ...files);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("sandbox: lossy delays by 20 ms and drops 40 %\n");
    expect(stdout).toContain(
      "cost: at most 45,000 lamports (0.000045 SOL) a round, 225,000 lamports (0.000225 SOL) in total\n",
    );
    for (const title of ["time to landing", "slots to landing", "time to response", "verdict"]) {
      expect(stdout).toContain(`\n${title}\n`);
    }
    const rows = rowsOf(join(folder, "land.csv"));
    expect(rows.length).toBe(15);
    const observed = rows.filter(({ state }) => state === "landed");
    expect(observed.length).toBeGreaterThan(5);
    for (const row of observed) {
      expect(row).toMatchObject({ via: "shreds", time_ns: expect.stringMatching(/^\d+$/) });
      expect(Number(row["fec_set"]) % 32).toBe(0);
      expect(Number(row["block_index"])).toBeLessThan(Number(row["block_transactions"]));
    }
    for (const kind of ["svg", "html"]) {
      const text = readFileSync(join(folder, `land.${kind}`), "utf8");
      expect(text).toContain("near against far against lossy");
      expect(text).not.toMatch(/NaN|undefined|Infinity|<script|(href|src)=/);
    }
    expect(readdirSync(folder).toSorted()).toEqual(["land.csv", "land.html", "land.svg"]);
  });

  it.runIf(isFullRun)("shows the known differences", { timeout: 180_000 }, async () => {
    const words = ["--rounds", "60", "--interval", "180", "--wait", "2", "--json"];
    const { code, stdout } = await shredwayHere("land", "--sandbox", ...words);
    expect(code).toBe(0);
    const report = finalReport(stdout);
    expect(report).toMatchObject({ final: true, observedBy: "shreds", rounds: { complete: 60 } });
    const [nearFar, nearLossy] = report.pairs;
    // The difference of the delays is 150 ms; a leader executes transactions every 12.5 ms.
    expect(nearFar).toMatchObject({ a: "near", b: "far", isTimeSignificant: true });
    expect(nearFar?.advanceNs.interval?.low).toBeLessThan(165e6);
    expect(nearFar?.advanceNs.interval?.high).toBeGreaterThan(135e6);
    expect(nearFar?.isLandedSignificant).toBe(false);
    expect(nearLossy).toMatchObject({ a: "near", b: "lossy", isTimeSignificant: false });
    expect(nearLossy?.isLandedSignificant).toBe(true);
    expect(nearLossy?.landedDifference.interval?.low).toBeLessThan(0.38);
    expect(nearLossy?.landedDifference.interval?.high).toBeGreaterThan(0.38);
    expect(report.verdict.join("\n")).toContain("near landed more often than lossy");
  });

  it("lands exactly one transaction of each round with one nonce", {
    timeout: 180_000,
  }, async () => {
    const csv = join(temporaryFolder(), "land.csv");
    const words = ["--same-nonce", "--rounds", "4", "--interval", "20", "--wait", "20", "--json"];
    const { code, stdout } = await shredwayHere("land", "--sandbox", ...words, "--csv", csv);
    expect(code).toBe(0);
    const report = finalReport(stdout);
    expect(report).toMatchObject({ sameNonce: true, rounds: { complete: 4 } });
    const rows = rowsOf(csv);
    const rounds = ["1", "2", "3", "4"].map((round) =>
      rows.filter((row) => row["round"] === round),
    );
    for (const round of rounds) {
      const landed = round.filter(({ state }) => state === "landed");
      const superseded = round.filter(({ state }) => state === "superseded");
      expect([landed.length, superseded.length]).toEqual([1, 2]);
    }
    // Only the most expensive transaction of a round counts.
    expect(report.budget).toMatchObject({ reservedLamports: 60_000, spentLamports: 60_000 });
    expect(report.verdict.join("\n")).toMatch(/near won \d of 4/);
  });
});

describe("land", () => {
  it("states the cost without a budget, and sends nothing", async () => {
    const { sandbox, args } = await senderSandboxRun();
    const { code, stdout } = await shredwayHere("land", ...args, "--rounds", "10");
    expect(code).toBe(0);
    expect(stdout).toContain("450,000 lamports (0.00045 SOL) in total\n");
    expect(stdout).toContain(
      "dry run: every sender answers, nothing was sent; start it with --budget 450000\n",
    );
    expect(sandbox.submissions).toBe(0);
  });

  it("observes landings through the node, and does not repeat a complete run", {
    timeout: 180_000,
  }, async () => {
    const { folder, args } = await senderSandboxRun();
    const journal = join(folder, "land.journal");
    const all = [...args, "--rounds", "3", "--interval", "50", "--budget", "135000", "--wait", "2"];
    const words = [...all, "--poll", "50"];
    const first = await shredwayHere("land", ...words, "--journal", journal, "--json");
    expect(first.code).toBe(0);
    expect(finalReport(first.stdout)).toMatchObject({ observedBy: "node", resolutionNs: 50e6 });
    const again = await shredwayHere("land", ...words, "--journal", journal);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain(`--journal ${journal}: the file exists`);
    const resumed = await shredwayHere("land", ...words, "--resume", journal);
    expect(resumed.code).toBe(2);
    expect(resumed.stderr).toContain("its run is complete");
  });

  it("stops on Ctrl-C with a report, and continues later", { timeout: 180_000 }, async () => {
    const { sandbox, folder, args } = await senderSandboxRun();
    const journal = join(folder, "land.journal");
    const words = [
      ...args,
      "--rounds",
      "6",
      "--interval",
      "60",
      "--budget",
      "270000",
      "--wait",
      "1",
    ];
    const running = new CommandRun(land, [
      ...words,
      "--poll",
      "50",
      "--journal",
      journal,
      "--json",
    ]);
    await until(() => sandbox.submissions >= 6, "two rounds");
    running.stop();
    expect(await running.code).toBe(0);
    const stopped = running.objects<FinalReport>().at(-1);
    expect(stopped?.final).toBe(true);
    expect(running.stderr).toContain(`continue with the same command and --resume ${journal}`);
    const before = sandbox.submissions;
    const resumed = await shredwayHere(
      "land",
      ...words,
      "--poll",
      "50",
      "--resume",
      journal,
      "--json",
    );
    expect(resumed.code).toBe(0);
    expect(finalReport(resumed.stdout)).toMatchObject({ rounds: { planned: 6, complete: 6 } });
    expect(before).toBeLessThan(18);
    expect(sandbox.submissions).toBe(18);
  });

  it("continues only the same plan on the same chain", { timeout: 180_000 }, async () => {
    const { sandbox, folder, args } = await senderSandboxRun();
    const journal = join(folder, "land.journal");
    const words = [...args, "--rounds", "2", "--interval", "20", "--wait", "1", "--poll", "50"];
    const first = await shredwayHere("land", ...words, "--budget", "90000", "--journal", journal);
    expect(first.code).toBe(0);
    const lines = readFileSync(journal, "utf8").trimEnd().split("\n");
    const unfinished = (name: string, kept: readonly string[]): string => {
      const path = join(folder, name);
      writeFileSync(path, kept.map((line) => `${line}\n`).join(""), { mode: 0o600 });
      return path;
    };
    const open = lines.filter((line) => !line.includes('"kind":"finished"'));
    const before = sandbox.submissions;
    const changed = unfinished("changed", open);
    const other = await shredwayHere("land", ...words, "--budget", "90001", "--resume", changed);
    expect(other.code).toBe(2);
    expect(other.stderr).toContain(
      "--resume: budget differs: the journal has 90000, got 90001; repeat the command of the run unchanged",
    );
    const genesis = unfinished("genesis", [
      open[0]?.replace(/"genesisHash":"\w/, '"genesisHash":"z') ?? "",
      ...open.slice(1),
    ]);
    const elsewhere = await shredwayHere(
      "land",
      ...words,
      "--budget",
      "90000",
      "--resume",
      genesis,
    );
    expect(elsewhere.stderr).toContain("--resume: chain differs");
    const damaged = unfinished("damaged", [...open, "{"]);
    const broken = await shredwayHere("land", ...words, "--budget", "90000", "--resume", damaged);
    expect(broken.code).toBe(1);
    expect(broken.stderr).toContain(`line ${open.length + 1}: expected a JSON object`);
    expect(sandbox.submissions).toBe(before);
    // An incomplete last line was never acted upon.
    appendFileSync(changed, '{"kind":"round","rou');
    const same = await shredwayHere("land", ...words, "--budget", "90000", "--resume", changed);
    expect(same.code).toBe(0);
    expect(same.stdout).toContain("continued after 2 rounds");
    expect(sandbox.submissions).toBe(before);
  });

  it("refuses bad input with a clear error, and sends nothing", { timeout: 180_000 }, async () => {
    const { sandbox, folder, args } = await senderSandboxRun();
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const spare = `spare=${sandbox.senders[0]?.url}`;
    const sender = (words: string) => ["--sender", `${spare} ${words}`];
    const cases: readonly (readonly [readonly string[], string])[] = [
      [["--sender", "near=http://127.0.0.1:1/"], "sender near: duplicate name"],
      [["--sender", "http://127.0.0.1:1/"], "--sender: invalid value"],
      [["--sender", "x=ftp://127.0.0.1/"], 'sender x: invalid URL "ftp://127.0.0.1/"'],
      [["--sender", "x=quic://127.0.0.1"], "expected quic://host:port"],
      [["--sender", "x=quic://127.0.0.1:7000"], "sender x: missing API key"],
      [sender("dialect=smoke"), 'dialect: invalid value "smoke"; expected one of rpc, shredway'],
      [sender("dialect=quic"), "dialect quic: expected a URL of quic, got one of http"],
      [sender("tip=-1"), 'tip: invalid value "-1"'],
      [sender("tip=5"), "tip=5 without an account; expected tip-to=ADDRESS"],
      [sender("tip=5 tip-to=me"), "sender spare: tip-to:"],
      [sender("price=x"), 'price: invalid value "x"'],
      [sender("max-retries=1001"), "expected an integer up to 1000"],
      [sender("tpi=5"), "did you mean"],
      [sender("mev-protect"), "mev-protect is not available with the dialect rpc"],
      [sender("mev-protect=1 dialect=shredway"), "mev-protect: expected no value"],
      [sender("tip=1 tip=2"), "tip is given twice"],
      [sender("header=x"), "expected header=Name:value"],
      [sender("dialect=jito api-key-file=/none"), "cannot read /none"],
      [sender("dialect=jito api-key=a api-key-file=b"), "exclude each other"],
      [["--senders", "/none"], "--senders: cannot read /none"],
      [["--senders", file("senders", "# none\nx=nothing\n")], 'sender x: invalid URL "nothing"'],
      [["--rounds", "0"], "--rounds: invalid value"],
      [["--interval", "0"], "--interval: invalid value"],
      [["--mark", "colour"], '--mark: invalid value "colour"; expected amount or memo'],
      [["--price", "1.5"], '--price: invalid value "1.5"'],
      [["--units", "0"], "--units: invalid value"],
      [["--budget", "much"], '--budget: invalid value "much"'],
      [["--budget", "449999"], "use at most --rounds 9"],
      [["--same-nonce"], "missing option --nonce-account"],
      [["--nonce-account", sandbox.payer.address], "--nonce-account requires --same-nonce"],
      [["--same-nonce", "--nonce-account", "me"], "--nonce-account:"],
      [["--feed", "port"], "--feed feed:"],
      [["--wait", "0"], "--wait: invalid value"],
      [["--poll", "5"], "--poll: invalid value"],
      [["--timeout", "x"], "--timeout: invalid value"],
      [["--journal", "a", "--resume", "b"], "exclude each other"],
      [["--resume", "/none/journal"], "cannot open journal /none/journal"],
      [["--sandbox"], "--sender is not allowed with --sandbox"],
      [["extra"], 'unexpected argument "extra"'],
    ];
    const base = [...args, "--rounds", "10", "--budget", "450000"];
    for (const [changes, message] of cases) {
      const changed = new Set(changes.filter((word) => word.startsWith("--")));
      const kept = base.filter((word, i) => !changed.has(word) && !changed.has(base[i - 1] ?? ""));
      const words = changed.has("--sender") || changed.has("--sandbox") ? base : kept;
      const raised = words.map((word) => (word === "450000" ? "900000000" : word));
      const { code, stderr } = await shredwayHere("land", ...raised, ...changes);
      expect(`${changes.join(" ")}: ${stderr}`).toContain(message);
      expect(code, changes.join(" ")).toBe(2);
    }
    expect(sandbox.submissions).toBe(0);
  });

  it("refuses an unusable payer, nonce, node or sender before it signs anything", {
    timeout: 180_000,
  }, async () => {
    const { sandbox, folder, args } = await senderSandboxRun();
    const run = (...words: readonly string[]) => {
      const changed = new Set(words.filter((word) => word.startsWith("--") && word !== "--sender"));
      const kept = args.filter((word, i) => !changed.has(word) && !changed.has(args[i - 1] ?? ""));
      const money = ["--rounds", "10", "--budget", "90000000000"];
      return shredwayHere("land", ...kept, ...money, "--journal", join(folder, "none"), ...words);
    };
    const poor = join(folder, "poor.json");
    const made = await import("../../../src/platform/solana/key-file.ts");
    made.makeKeyFile(poor);
    expect((await run("--payer", poor)).stderr).toContain("expected a balance of at least");
    expect((await run("--payer", "/none")).stderr).toContain("key file /none: cannot be read");
    const wallet = ["--same-nonce", "--nonce-account", sandbox.payer.address];
    expect((await run(...wallet)).stderr).toContain(`nonce account ${sandbox.payer.address}`);
    expect((await run("--rpc", "ftp://x")).stderr).toContain("--rpc: RPC address: expected a URL");
    expect((await run("--rpc", "http://127.0.0.1:1")).code).toBe(1);
    const silent = await run("--sender", "silent=http://127.0.0.1:1/");
    expect(silent).toMatchObject({ code: 1 });
    expect(silent.stderr).toContain("sender silent: no response from 127.0.0.1:1");
    const unwritable = await run("--csv", "/none/land.csv");
    expect(unwritable.stderr).toContain("cannot write /none/land.csv");
    expect(sandbox.submissions).toBe(0);
    expect(existsSync(join(folder, "none"))).toBe(false);
  });
});
