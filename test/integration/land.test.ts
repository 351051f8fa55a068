// `shredway land` with the whole sandbox: its gateway over HTTP and QUIC, and its node, one against another.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SandboxKeyPair } from "../../src/sandbox/chain/keys.ts";
import { sandboxPace } from "../../src/sandbox/plan.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { shredwayHere } from "../support/processes/shredway.ts";
import { describeQuic } from "../support/quic/quic-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describeQuic("shredway land", () => {
  it("lands through the gateway by HTTP and QUIC, and through a node", {
    timeout: 180_000,
  }, async () => {
    const folder = temporaryFolder();
    const sandbox = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0" });
    const { seed, publicKey } = SandboxKeyPair.named(sandboxPace.seed, "customer");
    const payer = join(folder, "payer.json");
    writeFileSync(payer, JSON.stringify([...seed, ...publicKey]), { mode: 0o600 });
    const node = `http://${sandbox.endpoint.address}`;
    const key = new URL(sandbox.gatewayUrl).searchParams.get("api-key");
    const tip = `tip=10001 tip-to=${SandboxKeyPair.named(sandboxPace.seed, "tip account 0").address}`;
    const senders = [
      `http=${sandbox.gatewayUrl} dialect=shredway tip=10001`,
      `quic=quic://${sandbox.quicAddresses[0]} api-key=${key} fingerprint=${sandbox.quicFingerprint} ${tip}`,
      `node=${node}`,
    ].flatMap((sender) => ["--sender", sender]);
    const words = ["--rounds", "3", "--interval", "100", "--budget", "120000", "--wait", "30"];
    const files = ["--journal", join(folder, "journal"), "--csv", join(folder, "land.csv")];
    const base = ["--rpc", node, "--payer", payer, "--poll", "100", "--json"];
    const run = await shredwayHere("land", ...senders, ...base, ...words, ...files);
    expect({ code: run.code, stderr: run.stderr.match(/failed|error/i) }).toEqual({
      code: 0,
      stderr: null,
    });
    const report = JSON.parse(run.stdout.trimEnd().split("\n").at(-1) ?? "");
    expect(report.senders).toMatchObject([
      { name: "http", dialect: "shredway", landed: 3, responseNs: { count: 3 }, drops: {} },
      { name: "quic", dialect: "quic", landed: 3, responseNs: { count: 3 }, drops: {} },
      { name: "node", dialect: "rpc", landed: 3, responseNs: { count: 3 }, drops: {} },
    ]);
    expect(report.budget.spentLamports).toBe(3 * (3 * 5000 + 2 * 10_001));
    expect(run.stdout + run.stderr).not.toContain(key);
  });
});
