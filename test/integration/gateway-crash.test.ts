// kill -9 during submissions: acknowledged ones are known after the restart and end once.
//
// The chain, its node and its partners run in this process. The gateway is the real command in another
// process, which is killed repeatedly.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Keypair, PublicKey, SystemProgram, Transaction } from "@solana/web3.js";
import { expect, it } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "../../src/core/clock.ts";
import { isObject } from "../../src/core/values.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { TipStatistics } from "../../src/tips/tip-statistics.ts";
import { openLocation, silent, untilTrue } from "../platform/store/files.ts";
import { closing } from "../support/closing.ts";
import { freePort } from "../support/network/free-ports.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { Shredway, shredway } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const rounds = 4;
const callers = 8;

function writeConfig(sandbox: Sandbox, folder: string, port: number): string {
  const file = join(folder, "shredway.yaml");
  const config = {
    solana: { rpc: `http://${sandbox.endpoint.address}` },
    http: { listen: `127.0.0.1:${port}`, webSocketListen: [] },
    data: { directory: "data" },
    tips: { addresses: [...sandbox.partners.tipAddresses] },
    gateway: { requestsPerSecond: 100_000, burst: 100_000, warmUpSubmissions: 0 },
    routes: sandbox.partners.routeConfigs(),
    relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: "off" },
  };
  writeFileSync(file, stringify(config));
  return file;
}

async function startGateway(file: string): Promise<Shredway> {
  const program = Shredway.run("start", "--config", file);
  closing({ close: () => program.kill() });
  await program.printed(/^ready /m);
  return program;
}

interface Ground {
  readonly sandbox: Sandbox;
  /** Contains the configuration and the data folder. */
  readonly folder: string;
  /** Configuration of the gateway in its own process. */
  readonly file: string;
  readonly gateway: RpcClient;
  /** Acknowledged signatures. */
  readonly acknowledged: Set<string>;
  readonly submitOne: (options?: object) => Promise<void>;
}

async function openGround(): Promise<Ground> {
  const sandbox = await runningSandbox();
  const folder = temporaryFolder();
  const port = await freePort();
  const file = writeConfig(sandbox, folder, port);
  const created = await shredway(
    "keys",
    "create",
    "--account",
    "crash",
    "--config",
    file,
    "--json",
  );
  const { key }: { key: string } = JSON.parse(created.stdout);
  const gateway = new RpcClient(`http://127.0.0.1:${port}/relay?api-key=${key}`, 60_000);
  const payer = Keypair.generate();
  sandbox.chain.airdrop(payer.publicKey.toBase58(), 100_000_000_000n);
  await until(() => sandbox.chain.account(payer.publicKey.toBase58()) !== null, "the airdrop");
  const tipAccount = new PublicKey(sandbox.partners.tipAddresses[0] ?? "");

  let lamports = 20_000;
  const acknowledged = new Set<string>();
  const submitOne = async (options: object = {}): Promise<void> => {
    const { blockhash, lastValidBlockHeight } = sandbox.chain.latestBlockhash("confirmed");
    const transaction = new Transaction({
      feePayer: payer.publicKey,
      blockhash,
      lastValidBlockHeight: Number(lastValidBlockHeight),
    });
    const tip = { fromPubkey: payer.publicKey, toPubkey: tipAccount, lamports: lamports++ };
    transaction.add(SystemProgram.transfer(tip)).sign(payer);
    const text = transaction.serialize().toString("base64");
    const config = { encoding: "base64", skipPreflight: true, ...options };
    acknowledged.add(String(await gateway.call("sendTransaction", [text, config])));
  };
  return { sandbox, folder, file, gateway, acknowledged, submitOne };
}

it("loses no acknowledged submission, whenever it is killed", { timeout: 300_000 }, async () => {
  const { sandbox, file, gateway, acknowledged, submitOne } = await openGround();
  for (let round = 0; round < rounds; round++) {
    const program = await startGateway(file);
    const over = new AbortController();
    const submitting = Array.from({ length: callers }, async () => {
      while (!over.signal.aborted) await submitOne().catch(() => systemClock.sleep(5));
    });
    // At another point of time in each round.
    const enough = acknowledged.size + callers + 37 * round;
    await until(() => acknowledged.size > enough, "acknowledgements", 120_000);
    await program.kill();
    over.abort();
    await Promise.all(submitting);
  }

  await startGateway(file);
  const signatures = [...acknowledged];
  const statuses = async (): Promise<Record<string, unknown>[]> => {
    const all: Record<string, unknown>[] = [];
    for (let i = 0; i < signatures.length; i += 256) {
      const part = await gateway.call(
        "getTransactionStatus",
        [signatures.slice(i, i + 256)],
        1 << 24,
      );
      if (!Array.isArray(part)) throw new Error("expected a list of statuses");
      all.push(...part.map((one: unknown) => (isObject(one) ? one : { state: "unknown" })));
    }
    return all;
  };
  expect((await statuses()).filter(({ state }) => state === "unknown")).toEqual([]);
  while ((await statuses()).some(({ state }) => state === "open")) await systemClock.sleep(250);
  const ends = ["landed", "landed_failed", "expired", "superseded", "rejected"];
  for (const [i, { state, events }] of (await statuses()).entries()) {
    expect(state).toBe("landed"); // the chain lost nothing, so its state is the truth
    expect(sandbox.chain.status(signatures[i] ?? "")?.err).toBeNull();
    const kinds = Array.isArray(events) ? events.map(({ kind }: { kind: string }) => kind) : [];
    expect(kinds.filter((kind) => ends.includes(kind))).toEqual(["landed"]);
  }
});

it("keeps the tips of the submissions that landed just before a kill", async () => {
  const { folder, file, gateway, acknowledged, submitOne } = await openGround();
  for (let round = 0; round < 3; round++) {
    const program = await startGateway(file);
    // On a busy machine, the routes may be down for the first calls.
    const accepted = () =>
      untilTrue(() =>
        submitOne().then(
          () => true,
          () => false,
        ),
      );
    await Promise.all(Array.from({ length: 20 }, accepted));
    const signatures = [...acknowledged].slice(-20);
    await untilTrue(async () => {
      const statuses = await gateway.call("getTransactionStatus", [signatures], 1 << 24);
      return Array.isArray(statuses) && statuses.some((one) => one?.state === "landed");
    });
    await accepted(); // commits are in order: the ends that were reported are stored before
    await program.kill();
    const store = await openLocation(join(folder, "data"));
    const [account] = await store.keys.accounts();
    const records = await store.submissions.find(account?.id ?? "", [...acknowledged]);
    const landed = records.filter(({ state }) => state === "landed");
    expect(landed.length).toBeGreaterThan(0);
    const dependencies = { clock: systemClock, log: silent, store: store.landedTips };
    const statistics = await TipStatistics.open(dependencies);
    const stored = await store.landedTips.since(0, null, 10_000);
    const missing = landed.filter((one) => !stored.some((tip) => tip.signature === one.signature));
    expect(missing.map(({ signature }) => signature)).toEqual([]);
    expect(statistics.size).toBe(stored.length);
    await statistics.close();
    await store.close();
  }
}, 120_000);

it("sends acknowledged submissions before a regular end, or after the next start", async () => {
  const { sandbox, file, gateway, acknowledged, submitOne } = await openGround();
  const slow = sandbox.partners.endpoints.map(({ faults }) => faults);
  for (const faults of slow) faults.delayMs = 1500;
  const program = await startGateway(file);
  await Promise.all(Array.from({ length: 40 }, () => submitOne({ maxRetries: 0 })));
  program.signal("SIGTERM");
  expect((await program.end()).code).toBe(0);
  for (const faults of slow) faults.delayMs = 0;
  await startGateway(file);
  const signatures = [...acknowledged];
  expect(signatures.length).toBe(40);
  await until(
    () => signatures.every((signature) => sandbox.chain.status(signature)?.err === null),
    "all of them on the chain",
  );
  const statuses = await gateway.call("getTransactionStatus", [signatures], 1 << 24);
  const states = Array.isArray(statuses)
    ? statuses.map((one: unknown) => isObject(one) && one["state"])
    : [];
  expect(states.filter((state) => state !== "open" && state !== "landed")).toEqual([]);
});
