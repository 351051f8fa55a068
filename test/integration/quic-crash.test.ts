// kill -9 of the QUIC ingress and of the service during a flood of submissions: each acknowledged transaction lands once.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { stringify } from "yaml";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { closing } from "../support/closing.ts";
import { freePort } from "../support/network/free-ports.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { Shredway, shredway } from "../support/processes/shredway.ts";
import { ingressPids } from "../support/quic/ingress-pids.ts";
import { describeQuic } from "../support/quic/quic-server.ts";
import { expectEachLandedOnce, SandboxCustomer } from "../support/quic/sandbox-customer.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const customers = 4;
/** A client that gets no packets for so long connects again. */
const idleTimeoutMs = 5000;
const killRounds = 3;

interface Target {
  readonly address: string;
  readonly key: string;
  readonly idleTimeoutMs: number;
}

/** Customers that submit until the signal aborts, and connect again whenever their connection has ended. */
class Flood {
  readonly #sandbox: Sandbox;
  readonly #target: Target;
  readonly #all: SandboxCustomer[] = [];

  constructor(sandbox: Sandbox, target: Target) {
    this.#sandbox = sandbox;
    this.#target = target;
  }

  get acknowledged(): Set<string> {
    return new Set(this.#all.flatMap((each) => [...each.acknowledged]));
  }

  /** Rejected submissions by reason. */
  get refusals(): Set<string> {
    const bodies = this.#all.flatMap(({ refused }) => refused.map(({ body }) => body));
    return new Set(bodies.map((body) => body.split(":")[0] ?? ""));
  }

  async run(over: AbortSignal): Promise<void> {
    await Promise.all(Array.from({ length: customers }, () => this.#submit(over)));
  }

  async #submit(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const customer = await SandboxCustomer.connect(this.#sandbox, this.#target);
      this.#all.push(customer);
      const { client } = customer;
      const closed = new AbortController();
      const ended = client.ended.then(() => closed.abort());
      // A killed process answers no request; its successor, or the idle time, ends the connection.
      while (!closed.signal.aborted && !over.aborted) {
        await Promise.race([customer.submit(), ended]);
      }
      await client.close();
    }
  }
}

function writeConfig(sandbox: Sandbox, folder: string, ports: { http: number; quic: number }) {
  const file = join(folder, "shredway.yaml");
  const config = {
    solana: { rpc: `http://${sandbox.endpoint.address}` },
    http: { listen: `127.0.0.1:${ports.http}`, webSocketListen: [] },
    quic: {
      listen: `127.0.0.1:${ports.quic}`,
      protectedListen: [],
      handshakesPerMinute: 10_000,
    },
    data: { directory: "data" },
    tips: { addresses: [...sandbox.partners.tipAddresses] },
    gateway: { requestsPerSecond: 100_000, burst: 100_000 },
    routes: sandbox.partners.routeConfigs(),
    relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: "off" },
  };
  writeFileSync(file, stringify(config));
  return file;
}

async function startService(file: string): Promise<Shredway> {
  const program = Shredway.run("start", "--config", file);
  closing({ close: () => program.kill() });
  await program.printed(/^ready /m);
  return program;
}

describeQuic("a kill during a flood", { timeout: 300_000 }, () => {
  it("of the process of the connections loses nothing acknowledged", async () => {
    const sandbox = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0" });
    const key = new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "";
    const flood = new Flood(sandbox, {
      address: sandbox.quicAddresses[0] ?? "",
      key,
      idleTimeoutMs,
    });
    const over = new AbortController();
    const running = flood.run(over.signal);
    for (let round = 0; round < killRounds; round++) {
      const enough = flood.acknowledged.size + 20 + 7 * round;
      await until(() => flood.acknowledged.size > enough, "acknowledgements", 100_000);
      const [pid] = ingressPids(process.pid);
      expect(pid).toBeDefined();
      process.kill(pid ?? 0, "SIGKILL");
      await until(() => ingressPids(process.pid).some((one) => one !== pid), "another process");
    }
    const enough = flood.acknowledged.size + 20;
    await until(() => flood.acknowledged.size > enough, "further acknowledgements", 100_000);
    over.abort();
    await running;
    expect([...flood.refusals]).toEqual([]);
    await expectEachLandedOnce(sandbox.gatewayUrl, flood.acknowledged);
  });

  it("of the service loses nothing acknowledged, and leaves no process at its ports", async () => {
    const sandbox = await runningSandbox();
    const folder = temporaryFolder();
    const ports = { http: await freePort(), quic: await freePort() };
    const file = writeConfig(sandbox, folder, ports);
    const words = ["keys", "create", "--account", "crash", "--config", file, "--json"];
    const { key }: { key: string } = JSON.parse((await shredway(...words)).stdout);
    const flood = new Flood(sandbox, {
      address: `127.0.0.1:${ports.quic}`,
      key,
      idleTimeoutMs,
    });
    const over = new AbortController();
    let service = await startService(file);
    const running = flood.run(over.signal);
    for (let round = 0; round < killRounds; round++) {
      const enough = flood.acknowledged.size + 20 + 7 * round;
      await until(() => flood.acknowledged.size > enough, "acknowledgements", 100_000);
      const [pid = 0] = ingressPids(service.pid);
      await service.kill();
      await until(() => !isRunning(pid), "the end of the process of the connections");
      service = await startService(file);
    }
    over.abort();
    await running;
    const url = `http://127.0.0.1:${ports.http}/relay?api-key=${key}`;
    await expectEachLandedOnce(url, flood.acknowledged);
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
