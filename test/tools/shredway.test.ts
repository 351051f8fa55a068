// The command line as a user runs it: help, invalid usage, exit codes.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commands } from "../../src/tools/commands.ts";
import { closing } from "../support/closing.ts";
import { until } from "../support/network/udp-receiver.ts";
import { programWords, Shredway, shredwayHere } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("shredway", () => {
  it("prints its help", async () => {
    for (const args of [[], ["--help"], ["-h"], ["help"]]) {
      const { code, stdout, stderr } = await shredwayHere(...args);
      expect(code).toBe(0);
      expect(stderr).toBe("");
      for (const name of ["start", "replay", "listen", "race", "doctor"])
        expect(stdout).toContain(name);
    }
  });

  it("prints its version", async () => {
    const { version }: { version: string } = JSON.parse(readFileSync("package.json", "utf8"));
    expect(await shredwayHere("--version")).toEqual({
      code: 0,
      stdout: `${version}\n`,
      stderr: "",
    });
  });

  it.each(["start", "replay", "listen", "race", "doctor"])(
    "prints the help of %s",
    async (name) => {
      const { code, stdout } = await shredwayHere(name, "--help");
      expect(code).toBe(0);
      expect(stdout).toContain(`Usage: shredway ${name}`);
      expect(stdout).toContain("Examples:");
    },
  );

  it("lists every option of the sandbox in the synopsis, and explains port 0", async () => {
    const { stdout } = await shredwayHere("start", "--help");
    const [synopsis = ""] = stdout.split("\n\n");
    for (const name of ["http", "udp", "quic", "streams", "rpc", "shredstream", "data"])
      expect(synopsis).toContain(`[--${name} `);
    expect(stdout.replaceAll(/\s+/g, " ")).toMatch(
      /--http ADDRESS .*with port 0 only one listener/,
    );
  });

  it.each([
    [["strat"], `unknown command "strat"; expected one of ${Object.keys(commands).join(", ")}`],
    [["toString"], 'unknown command "toString"'],
    [["strat"], "; did you mean shredway start?"],
    [["keys", "creat"], "; did you mean shredway keys create?"],
    [["start", "--confg", "x"], "; did you mean --config?"],
    [
      ["doctor", "--bogus"],
      "shredway doctor: unknown option --bogus; expected one of --config, --json, --apply, --revert, --help",
    ],
    [["doctor", "extra"], 'shredway doctor: unexpected argument "extra"'],
    [["listen"], "missing option --port"],
    [
      ["keys", "revoke", "--data", "x"],
      "shredway keys: revoke: missing id of a key; for example shredway keys revoke k_",
    ],
    [
      ["keys", "create", "--account"],
      "shredway keys: --account: missing value; for example --account trading\n",
    ],
    [
      ["listen", "--port", "1", "--record", "--json"],
      'shredway listen: --record: missing value; for example --record feed.pcap; a value that begins with "-" ' +
        'follows "=": --record=VALUE\n',
    ],
    [["doctor", "--json=yes"], "shredway doctor: --json: unexpected value; expected --json only\n"],
    [
      ["listen", "--port", "70000"],
      '--port: invalid value "70000"; expected an integer from 0 to 65535',
    ],
    [
      ["listen", "--port", "0", "--bind", "localhost"],
      '--bind: invalid value "localhost"; expected an IP address',
    ],
    [["replay", "--to", "127.0.0.1:9"], "missing capture FILE; expected at least one"],
    [["replay", "x.pcap"], "missing option --to"],
    [
      ["replay", "x.pcap", "--to", "nowhere"],
      '--to: invalid value "nowhere"; expected an address and port',
    ],
    [
      ["replay", "x", "--to", "127.0.0.1:9", "--rate", "1", "--speed", "1"],
      "at most one of --rate, --speed",
    ],
    [
      ["replay", "x", "--to", "127.0.0.1:9", "--drop", "2"],
      '--drop: invalid value "2"; expected a share from 0 to 1',
    ],
    [["replay", "x", "--to", "255.255.255.255:9"], "255.255.255.255:9 is a broadcast address"],
    [["listen", "--port", "-1"], '--port: invalid value "-1"; expected an integer from 0 to 65535'],
    [["listen", "--port", "1", "--port", "2"], "--port is given more than once; expected once"],
    [["start", "--udp", "20000"], '--udp: invalid value "20000"; expected an address and port'],
    [["start", "--shredstream", "[::1]:0"], "--shredstream: [::1]:0 is not an IPv4 address"],
    [["start", "--stats", "5"], "--stats requires --config FILE"],
    [["start", "--print-config"], "--print-config requires --config FILE"],
    [["start", "--config", "x", "--udp", "127.0.0.1:1"], "--udp is not allowed with --config"],
    [
      ["start", "--config", "x", "--shredstream", "127.0.0.1:1"],
      "--shredstream is not allowed with --config",
    ],
  ])("refuses %j with exit code 2 and reports the expected value", async (args, message) => {
    const { code, stdout, stderr } = await shredwayHere(...args);
    expect(stderr).toContain(message);
    expect(stderr).toContain("--help");
    expect(stdout).toBe("");
    expect(code).toBe(2);
  });

  it("fails with exit code 1 and one clear line for missing files", async () => {
    for (const args of [
      ["replay", "/nonexistent.pcap", "--to", "127.0.0.1:9"],
      ["listen", "--port", "0", "--leaders", "/nonexistent.json"],
      ["start", "--config", "/nonexistent.yaml"],
    ]) {
      const { code, stderr, stdout } = await shredwayHere(...args);
      expect(stderr + stdout).toMatch(/\/nonexistent\.\w+: cannot be read/);
      expect(stderr).not.toContain("    at ");
      expect(code).toBe(1);
    }
  });
});

describe("an impossible data folder", () => {
  // As a child: Node 20's recursive mkdir would never return.
  it("ends the start with its name and the repair", async () => {
    const config = join(temporaryFolder(), "shredway.yaml");
    writeFileSync(
      config,
      `relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: off }
http: { listen: "127.0.0.1:0" }
tips: { addresses: [ "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM" ] }
data: { directory: /proc/shredway/below }
`,
    );
    const start = Shredway.run("start", "--config", config);
    closing({ close: () => start.kill() });
    const { code, stderr } = await start.end();
    expect(stderr).toMatch(
      /data\.directory: cannot create \/proc\/shredway\/below: ENOENT: .*; choose a folder on a writable file system/,
    );
    expect(code).toBe(1);
  }, 60_000);
});

describe("a full output device", () => {
  it("is reported in one line", () => {
    const full = openSync("/dev/full", "w");
    try {
      const { status, stderr } = spawnSync(process.execPath, [...programWords, "--help"], {
        stdio: ["ignore", full, "pipe"],
        encoding: "utf8",
      });
      expect(stderr).toMatch(/^shredway: cannot write to standard output: .*ENOSPC.*\n$/);
      expect(status).toBe(1);
    } finally {
      closeSync(full);
    }
  });

  it("does not end a service", async () => {
    const folder = temporaryFolder();
    const config = join(folder, "shredway.yaml");
    writeFileSync(
      config,
      `relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: off, receive: { bufferBytes: 65536 } }
data: { directory: ${folder}/data }
`,
    );
    const full = openSync("/dev/full", "w");
    const words = [...programWords, "start", "--config", config, "--stats", "0"];
    const service = spawn(process.execPath, words, { stdio: ["ignore", full, "pipe"] });
    closing({ close: () => void service.kill("SIGKILL") });
    closeSync(full);
    const ended = once(service, "exit");
    let log = "";
    service.stderr?.on("data", (text: Buffer) => {
      log += text.toString();
    });
    const isReported = () => /cannot write to standard output: .*; the service goes on/.test(log);
    await until(() => isReported() || service.exitCode !== null, "the message");
    service.kill("SIGTERM");
    expect([isReported(), await ended]).toEqual([true, [0, null]]);
  }, 60_000);
});

describe("shredway doctor", () => {
  it("prints findings for people and for programs", async () => {
    const text = await shredwayHere("doctor");
    expect(text.stdout).toMatch(/receive-buffer/);
    expect(text.stdout).toMatch(/\d+ ok, \d+ to improve, \d+ to fix/);
    const { code, stdout } = await shredwayHere("doctor", "--json");
    const report: { ok: number; warn: number; fail: number; findings: unknown[] } =
      JSON.parse(stdout);
    expect(report.findings.length).toBe(report.ok + report.warn + report.fail);
    expect(code).toBe(report.fail > 0 ? 1 : 0);
    expect(text.code).toBe(code);
  });

  it("fails for a refused configuration and reports the line", async () => {
    const { code, stdout } = await shredwayHere("doctor", "--config", "package.json");
    expect(stdout).toContain("package.json:");
    expect(code).toBe(1);
  });
});
