// The real service is killed with SIGKILL during submissions, registrations and tier changes: nothing
// acknowledged is lost, and nothing counts twice. On PostgreSQL, every second round kills the database
// server in the same moment.
//
// SHREDWAY_KILL_ROUNDS=200 for a long run, which prints its totals after each round.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Keypair, SystemProgram, Transaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "../../src/core/clock.ts";
import { isObject } from "../../src/core/values.ts";
import { keyRandomBytes } from "../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../src/gateway/accounts/create-key.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { Store } from "../../src/platform/store/store.ts";
import { silent } from "../platform/store/files.ts";
import { closing } from "../support/closing.ts";
import { freePort } from "../support/network/free-ports.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";
import { Shredway } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const given = process.env["SHREDWAY_KILL_ROUNDS"];
const rounds = Number(given ?? 2);
const tips = Keypair.generate().publicKey;
const shredTips = Keypair.generate().publicKey;
const blockhash = Keypair.generate().publicKey.toBase58();
/** Four tips reach tier-1, ten reach tier-2. */
const tipLamports = 50_000_000;
const thresholds = [200_000_000, 500_000_000];
const lanes = 4;
const acknowledgementsMax = 60;

interface Totals {
  rounds: number;
  submissions: number;
  registrations: number;
  tierChanges: number;
  lost: number;
  double: number;
}

/** The account of one round, with what the service acknowledged to it. */
interface Customer {
  readonly gateway: RpcClient;
  readonly url: string;
  readonly payer: Keypair;
  readonly submitted: string[];
  readonly registered: string[];
}

function transfer(payer: Keypair, toPubkey: typeof tips, lamports: number): string {
  const transaction = new Transaction({
    feePayer: payer.publicKey,
    blockhash,
    lastValidBlockHeight: 0,
  });
  transaction.add(SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey, lamports }));
  transaction.sign(payer);
  return transaction.serialize().toString("base64");
}

/** A scheduler that takes everything. */
async function schedulerUrl(): Promise<string> {
  const server = createServer((request, answer) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => {
      const { id }: { id: unknown } = JSON.parse(body);
      answer.end(JSON.stringify({ jsonrpc: "2.0", id, result: "taken" }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  closing({ close });
  const address = server.address();
  return typeof address === "object" ? `http://127.0.0.1:${address?.port}/` : "";
}

class KillRounds {
  readonly totals: Totals = {
    rounds: 0,
    submissions: 0,
    registrations: 0,
    tierChanges: 0,
    lost: 0,
    double: 0,
  };
  readonly #folder = temporaryFolder();
  readonly #file = join(this.#folder, "shredway.yaml");
  readonly #server: PostgresServer | null;
  #port = 0;

  constructor(server: PostgresServer | null) {
    this.#server = server;
  }

  async open(): Promise<void> {
    this.#port = await freePort();
    const config = {
      http: { listen: `127.0.0.1:${this.#port}`, webSocketListen: [] },
      data: this.#data,
      tips: { addresses: [tips.toBase58()], shredAddresses: [shredTips.toBase58()] },
      gateway: { requestsPerSecond: 100_000, burst: 100_000, warmUpSubmissions: 0 },
      routes: [{ name: "taker", kind: "scheduler", url: await schedulerUrl() }],
      relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: "off", deshred: false },
    };
    writeFileSync(this.#file, stringify(config));
  }

  get #data() {
    const directory = join(this.#folder, "data");
    return this.#server
      ? { directory, postgres: this.#server.url(), node: "killed" }
      : { directory };
  }

  /** Creates the account while the service runs, as the command line does. */
  async customer(round: number): Promise<Customer> {
    const store = await Store.open({ ...this.#data, clock: systemClock, log: silent });
    const settings = {
      accountName: `customer-${round}`,
      label: "",
      scopes: ["submit", "shreds"] as const,
      requestsPerSecond: null,
      burst: null,
      allowedRanges: [],
    };
    const random = new Uint8Array(randomBytes(keyRandomBytes));
    const { text } = await createKey(store.keys, settings, { random, nowNs: BigInt(round + 1) });
    await store.close();
    const base = `http://127.0.0.1:${this.#port}`;
    return {
      gateway: new RpcClient(`${base}/relay?api-key=${text}`, 120_000),
      url: `${base}/shred-pay?api-key=${text}`,
      payer: Keypair.generate(),
      submitted: [],
      registered: [],
    };
  }

  async start(): Promise<Shredway> {
    const program = Shredway.run("start", "--config", this.#file);
    closing({ close: () => program.kill() });
    await program.printed(/^ready /m);
    return program;
  }

  /** Kills the service, and in odd rounds the database server too, after `count` acknowledgements. */
  async interrupt(program: Shredway, customer: Customer, round: number): Promise<void> {
    const count = 1 + Math.floor(Math.random() * acknowledgementsMax);
    const kill: { running?: Promise<unknown> } = {};
    const acknowledged = (): void => {
      if (customer.submitted.length + customer.registered.length < count) return;
      const server = round % 2 === 1 ? this.#server : null;
      kill.running ??= Promise.all([program.kill(), server?.kill()]);
    };
    const untilKilled = async (one: (i: number) => Promise<void>): Promise<void> => {
      for (let i = 0; !kill.running; i++) {
        await one(i).then(acknowledged, () => systemClock.sleep(5)); // a failure acknowledges nothing
      }
    };
    const submit = async (lane: number, i: number): Promise<void> => {
      const text = transfer(customer.payer, tips, 20_000 + i * lanes + lane);
      const options = { encoding: "base64", skipPreflight: true };
      const signature = await customer.gateway.call("sendTransaction", [text, options]);
      customer.submitted.push(String(signature));
    };
    const register = async (i: number): Promise<void> => {
      const entry = { transaction: transfer(customer.payer, shredTips, tipLamports + i), slot: 1 };
      const answer = await fetch(customer.url, { method: "POST", body: JSON.stringify([entry]) });
      const { accepted }: { accepted: string[] } = JSON.parse(await answer.text());
      customer.registered.push(...accepted);
    };
    const work = Array.from({ length: lanes }, (_, lane) => untilKilled((i) => submit(lane, i)));
    await Promise.all([...work, untilKilled(register)]);
    await kill.running;
    if (round % 2 === 1) await this.#server?.start();
  }

  /** Compares the state after the restart with what was acknowledged. */
  async verify({ gateway, submitted, registered }: Customer): Promise<void> {
    const { totals } = this;
    const statuses =
      submitted.length > 0 ? await listOf(gateway, "getTransactionStatus", [submitted]) : [];
    const found = await listOf(gateway, "getRegistrations", [{ limit: 1000 }]);
    const events = await listOf(gateway, "getTierHistory", [{}]);
    const tier: unknown = await gateway.call("getTier", []);
    if (!isObject(tier)) throw new Error("expected a tier");
    const signatures = found.map((one) => String(isObject(one) && one["signature"]));
    const counted = found.map((one) => Number(isObject(one) && one["countedLamports"]));
    const sum = counted.reduce((all, one) => all + one, 0);
    totals.lost += submitted.filter((_, i) => !isObject(statuses[i])).length;
    totals.lost += registered.filter((signature) => !signatures.includes(signature)).length;
    totals.double += signatures.length - new Set(signatures).size;
    totals.double += Number(Number(tier["sumLamports"]) !== sum);
    const upgrades = thresholds.filter((threshold) => sum >= threshold).length;
    totals.double += Math.abs(events.length - upgrades);
    totals.rounds++;
    totals.submissions += submitted.length;
    totals.registrations += registered.length;
    totals.tierChanges += upgrades;
    if (given !== undefined) console.log(JSON.stringify(totals));
  }
}

async function listOf(gateway: RpcClient, method: string, params: unknown[]): Promise<unknown[]> {
  const answer: unknown = await gateway.call(method, params, 1 << 24);
  if (Array.isArray(answer)) return answer;
  throw new Error(`expected a list from ${method}`);
}

async function killRounds(server: PostgresServer | null): Promise<Totals> {
  const run = new KillRounds(server);
  await run.open();
  let program = await run.start();
  for (let round = 0; round < rounds; round++) {
    const customer = await run.customer(round);
    while ((await customer.gateway.call("getHealth", []).catch(() => null)) !== "ok") {
      await systemClock.sleep(20); // the service reads new keys within a second
    }
    await run.interrupt(program, customer, round);
    program = await run.start();
    await run.verify(customer);
  }
  return run.totals;
}

describe(`${rounds} rounds of SIGKILL`, { timeout: 300_000 + rounds * 120_000 }, () => {
  const nothing = { rounds, lost: 0, double: 0 };

  it("lose nothing on SQLite", async () => {
    expect(await killRounds(null)).toMatchObject(nothing);
  });

  it.skipIf(postgresPrograms === null)("lose nothing on PostgreSQL", async () => {
    const server = await PostgresServer.start();
    closing({ close: () => server.remove() });
    expect(await killRounds(server)).toMatchObject(nothing);
  });
});
