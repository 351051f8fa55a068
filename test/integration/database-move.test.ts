// The database moves from its file to PostgreSQL under a running service: the feed loses no shred, and what
// was acknowledged, tips and transactions, is there, each once.

import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Keypair, SystemProgram, Transaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "../../src/core/clock.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { decodeBase58, encodeBase58 } from "../../src/relay/data-plane/base58.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { closing } from "../support/closing.ts";
import { freePort, freeUdpPort } from "../support/network/free-ports.ts";
import { UdpReceiver, until } from "../support/network/udp-receiver.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";
import { Shredway, shredway } from "../support/processes/shredway.ts";
import { madeSlot } from "../support/shreds/made-slot.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tipAddress = Keypair.generate().publicKey;
const payer = Keypair.generate();
const blockhash = Keypair.generate().publicKey.toBase58();
const callers = 3;

/** base64 of a transfer that no other one equals, and its signature. */
function transfer(lamports: number): { readonly wire: string; readonly signature: Buffer } {
  const made = new Transaction({ feePayer: payer.publicKey, blockhash, lastValidBlockHeight: 0 });
  made.add(SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: tipAddress, lamports }));
  made.sign(payer);
  const { signature } = made;
  if (!signature) throw new Error("expected a signature");
  return { wire: made.serialize().toString("base64"), signature };
}

/** Takes every transaction, as a node does. */
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

/** Sends until it is told to end. */
class Feed {
  readonly sent: Uint8Array[] = [];
  readonly #over = new AbortController();
  readonly #running: Promise<void>;

  constructor(to: string) {
    this.#running = this.#run(closing(PacedSender.open({ to, from: "127.0.0.2:0" })));
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  async #run(sender: PacedSender): Promise<void> {
    for (let slot = 0; !this.#over.signal.aborted; slot++) {
      const packets = madeSlot(slot);
      this.sent.push(...packets);
      const times = BigUint64Array.from(packets, (_, i) => BigInt(i) * 200_000n);
      sender.enqueue(packets, times);
      await systemClock.sleep(50, this.#over.signal);
    }
  }
}

interface Caller {
  /** Signatures, in hexadecimal. */
  readonly tips: string[];
  readonly transactions: string[];
}

describe.skipIf(postgresPrograms === null)("a move under a running service", () => {
  it("loses no shred, and nothing that was acknowledged", { timeout: 300_000 }, async () => {
    const folder = temporaryFolder();
    const postgres = await PostgresServer.start();
    closing({ close: () => postgres.remove() });
    const receiver = closing(await UdpReceiver.open());
    const file = join(folder, "shredway.yaml");
    const port = await freePort();
    const listen = `127.0.0.1:${await freeUdpPort()}`;
    const config = {
      http: { listen: `127.0.0.1:${port}`, webSocketListen: [] },
      data: { directory: "data" },
      tips: { addresses: [tipAddress.toBase58()], shredAddresses: [tipAddress.toBase58()] },
      gateway: { requestsPerSecond: 100_000, burst: 100_000 },
      routes: [{ name: "one", kind: "swqos", url: await openRoute() }],
      relay: {
        listen,
        shredVersion: 1,
        authentication: "off",
        allowPrivateDestinations: true,
        deshred: false,
        sources: [{ name: "a", address: "127.0.0.2", tier: "tier-1" }],
        destinations: [{ address: receiver.address, tier: "tier-1" }],
      },
    };
    writeFileSync(file, stringify(config));
    const made = await shredway("keys", "create", "--account", "a", "--config", file, "--json");
    const { key }: { key: string } = JSON.parse(made.stdout);
    const program = Shredway.run("start", "--config", file);
    closing({ close: () => program.kill() });
    await program.printed(/^ready /m);

    const base = `http://127.0.0.1:${port}`;
    const gateway = new RpcClient(`${base}/relay?api-key=${key}`, 60_000);
    const over = new AbortController();
    const kept: Caller = { tips: [], transactions: [] };
    const refused: string[] = [];
    const call = async (first: number): Promise<void> => {
      for (let lamports = first; !over.signal.aborted; lamports += 2) {
        const tip = transfer(lamports);
        const body = JSON.stringify([{ transaction: tip.wire, slot: 1 }]);
        const url = `${base}/shred-pay?api-key=${key}`;
        const answer = await fetch(url, { method: "POST", body });
        const said = await answer.text();
        const { accepted = [] }: { accepted?: string[] } = JSON.parse(said);
        if (accepted.length === 1) kept.tips.push(tip.signature.toString("hex"));
        else refused.push(said);
        const transaction = transfer(lamports + 1);
        const options = { encoding: "base64", skipPreflight: true };
        await gateway.call("sendTransaction", [transaction.wire, options]).then(
          () => kept.transactions.push(transaction.signature.toString("hex")),
          (error: unknown) => refused.push(String(error)),
        );
      }
    };
    const feed = closing(new Feed(listen));
    closing({ close: () => over.abort() });
    const calling = Array.from({ length: callers }, (_, i) => call((i + 1) * 100_000_000));
    await until(() => kept.transactions.length > 50 || refused.length > 0, "acknowledgements");
    expect(refused).toEqual([]);

    const wanted = { ...config, data: { ...config.data, postgres: postgres.url() } };
    writeFileSync(file, stringify(wanted));
    program.signal("SIGHUP");
    const [line = ""] = await program.printed(/.*"msg":"moved: .*|.*was not moved.*/, "stderr");
    expect(line).toContain("PostgreSQL has the database now");
    const before = kept.tips.length;
    await until(() => kept.tips.length > before + 50, "acknowledgements after");
    over.abort();
    await Promise.all(calling);
    await feed.close();
    const distinct = (packets: readonly Uint8Array[]): Set<string> =>
      new Set(packets.map((packet) => Buffer.from(packet).toString("base64")));
    const sent = distinct(feed.sent);
    await until(() => distinct(receiver.packets).size >= sent.size, "every shred");
    expect(distinct(receiver.packets)).toEqual(sent);
    expect(receiver.packets.length).toBe(sent.size);
    expect(refused).toEqual([]);

    const tips = await postgres.run("SELECT encode(signature, 'hex') FROM registrations");
    expect(tips.flat().map(String).toSorted()).toEqual(kept.tips.toSorted());
    const rows = await postgres.run("SELECT signature FROM submissions");
    const found = rows.flat().map((text) => Buffer.from(decodeBase58(String(text)) ?? []));
    const transactions = found.map((bytes) => bytes.toString("hex"));
    expect(transactions.toSorted()).toEqual(kept.transactions.toSorted());
    const data = join(folder, "data");
    expect(existsSync(join(data, "shredway.db"))).toBe(false);
    expect(readdirSync(data).filter((name) => name.endsWith(".moved")).length).toBe(1);
    expect(program.stderr).not.toContain("restart needed");

    program.signal("SIGTERM");
    expect((await program.end()).code).toBe(0);
    const again = Shredway.run("start", "--config", file);
    closing({ close: () => again.kill() });
    await again.printed(/^ready /m);
    const listed = await shredway("keys", "list", "--config", file, "--json");
    expect(JSON.parse(listed.stdout)).toMatchObject({ keys: [{ account: "a" }] });
  });
});
