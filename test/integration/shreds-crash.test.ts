// kill -9 during tip registration: after the restart, every account has the tier of its acknowledged
// tips, and no other account has one.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Keypair, SystemProgram, Transaction } from "@solana/web3.js";
import { expect, it } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "../../src/core/clock.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { closing } from "../support/closing.ts";
import { freePort, freeUdpPort } from "../support/network/free-ports.ts";
import { until } from "../support/network/udp-receiver.ts";
import { Shredway, shredway } from "../support/processes/shredway.ts";
import { generateSlot } from "../support/shreds/generated-slot.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const rounds = 3;
const customersCount = 4;
const tipLamports = 50_000_000;
const tipsForTier1 = 4;
const challengeBytesMax = 64;
const shredTips = Keypair.generate().publicKey;
const blockhash = Keypair.generate().publicKey.toBase58();

/** One account, whose receiver verifies its address. */
interface Customer {
  readonly gateway: RpcClient;
  readonly url: string;
  readonly payer: Keypair;
  readonly socket: Socket;
  isProved: boolean;
  shreds: number;
  acknowledged: number;
}

function registration(payer: Keypair, number: number): string {
  const tip = new Transaction({ feePayer: payer.publicKey, blockhash, lastValidBlockHeight: 0 });
  const lamports = tipLamports + number; // makes them differ
  tip.add(SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: shredTips, lamports }));
  tip.sign(payer);
  return JSON.stringify([{ transaction: tip.serialize().toString("base64"), slot: 1 }]);
}

async function openCustomer(file: string, port: number, i: number): Promise<Customer> {
  const name = `customer-${i}`;
  const created = await shredway("keys", "create", "--account", name, "--config", file, "--json");
  const { key }: { key: string } = JSON.parse(created.stdout);
  const socket = createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  closing({ close: () => void socket.close() });
  const base = `http://127.0.0.1:${port}`;
  const customer: Customer = {
    gateway: new RpcClient(`${base}/relay?api-key=${key}`, 60_000),
    url: `${base}/shred-pay?api-key=${key}`,
    payer: Keypair.generate(),
    socket,
    isProved: false,
    shreds: 0,
    acknowledged: 0,
  };
  socket.on("message", (packet, from) => {
    if (packet.length > challengeBytesMax) customer.shreds++;
    else socket.send(packet, from.port, from.address);
  });
  return customer;
}

async function start(file: string): Promise<Shredway> {
  const program = Shredway.run("start", "--config", file);
  closing({ close: () => program.kill() });
  await program.printed(/^ready /m);
  return program;
}

/** Tips one after the other until the service ends. */
async function pay(customer: Customer, first: number): Promise<void> {
  for (let number = first; ; number++) {
    try {
      const body = registration(customer.payer, number);
      const answer = await fetch(customer.url, { method: "POST", body });
      const { accepted }: { accepted: string[] } = JSON.parse(await answer.text());
      customer.acknowledged += accepted.length;
    } catch {
      return;
    }
  }
}

it("leaves every account with the tier of its tips", { timeout: 300_000 }, async () => {
  const folder = temporaryFolder();
  const file = join(folder, "shredway.yaml");
  const port = await freePort();
  const listen = `127.0.0.1:${await freeUdpPort()}`;
  const config = {
    http: { listen: `127.0.0.1:${port}`, webSocketListen: [] },
    data: { directory: "data" },
    tips: { addresses: [shredTips.toBase58()], shredAddresses: [shredTips.toBase58()] },
    gateway: { requestsPerSecond: 100_000, burst: 100_000, warmUpSubmissions: 0 },
    relay: {
      listen,
      shredVersion: 1,
      authentication: "off",
      allowPrivateDestinations: true,
      deshred: false,
      sources: [{ name: "a", address: "127.0.0.2", tier: "tier-1" }],
    },
  };
  writeFileSync(file, stringify(config));
  const customers: Customer[] = [];
  for (let i = 0; i < customersCount; i++) customers.push(await openCustomer(file, port, i));
  const feed = closing(PacedSender.open({ to: listen, from: "127.0.0.2:0" }));
  let slots = 0;

  for (let round = 0; round < rounds; round++) {
    const program = await start(file);
    for (const customer of customers) {
      if (customer.isProved) continue;
      const address = `127.0.0.1:${customer.socket.address().port}`;
      await customer.gateway.call("addDestination", [{ region: "frankfurt", address }]);
      const list = () => customer.gateway.call("getDestinations");
      while (!JSON.stringify(await list()).includes('"active"')) await systemClock.sleep(20);
      customer.isProved = true;
    }
    // The last two never pay; each round interrupts another of the others.
    const paying = customers.slice(0, 2).map((customer) => pay(customer, round * 1_000_000));
    const enough = (round + 1) * (tipsForTier1 + 2 * round);
    await until(
      () => customers.slice(0, 2).every(({ acknowledged }) => acknowledged >= enough),
      "acknowledged tips",
    );
    await program.kill();
    await Promise.all(paying);

    const repeated = await start(file);
    for (const customer of customers) customer.shreds = 0;
    const packets = generateSlot(slots++);
    feed.enqueue(
      packets,
      BigUint64Array.from(packets, (_, i) => BigInt(i) * 100_000n),
    );
    await until(
      () => customers.slice(0, 2).every(({ shreds }) => shreds === packets.length),
      "every shred for those who paid",
    );
    expect(customers.map(({ shreds }) => shreds)).toEqual([packets.length, packets.length, 0, 0]);
    await repeated.kill();
  }
});
