// `shredway send` against a real gateway: every form of input, HTTP and QUIC, errors and exit codes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { base58 } from "@scure/base";
import { describe, expect, it, vi } from "vitest";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { freeUdpPort } from "../../support/network/free-ports.ts";
import { programWords, shredwayHere } from "../../support/processes/shredway.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { tipping, tippingV0 } from "../../support/transactions/tipping.ts";

const wires = [tipping(), tippingV0({ amount: 2n }), tippingV0({ amount: 3n })];
const signatures = wires.map((wire) => base58.encode(wire.subarray(1, 65)));
const texts = wires.map((wire) => Buffer.from(wire).toString("base64"));
const accepted = (signature = ""): RegExp =>
  new RegExp(`^${signature}  accepted in [\\d.]+ (µs|ms|s)$`, "m");

function fileWith(content: string | Uint8Array, name = "transaction"): string {
  const path = join(temporaryFolder(), name);
  writeFileSync(path, content);
  return path;
}

async function withInput(input: string | Uint8Array, ...args: readonly string[]) {
  const child = spawn(process.execPath, [...programWords, ...args]);
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { stdout, stderr, code: Number(code) };
}

describe("shredway send", () => {
  it("sends arguments and files, raw and as text, in their order", async () => {
    const run = await GatewayRun.open();
    const raw = fileWith(wires[1] ?? "");
    const lines = fileWith(`${base58.encode(wires[2] ?? new Uint8Array())}\n`);
    const args = ["--file", raw, "--file", lines, "--url", run.url()];
    const { code, stdout, stderr } = await shredwayHere("send", texts[0] ?? "", ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const printed = stdout.trimEnd().split("\n");
    expect(printed.map((line, i) => accepted(signatures[i]).test(line))).toEqual([
      true,
      true,
      true,
    ]);
    expect(run.submitted.map(({ method }) => method)).toEqual(Array(3).fill("sendTransaction"));
  });

  it("reads standard input", async () => {
    const run = await GatewayRun.open();
    const piped = await withInput(texts.slice(0, 2).join("\n"), "send", "--url", run.url());
    expect(piped).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(accepted(signatures[1])),
    });
    const raw = await withInput(wires[2] ?? "", "send", "-", "--url", run.url(), "--json");
    expect(JSON.parse(raw.stdout)).toEqual({
      transaction: "standard input",
      signature: signatures[2],
      responseMs: expect.any(Number),
      error: null,
    });
  });

  it("sends a bundle", async () => {
    const run = await GatewayRun.open();
    const { stdout } = await shredwayHere("send", ...texts, "--bundle", "--url", run.url());
    expect(stdout.match(/accepted/g)?.length).toBe(3);
    expect(run.submitted).toMatchObject([{ method: "sendBundle", isBundle: true }]);
    const five = await shredwayHere("send", ...texts, ...texts, "--bundle", "--url", run.url());
    expect(five.code).toBe(2);
    expect(five.stderr).toContain("--bundle: expected at most 4 transactions, got 6");
  });

  it("prints errors with reason, code and time, and continues", async () => {
    const run = await GatewayRun.open();
    const low = Buffer.from(tipping({ tip: 1n })).toString("base64");
    const args = [low, texts[0] ?? "", "--url", run.url()];
    const { code, stdout, stderr } = await shredwayHere("send", ...args);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^shredway send: argument 1: tip_too_low: .* \(code -32602, after [\d.]+ (µs|ms|s)\)$/m,
    );
    expect(stdout).toMatch(accepted(signatures[0]));
    const json = await shredwayHere("send", ...args, "--json");
    expect(JSON.parse(json.stdout.split("\n")[0] ?? "")).toMatchObject({
      signature: null,
      error: { reason: "tip_too_low", code: -32602, httpStatus: 200 },
    });
  });

  it("takes URL and key from variables, a file, or the sandbox's folder", async () => {
    const run = await GatewayRun.open();
    const { origin } = new URL(run.url());
    const missing = await shredwayHere("send", texts[0] ?? "", "--url", "https://gateway.example");
    expect(missing.code).toBe(2);
    expect(missing.stderr).toContain("missing API key; expected --api-key-file FILE");
    vi.stubEnv("SHREDWAY_URL", origin);
    vi.stubEnv("SHREDWAY_API_KEY", "good");
    expect(await shredwayHere("send", texts[0] ?? "")).toMatchObject({ code: 0 });
    vi.unstubAllEnvs();
    const file = fileWith("good\n");
    const args = ["--url", origin, "--api-key-file", file];
    expect(await shredwayHere("send", texts[1] ?? "", ...args)).toMatchObject({ code: 0 });
    const folder = temporaryFolder();
    mkdirSync(join(folder, "data"));
    writeFileSync(join(folder, "data", "sandbox.key"), "good\n");
    const child = spawn(
      process.execPath,
      [...programWords, "send", texts[2] ?? "", "--url", origin],
      {
        cwd: folder,
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    expect(await text(child.stdout)).toMatch(accepted(signatures[2]));
  });

  it.each([
    [["x.bin", "--url", "nowhere"], '--url: invalid value "nowhere"; expected http://host:port'],
    [["--file", "/does/not/exist"], "--file: cannot read /does/not/exist"],
    [["AA==", "--fingerprint", "5F"], "--fingerprint requires --quic"],
    [
      ["AA==", "--quic", "--fingerprint", "5F"],
      '--fingerprint: invalid value "5F"; expected SHA-256',
    ],
    [["AA==", "--timeout", "0"], '--timeout: invalid value "0"; expected a number above 0'],
  ])("rejects wrong usage: %j", async (words, message) => {
    const { code, stderr } = await shredwayHere("send", ...words, "--api-key", "good");
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it("sends nothing if the gateway is not reachable", async () => {
    const url = `http://127.0.0.1:${await freeUdpPort()}`;
    const args = ["send", texts[0] ?? "", "--url", url, "--api-key", "good"];
    const { code, stdout, stderr } = await shredwayHere(...args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^shredway send: nothing was sent: unreachable: .*127\.0\.0\.1/);
  });
});

describeQuic("shredway send --quic", () => {
  async function quicArguments(): Promise<{ run: IngressRun; words: string[] }> {
    const run = await IngressRun.open();
    return { run, words: ["--quic-address", run.address(), "--api-key", "good"] };
  }

  it("sends transactions and bundles", async () => {
    const { run, words } = await quicArguments();
    const { code, stdout, stderr } = await shredwayHere("send", ...texts.slice(0, 2), ...words);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(accepted(signatures[1]));
    const bundle = await shredwayHere(
      "send",
      texts[2] ?? "",
      "--bundle",
      "--mev-protect",
      ...words,
    );
    expect(bundle.stdout).toMatch(accepted(signatures[2]));
    expect(run.gateway.submitted).toMatchObject([
      { method: "sendTransaction", ingress: "quic" },
      { method: "sendTransaction", ingress: "quic" },
      { method: "sendBundle", ingress: "quic", options: { mevProtect: true } },
    ]);
  });

  it("reports rejections, an invalid key and another certificate", async () => {
    const { words } = await quicArguments();
    const low = Buffer.from(tipping({ tip: 1n })).toString("base64");
    const rejected = await shredwayHere("send", low, ...words);
    expect(rejected.code).toBe(1);
    expect(rejected.stderr).toMatch(/tip_too_low: .* \(code -32602, after /);
    const invalid = await shredwayHere("send", texts[0] ?? "", ...words.slice(0, 3), "bad");
    expect(invalid.code).toBe(1);
    expect(invalid.stderr).toMatch(/unauthorized: .*invalid API key/);
    const pinned = ["--fingerprint", "00".repeat(32)];
    const other = await shredwayHere("send", texts[0] ?? "", ...words, ...pinned);
    expect(other.code).toBe(1);
    expect(other.stderr).toMatch(
      /nothing was sent: certificate_untrusted: .*got ([0-9A-F]{2}:){31}.*pass it as --fingerprint\n/,
    );
  });
});

describe("shredway send --wait", () => {
  it("prints the final state, and fails unless the transaction landed", async () => {
    const run = await GatewayRun.open();
    for (const [i, state] of (["landed", "expired"] as const).entries()) {
      const signature = signatures[i] ?? "";
      run.statuses.set(`a_1 ${signature}`, {
        signature,
        state,
        method: "sendTransaction",
        bundleId: null,
        receivedNs: 0n,
        slot: state === "landed" ? 123n : null,
        reason: null,
        err: null,
        events: [],
      });
    }
    const first = await shredwayHere("send", texts[0] ?? "", "--wait", "--url", run.url());
    expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/, landed in slot 123/) });
    const args = [texts[1] ?? "", "--wait", "--json", "--url", run.url()];
    const second = await shredwayHere("send", ...args);
    expect(second.code).toBe(1);
    expect(JSON.parse(second.stdout)).toMatchObject({ signature: signatures[1], state: "expired" });
  });
});
