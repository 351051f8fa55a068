// npm run soak:quic: many transactions over QUIC, and the final state of each acknowledged one.
//
// The compiled service runs as its own process, with the sandbox's cluster in another one. The native load
// generator (quic_load.cc) submits one piece of signed transactions after the other. The exit code is 1 if an
// acknowledged transaction is unknown to the service or has no final state.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ShredwayClient } from "../../src/client/index.ts";
import { parseEndpoint } from "../../src/core/addresses/addresses.ts";
import { systemClock } from "../../src/core/clock.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { encodeBase58 } from "../../src/relay/data-plane/base58.ts";
import { QuicLoad, quicLoadProblem } from "../load/quic-load.ts";
import { Cluster } from "./cluster.ts";
import { Ledger } from "./ledger.ts";
import { Service } from "./service.ts";
import { Transactions } from "./transactions.ts";

const usage = `npm run soak:quic -- [options]
  --transactions N  number of transactions (default 100000)
  --rate N          transactions per second (default 1000)
  --minutes N       maximum duration of the load (default 60)
  --program FILE    compiled command line (default dist/tools/shredway.js)`;

const connections = 4;
const pieceSeconds = 5;
const progressMs = 30_000;
/** Time for the last ends: a transaction expires within about a minute. */
const endMsMax = 240_000;
const callMs = 60_000;
const signatureAt = 1;
const signatureBytes = 64;
const defaultProgram = fileURLToPath(new URL("../../dist/tools/shredway.js", import.meta.url));

interface Options {
  readonly transactions: number;
  readonly rate: number;
  readonly minutes: number;
  readonly program: string;
}

function readOptions(): Options | null {
  const { values } = parseArgs({
    options: {
      transactions: { type: "string", default: "100000" },
      rate: { type: "string", default: "1000" },
      minutes: { type: "string", default: "60" },
      program: { type: "string", default: defaultProgram },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return null;
  const positive = (name: "transactions" | "rate" | "minutes"): number => {
    const value = Number(values[name]);
    if (value > 0 && Number.isFinite(value)) return value;
    throw new Error(`--${name}: expected a number above 0, got ${values[name]}`);
  };
  if (!existsSync(values.program)) {
    throw new Error(`--program: no file ${values.program}; run npm run compile`);
  }
  const problem = quicLoadProblem();
  if (problem !== null) throw new Error(`the load generator cannot be built: ${problem}`);
  return {
    transactions: positive("transactions"),
    rate: positive("rate"),
    minutes: positive("minutes"),
    program: values.program,
  };
}

class QuicSoak {
  readonly ledger = new Ledger();
  sent = 0;
  /** Submissions by status; 0: no answer. */
  readonly statuses = new Map<number, number>();
  readonly #options: Options;
  readonly #folder: string;
  readonly #service: Service;
  readonly #load: QuicLoad;
  readonly #node: RpcClient;
  readonly #client: ShredwayClient;
  readonly #transactions: Transactions;

  constructor(options: Options, folder: string, cluster: Cluster, service: Service) {
    this.#options = options;
    this.#folder = folder;
    this.#service = service;
    this.#load = QuicLoad.open(folder, service.apiKey);
    this.#node = new RpcClient(cluster.ready.rpcUrl, callMs);
    const { url, apiKey } = service;
    this.#client = new ShredwayClient({ url: `${url}/relay`, apiKey, timeoutMs: callMs });
    this.#transactions = new Transactions(cluster.ready.tipAddresses);
  }

  /** Submits one piece after the other, while the ends of the earlier ones are looked up. */
  async run(): Promise<void> {
    const { transactions, minutes } = this.#options;
    const over = new AbortController();
    const settling = this.#settleUntil(over.signal);
    const endMs = performance.now() + minutes * 60_000;
    try {
      while (this.sent < transactions && performance.now() < endMs) await this.#submitPiece();
    } finally {
      over.abort();
      await settling;
    }
  }

  /** Waits for the ends of everything that was acknowledged. */
  async awaitEnds(): Promise<void> {
    const endMs = performance.now() + endMsMax;
    while (this.ledger.open > 0 && performance.now() < endMs) {
      await this.#settle();
      await systemClock.sleep(200);
    }
  }

  close(): void {
    this.#load.close();
  }

  progress(): string {
    const { acknowledged, open, ends, unknown } = this.ledger;
    const list = (counts: ReadonlyMap<string | number, number>) =>
      [...counts].map(([name, count]) => `${name} ${count}`).join(", ");
    return (
      `${this.sent} sent (status ${list(this.statuses)}), ${acknowledged} acknowledged, ` +
      `ends: ${list(ends)}, ${open} open, ${unknown.length} unknown`
    );
  }

  async #submitPiece(): Promise<void> {
    const { rate, transactions } = this.#options;
    const count = Math.min(Math.ceil(rate * pieceSeconds), transactions - this.sent);
    this.#transactions.blockhash = await this.#node.latestBlockhash();
    const wires = Array.from({ length: count }, () => this.#transactions.tip());
    const file = join(this.#folder, "piece");
    writeFileSync(file, wires.map((wire) => Buffer.from(wire).toString("base64")).join("\n"));
    await this.#load.load({
      port: parseEndpoint(this.#service.quicAddress).port,
      connections,
      seconds: 4 * pieceSeconds,
      ratePerSecond: rate,
      file,
      pids: [],
    });
    const statusFile = join(this.#folder, "statuses");
    await this.#load.statuses(statusFile);
    const statuses = readFileSync(statusFile, "utf8").trim().split("\n").map(Number);
    for (const status of statuses) this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    this.ledger.add(
      wires
        .filter((_, i) => statuses[i] === 200)
        .map((wire) => encodeBase58(wire.subarray(signatureAt, signatureAt + signatureBytes))),
    );
    this.sent += count;
  }

  async #settleUntil(over: AbortSignal): Promise<void> {
    let nextMs = performance.now() + progressMs;
    while (!over.aborted) {
      await this.#settle();
      await systemClock.sleep(50, over);
      if (performance.now() < nextMs) continue;
      nextMs = performance.now() + progressMs;
      console.error(this.progress());
    }
  }

  async #settle(): Promise<void> {
    const due = this.ledger.due();
    if (due.length === 0) return;
    const statuses = await this.#client.getTransactionStatus(due);
    for (const [i, signature] of due.entries()) this.ledger.note(signature, statuses[i] ?? null);
  }
}

async function soak(options: Options): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "shredway-soak-"));
  const cluster = await Cluster.open(folder);
  let service: Service | undefined;
  let run: QuicSoak | undefined;
  try {
    const { program } = options;
    const fixed = { destinations: [], postgres: undefined, clockJumps: false, hasQuic: true };
    service = await Service.start({ folder, program, cluster: cluster.ready, ...fixed });
    await cluster.do({ do: "feed", to: service.relayAddress });
    run = new QuicSoak(options, folder, cluster, service);
    const beginMs = performance.now();
    await run.run();
    const seconds = Math.round((performance.now() - beginMs) / 1000);
    await run.awaitEnds();
    console.log(`QUIC soak, ${seconds} s: ${run.progress()}`);
    const { open, unknown, acknowledged } = run.ledger;
    return open === 0 && unknown.length === 0 && acknowledged > 0;
  } finally {
    run?.close();
    await service?.stop();
    service?.removeDisk();
    cluster.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

try {
  const options = readOptions();
  if (options === null) console.log(usage);
  else {
    const isPassed = await soak(options);
    console.log(`Result: ${isPassed ? "passed" : "FAILED"}`);
    process.exitCode = isPassed ? 0 : 1;
  }
} catch (error) {
  console.error(`soak:quic: ${error instanceof Error ? error.message : String(error)}\n${usage}`);
  process.exitCode = 1;
}
process.exit();
