// Two regions with 90 ms between them: a namespace and a node in each, one PostgreSQL in the first.
//
// Used by test/integration/regions.test.ts and by the bench, so it depends on neither. Each
// region's source and receivers are on this side of its link, without a delay.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Keypair, SystemProgram, Transaction } from "@solana/web3.js";
import { stringify } from "yaml";
import { systemClock } from "../../../src/core/clock.ts";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { DelayLink, delayedAddresses } from "../network/delay-link.ts";
import { hasNamespaces, NetworkNamespace } from "../network/network-namespace.ts";
import { PostgresServer, postgresPrograms } from "../postgres/postgres.ts";
import { Shredway, shredway } from "../processes/shredway.ts";
import { generateSlot } from "../shreds/generated-slot.ts";

const oneWayMs = 45;
const challengeBytesMax = 64;
const httpPort = 8780;
const shredPort = 20_000;
const names = ["frankfurt", "new-york"] as const;
type RegionName = (typeof names)[number];

const shredTips = Keypair.generate().publicKey;
const blockhash = Keypair.generate().publicKey.toBase58();

/** Whether its requirements are installed. */
export const hasRegions = hasNamespaces && postgresPrograms !== null;

export const tier1Lamports = 200_000_000;
export const tier2Lamports = 500_000_000;

/** A signed tip of a new payer, in base64. */
export function shredTip(lamports: number): string {
  const payer = Keypair.generate();
  const created = new Transaction({
    feePayer: payer.publicKey,
    blockhash,
    lastValidBlockHeight: 0,
  });
  created.add(
    SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: shredTips, lamports }),
  );
  created.sign(payer);
  return created.serialize().toString("base64");
}

/** Retries until it no longer throws; throws the last error after a minute. */
export async function eventually<T>(ask: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + 60_000;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await systemClock.sleep(20);
    }
  }
}

/** A customer's receiver; it proves its ownership itself. */
export class RegionReceiver {
  packets: Buffer[] = [];
  /** performance.now() of the first packet since the last `clear`; null: no packet arrived. */
  firstMs: number | null = null;
  readonly address: string;
  readonly #socket: Socket;

  static async open(host: string): Promise<RegionReceiver> {
    const socket = createSocket({ type: "udp4", recvBufferSize: 16 << 20 });
    socket.bind(0, host);
    await once(socket, "listening");
    return new RegionReceiver(socket);
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    const { address, port } = socket.address();
    this.address = `${address}:${port}`;
    socket.on("message", (packet, from) => {
      if (packet.length <= challengeBytesMax) {
        socket.send(packet, from.port, from.address);
        return;
      }
      this.firstMs ??= performance.now();
      this.packets.push(packet);
    });
  }

  clear(): void {
    this.packets = [];
    this.firstMs = null;
  }

  close(): void {
    this.#socket.close();
  }
}

export class Region {
  readonly name: RegionName;
  readonly namespace: NetworkNamespace;
  readonly configFile: string;
  readonly #source: PacedSender;
  readonly #receivers: RegionReceiver[] = [];
  #program: Shredway | undefined;
  #stderr = "";

  constructor(name: RegionName, namespace: NetworkNamespace, folder: string, postgres: string) {
    this.name = name;
    this.namespace = namespace;
    const { here, there } = namespace;
    this.configFile = join(folder, `${name}.yaml`);
    const config = {
      http: { listen: `${there}:${httpPort}`, webSocketListen: [] },
      data: { postgres, node: name },
      tips: { addresses: [shredTips.toBase58()], shredAddresses: [shredTips.toBase58()] },
      gateway: { requestsPerSecond: 100_000, burst: 100_000 },
      delivery: { regions: [...names], region: name },
      relay: {
        listen: `${there}:${shredPort}`,
        shredVersion: 1,
        authentication: "off",
        allowPrivateDestinations: true,
        deshred: false,
        sources: [{ name: "a", address: here, tier: "tier-1" }],
      },
    };
    writeFileSync(this.configFile, stringify(config), { mode: 0o600 });
    this.#source = PacedSender.open({ to: `${there}:${shredPort}`, from: `${here}:0` });
  }

  async start(): Promise<void> {
    const words = ["start", "--config", this.configFile];
    const program = Shredway.in(this.namespace.command, ...words);
    this.#program = program;
    await program.printed(/^ready /m);
  }

  /** Kills the node with kill -9. */
  async kill(): Promise<void> {
    this.#stderr += this.#program?.stderr ?? "";
    await this.#program?.kill();
    this.#program = undefined;
  }

  /** Standard error of all nodes of this region. */
  get stderr(): string {
    return this.#stderr + (this.#program?.stderr ?? "");
  }

  url(path: string, key: string): string {
    return `http://${this.namespace.there}:${httpPort}${path}?api-key=${key}`;
  }

  gateway(key: string): RpcClient {
    return new RpcClient(this.url("/relay", key), 60_000);
  }

  async tierOf(key: string): Promise<unknown> {
    return Object(await this.gateway(key).call("getTier")).tier;
  }

  /** The whole response of POST /shred-pay. */
  async register(key: string, ...tips: readonly string[]): Promise<Record<string, unknown>> {
    const body = JSON.stringify(tips.map((transaction) => ({ transaction, slot: 1 })));
    const url = `${this.url("/shred-pay", key)}&verbose=true`;
    const answer = await fetch(url, { method: "POST", body });
    return Object(await answer.json());
  }

  /** Adds and verifies a destination of the key's account in this region. */
  async receiver(key: string): Promise<RegionReceiver> {
    const receiver = await RegionReceiver.open(this.namespace.here);
    this.#receivers.push(receiver);
    const gateway = this.gateway(key);
    await gateway.call("addDestination", [{ region: this.name, address: receiver.address }]);
    await eventually(async () => {
      const list = JSON.stringify(await gateway.call("getDestinations"));
      const own = list.split("{").find((text) => text.includes(receiver.address)) ?? "";
      if (!own.includes('"active"')) throw new Error(`expected an active destination, got ${own}`);
    });
    return receiver;
  }

  /** Sends shreds from this region's source, `gapNs` apart. */
  send(packets: readonly Uint8Array[], gapNs = 100_000n): void {
    this.#source.enqueue(
      packets,
      BigUint64Array.from(packets, (_, i) => BigInt(i) * gapNs),
    );
  }

  async close(): Promise<void> {
    await this.kill();
    this.#source.close();
    for (const receiver of this.#receivers) receiver.close();
    this.namespace.close();
  }
}

export class Regions {
  readonly first: Region;
  readonly second: Region;
  readonly database: PostgresServer;
  readonly #folder: string;
  readonly #link: DelayLink;
  #slots = 0;

  /** Both regions, started. The caller closes them. */
  static async open(): Promise<Regions> {
    const folder = mkdtempSync(join(tmpdir(), "shredway-"));
    const namespaces = [NetworkNamespace.open(), NetworkNamespace.open()] as const;
    const link = await DelayLink.open(folder, namespaces, oneWayMs);
    const database = await PostgresServer.start({
      settings: { listen_addresses: delayedAddresses[0] },
      access: ["local all all trust", "host all all 198.19.255.0/30 trust"],
      command: namespaces[0].command,
    });
    await database.run("CREATE DATABASE shredway");
    const regions = new Regions(folder, link, database, [
      new Region(names[0], namespaces[0], folder, database.url("shredway")),
      new Region(
        names[1],
        namespaces[1],
        folder,
        `postgres://shredway@${delayedAddresses[0]}/shredway`,
      ),
    ]);
    try {
      for (const region of regions.all) await region.start();
      return regions;
    } catch (error) {
      await regions.close();
      throw error;
    }
  }

  private constructor(
    folder: string,
    link: DelayLink,
    database: PostgresServer,
    [first, second]: readonly [Region, Region],
  ) {
    this.#folder = folder;
    this.#link = link;
    this.database = database;
    this.first = first;
    this.second = second;
  }

  get all(): readonly [Region, Region] {
    return [this.first, this.second];
  }

  /** Key of a new account, known in both regions. */
  async customer(name: string): Promise<string> {
    const words = ["keys", "create", "--account", name, "--config", this.first.configFile];
    const { stdout, stderr } = await shredway(...words, "--json");
    if (stdout === "") throw new Error(`expected a key, got: ${stderr}`);
    const { key }: { key: string } = JSON.parse(stdout);
    for (const region of this.all) await eventually(() => region.tierOf(key));
    return key;
  }

  async revokeKeysOf(name: string): Promise<void> {
    const config = ["--config", this.first.configFile];
    const { stdout } = await shredway("keys", "list", ...config, "--json");
    const { keys }: { keys: { id: string; account: string }[] } = JSON.parse(stdout);
    for (const { id, account } of keys) {
      if (account === name) await shredway("keys", "revoke", id, ...config);
    }
  }

  /** Shreds of a new slot. */
  nextShreds(bytes = 20_000): Uint8Array[] {
    const number = this.#slots++;
    return generateSlot(number, bytes, number);
  }

  async close(): Promise<void> {
    for (const region of this.all) await region.close();
    await this.database.remove();
    await this.#link.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
