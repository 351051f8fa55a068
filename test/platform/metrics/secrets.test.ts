// A complete sandbox at log level trace: no line contains a key, a seed, a password or a transaction.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import { openService } from "../../../src/app/open-service.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { messageOf } from "../../../src/core/errors.ts";
import { createLogger } from "../../../src/core/log.ts";
import { openSandbox } from "../../../src/sandbox/open-sandbox.ts";
import { sandboxPace } from "../../../src/sandbox/plan.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** A log at the lowest level, and all other output on standard error. */
function recordOutput() {
  const lines: string[] = [];
  const log = createLogger({ level: "trace", stream: { write: (line) => lines.push(line) } });
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = (chunk: string | Uint8Array): boolean => {
    lines.push(chunk.toString());
    return true;
  };
  closing({
    close: () => {
      process.stderr.write = write;
    },
  });
  return { log, lines };
}

function formsOf(bytes: Uint8Array): string[] {
  const buffer = Buffer.from(bytes);
  const numbers = [...bytes].join(",");
  return [buffer.toString("base64"), buffer.toString("hex"), base58.encode(bytes), numbers];
}

function seedOf(file: string): Uint8Array {
  const numbers: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!Array.isArray(numbers) || numbers.length !== 64) throw new Error("expected a key pair");
  return Uint8Array.from(numbers.slice(0, 32).map(Number));
}

describe("the log", () => {
  it("contains no secret of a session with traffic and faults", async () => {
    const data = temporaryFolder();
    const { log, lines } = recordOutput();
    const sandbox = closing(
      await openSandbox({
        udp: "127.0.0.1:0",
        rpc: "127.0.0.1:0",
        http: "127.0.0.1:0",
        data,
        log,
        clock: systemClock,
      }),
    );
    const wires: Uint8Array[] = [];
    sandbox.chain.subscribe((event) => {
      if (event.kind === "executed") wires.push(event.transaction.wire);
    });
    await sandbox.start();
    const url = sandbox.gatewayUrl;
    const apiKey = new URL(url).searchParams.get("api-key") ?? "";
    expect(apiKey).toMatch(/^sw_/);
    await until(() => sandbox.gateway.snapshot().submissions.ends.landed > 0n, "a landing");
    const [wire = new Uint8Array(1)] = wires;
    const wrong = `sw_${"1".repeat(44)}`;
    const call = (method: string, params: readonly unknown[], to = url) =>
      fetch(to, {
        method: "POST",
        headers: { authorization: `Bearer ${to === url ? apiKey : wrong}` },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      }).then((response) => response.text());
    const text = Buffer.from(wire).toString("base64");
    for (const method of ["sendTransaction", "sendBundle", "sendAlt", "simulateTransaction"]) {
      const given =
        method === "sendBundle" ? [[text]] : [text, { encoding: "base64", enableFallback: true }];
      await call(method, given);
    }
    await call("getNonce", []);
    await call("getTipAccounts", [], `${new URL(url).origin}/relay`);
    await fetch(url.replace("/relay?", "/shred-pay?"), { method: "POST", body: `[${text}]` });
    // All dependencies of the gateway fail, because the resulting log lines name them.
    sandbox.partners.close();
    sandbox.endpoint.close();
    await call("getSlot", []);
    await call("sendTransaction", [text, { encoding: "base64" }]);
    sandbox.service.reload();
    await until(() => lines.length > 0, "a line");

    const all = lines.join("\n");
    const secrets = [
      [apiKey],
      [wrong],
      ...["nonce-funding.json", "identity.json"].map((name) => formsOf(seedOf(join(data, name)))),
      [sandboxPace.seed.toString().repeat(4)],
      ...wires.map(formsOf),
    ];
    expect(wires.length).toBeGreaterThan(3);
    for (const secret of secrets.flat()) {
      const at = all.indexOf(secret);
      expect(at < 0 ? "" : all.slice(Math.max(0, at - 100), at)).toBe("");
    }
    expect(lines.filter((line) => line.startsWith("{")).length).toBeGreaterThan(3);
    // Verifies this test.
    log.info(`a line with ${text}`);
    expect(lines.join("\n")).toContain(formsOf(wire)[0]);
  });

  it("contains no password of an unreachable database", async () => {
    const directory = temporaryFolder();
    const { log, lines } = recordOutput();
    const password = "Pa55-of-the-database";
    const config = completeConfig({
      relay: {
        listen: "127.0.0.1:0",
        shredVersion: 1,
        authentication: "off",
        receive: { bufferBytes: 65_536 },
      },
      http: { listen: "127.0.0.1:0", webSocketListen: [] },
      tips: { addresses: ["11111111111111111111111111111112"] },
      data: { directory, postgres: `postgres://shredway:${password}@127.0.0.1:1/shredway` },
    });
    const parts = { config, readConfig: () => config, prefault: false, log, clock: systemClock };
    const said = await openService(parts).then(
      () => "opened",
      (error: unknown) => `${messageOf(error)} ${error instanceof Error ? error.stack : ""}`,
    );
    expect(said).toContain("127.0.0.1:1");
    expect(`${said} ${lines.join("\n")}`).not.toContain(password);
  });
});
