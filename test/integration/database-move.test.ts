// From an SQLite file to PostgreSQL and back, according to docs/backup.md: every acknowledged tip and
// transaction exists afterwards, once.

import { renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { hostname } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { Keypair, SystemProgram, Transaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "../../src/core/clock.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { decodeBase58, encodeBase58 } from "../../src/relay/data-plane/base58.ts";
import { closing } from "../support/closing.ts";
import { freePort } from "../support/network/free-ports.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";
import { Shredway, shredway } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tipAddress = Keypair.generate().publicKey;
const payer = Keypair.generate();
const blockhash = Keypair.generate().publicKey.toBase58();
const callers = 3;

/** base64 of a unique transfer, and its signature. */
function transfer(lamports: number): { readonly wire: string; readonly signature: Buffer } {
  const created = new Transaction({
    feePayer: payer.publicKey,
    blockhash,
    lastValidBlockHeight: 0,
  });
  created.add(
    SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: tipAddress, lamports }),
  );
  created.sign(payer);
  const { signature } = created;
  if (!signature) throw new Error("expected a signature");
  return { wire: created.serialize().toString("base64"), signature };
}

/** Accepts every transaction, like a node. */
async function openRoute(): Promise<string> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => {
      body += piece.toString();
    });
    request.on("end", () => {
      const {
        id,
        method,
        params = [],
      }: { id?: unknown; method?: string; params?: unknown[] } = body === ""
        ? {}
        : JSON.parse(body);
      const wire = Buffer.from(String(params[0]), "base64");
      const result = method === "sendTransaction" ? encodeBase58(wire.subarray(1, 65)) : "ok";
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing({ close: () => void server.close() });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

interface Caller {
  /** Signatures, in hexadecimal. */
  readonly tips: string[];
  readonly transactions: string[];
}

let firstLamports = 0;

/** Sends tips and transactions concurrently until `over`; returns the acknowledged signatures. */
async function callGateway(base: string, key: string, over: AbortSignal): Promise<Caller> {
  firstLamports += 1_000_000_000;
  const gateway = new RpcClient(`${base}/relay?api-key=${key}`, 60_000);
  const persisted: Caller = { tips: [], transactions: [] };
  const call = async (first: number): Promise<void> => {
    for (let lamports = first; !over.aborted; lamports += 2) {
      const tip = transfer(lamports);
      const body = JSON.stringify([{ transaction: tip.wire, slot: 1 }]);
      const answer = await fetch(`${base}/shred-pay?api-key=${key}`, { method: "POST", body });
      expect(await answer.json()).toMatchObject({ accepted: [expect.any(String)] });
      persisted.tips.push(tip.signature.toString("hex"));
      const { wire, signature } = transfer(lamports + 1);
      await gateway.call("sendTransaction", [wire, { encoding: "base64", skipPreflight: true }]);
      persisted.transactions.push(signature.toString("hex"));
    }
  };
  await Promise.all(
    Array.from({ length: callers }, (_, i) => call(firstLamports + i * 100_000_000)),
  );
  return persisted;
}

async function started(file: string): Promise<Shredway> {
  const service = Shredway.run("start", "--config", file);
  closing({ close: () => service.kill() });
  await service.printed(/^ready /m);
  return service;
}

async function stop(service: Shredway): Promise<void> {
  service.signal("SIGTERM");
  expect((await service.end()).code).toBe(0);
}

async function succeed(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await shredway(...words);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return stdout;
}

describe.skipIf(postgresPrograms === null)("from an SQLite file to PostgreSQL and back", () => {
  it("retains acknowledged data: stop, export, import, start", { timeout: 300_000 }, async () => {
    const folder = temporaryFolder();
    const postgres = await PostgresServer.start();
    closing({ close: () => postgres.remove() });
    const file = join(folder, "shredway.yaml");
    const port = await freePort();
    const config = {
      http: { listen: `127.0.0.1:${port}`, webSocketListen: [] },
      data: { directory: "data" },
      tips: { addresses: [tipAddress.toBase58()], shredAddresses: [tipAddress.toBase58()] },
      gateway: { requestsPerSecond: 100_000, burst: 100_000, warmUpSubmissions: 0 },
      routes: [{ name: "one", kind: "swqos", url: await openRoute() }],
      relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: "off", deshred: false },
    };
    const old = join(folder, "old.yaml");
    for (const path of [file, old]) writeFileSync(path, stringify(config));
    const created = await succeed("keys", "create", "--account", "a", "--config", file, "--json");
    const { key }: { key: string } = JSON.parse(created);
    const base = `http://127.0.0.1:${port}`;
    const service = await started(file);

    const over = new AbortController();
    const calling = callGateway(base, key, over.signal);
    const wanted = { ...config, data: { ...config.data, postgres: postgres.url() } };
    writeFileSync(file, stringify(wanted));
    service.signal("SIGHUP");
    await service.printed(/restart needed for: data\.postgres/, "stderr");
    expect(service.stderr).toMatch(
      /data\.postgres: a running service cannot change its database.* stop/,
    );
    await systemClock.sleep(300);
    over.abort();
    const persisted = await calling;
    expect(persisted.tips.length).toBeGreaterThan(0);
    await stop(service);

    // Forgotten import: neither the service nor an export accepts the empty database.
    for (const words of [["start"], ["export"]]) {
      const { code, stderr } = await shredway(...words, "--config", file);
      expect(code).toBe(1);
      expect(stderr).toContain("is empty and");
    }
    const exported = join(folder, "shredway.export");
    await succeed("export", "--config", old, "--output", exported);
    await succeed("import", "--config", file, "--input", exported);
    const database = join(folder, "data", "shredway.db");
    renameSync(database, `${database}.left`);
    const repeated = await started(file);

    const tips = await postgres.run("SELECT encode(signature, 'hex') FROM registrations");
    expect(tips.flat().map(String).toSorted()).toEqual(persisted.tips.toSorted());
    const rows = await postgres.run("SELECT signature FROM submissions");
    const found = rows.flat().map((text) => Buffer.from(decodeBase58(String(text)) ?? []));
    const transactions = found.map((bytes) => bytes.toString("hex"));
    expect(transactions.toSorted()).toEqual(persisted.transactions.toSorted());
    const nodes = await postgres.run("SELECT DISTINCT node FROM submissions WHERE state = 'open'");
    expect(nodes).toEqual([[hostname()]]); // resumed by the service at startup
    const more = callGateway(base, key, AbortSignal.timeout(300));
    persisted.tips.push(...(await more).tips);
    await stop(repeated);

    const back = join(folder, "back.export");
    await succeed("export", "--config", file, "--output", back);
    await succeed("import", "--config", old, "--input", back);
    const last = await started(old);
    const reader = new DatabaseSync(database, { readOnly: true });
    closing(reader);
    const again = reader.prepare("SELECT hex(signature) AS hex FROM registrations").all();
    const signatures = again.map(({ hex }) => String(hex).toLowerCase());
    expect(signatures.toSorted()).toEqual(persisted.tips.toSorted());
    await callGateway(base, key, AbortSignal.timeout(100));
    await stop(last);
  });
});
