// kill -9 after bundles that share a transaction: after the restart both have the status from before it.
//
// The gateway is the real command in another process. Its block engine accepts every bundle, and none lands.

import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Keypair, SystemProgram, Transaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { bundleIdOf } from "../../src/gateway/submission/tracked-transaction.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { encodeBase58 } from "../../src/relay/data-plane/base58.ts";
import { closing } from "../support/closing.ts";
import { freePort } from "../support/network/free-ports.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";
import { Shredway, shredway } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tipAddress = Keypair.generate().publicKey;
const payer = Keypair.generate();
const blockhash = Keypair.generate().publicKey.toBase58();
let lamports = 20_000;

interface Signed {
  readonly wire: string;
  readonly signature: string;
}

function transfer(): Signed {
  const made = new Transaction({ feePayer: payer.publicKey, blockhash, lastValidBlockHeight: 0 });
  const tip = { fromPubkey: payer.publicKey, toPubkey: tipAddress, lamports: lamports++ };
  made.add(SystemProgram.transfer(tip)).sign(payer);
  const wire = made.serialize();
  return { wire: wire.toString("base64"), signature: encodeBase58(wire.subarray(1, 65)) };
}

/** Accepts every bundle. */
async function openBlockEngine(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: "accepted" }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing({ close: () => void server.close() });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

interface Ground {
  readonly gateway: RpcClient;
  readonly start: () => Promise<Shredway>;
}

async function openGround(data: object): Promise<Ground> {
  const file = join(temporaryFolder(), "shredway.yaml");
  const port = await freePort();
  const config = {
    http: { listen: `127.0.0.1:${port}`, webSocketListen: [] },
    data: { directory: "data", ...data },
    tips: { addresses: [tipAddress.toBase58()] },
    gateway: { requestsPerSecond: 100_000, burst: 100_000, warmUpSubmissions: 0 },
    routes: [{ name: "builder", kind: "block-builder", url: await openBlockEngine() }],
    relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: "off", deshred: false },
  };
  writeFileSync(file, stringify(config));
  const created = await shredway("keys", "create", "--account", "a", "--config", file, "--json");
  const { key }: { key: string } = JSON.parse(created.stdout);
  const start = async (): Promise<Shredway> => {
    const program = Shredway.run("start", "--config", file);
    closing({ close: () => program.kill() });
    await program.printed(/^ready /m);
    return program;
  };
  return { gateway: new RpcClient(`http://127.0.0.1:${port}/relay?api-key=${key}`, 60_000), start };
}

const idOf = (bundle: readonly Signed[]) => bundleIdOf(bundle.map(({ signature }) => signature));

async function submit({ gateway }: Ground, bundle: readonly Signed[]): Promise<string> {
  await gateway.call("sendBundle", [bundle.map(({ wire }) => wire), { encoding: "base64" }]);
  return idOf(bundle);
}

async function pendingOf({ gateway }: Ground, ids: readonly string[]): Promise<unknown> {
  return gateway.call("getInflightBundleStatuses", [ids]);
}

const databases = postgresPrograms === null ? ["sqlite"] : ["sqlite", "postgres"];

describe.each(databases)("bundles that share a transaction, on %s", (database) => {
  it("have the same status after a kill", { timeout: 120_000 }, async () => {
    let data = {};
    if (database === "postgres") {
      const server = await PostgresServer.start();
      closing({ close: () => server.remove() });
      data = { postgres: server.url() };
    }
    const ground = await openGround(data);
    let program = await ground.start();
    const [one, two, three, four] = [transfer(), transfer(), transfer(), transfer()];
    const ids = [
      await submit(ground, [one, two]),
      await submit(ground, [two, three]),
      await submit(ground, [four]),
      await submit(ground, [four, one]), // no transaction is in one of the first and the third any more
    ];
    const before = await pendingOf(ground, ids);
    expect(before).toMatchObject({
      value: ids.map((id) => ({ bundle_id: id, status: "Pending" })),
    });
    for (let kill = 0; kill < 2; kill++) {
      await program.kill();
      program = await ground.start();
      expect(await pendingOf(ground, ids)).toEqual(before);
    }
    const unknown = idOf([one, three]);
    expect(await pendingOf(ground, [unknown])).toMatchObject({
      value: [{ bundle_id: unknown, status: "Invalid" }],
    });
  });
});
