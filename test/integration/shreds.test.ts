// From a tip to its shreds, in the complete sandbox: stock client, real chain, real UDP, and days that
// pass immediately.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { sandboxSources } from "../../src/sandbox/plan.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { closing } from "../support/closing.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";

const dayMs = 24 * 3_600_000;
const challengeBytesMax = 64;

/** A datagram of the test itself; it reaches the receiver after everything sent before it. */
const marker = Buffer.from("marker");

/** A customer's receiver that verifies its address. */
class Receiver {
  readonly #socket: Socket;
  readonly address: string;
  shreds = 0;
  challenges = 0;
  #markers = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.address = `127.0.0.1:${socket.address().port}`;
    socket.on("message", (packet, from) => {
      if (packet.length > challengeBytesMax) {
        this.shreds++;
        return;
      }
      if (packet.equals(marker)) {
        this.#markers++;
        return;
      }
      this.challenges++;
      socket.send(packet, from.port, from.address);
    });
  }

  static async open(): Promise<Receiver> {
    const socket = createSocket({ type: "udp4", recvBufferSize: 16 << 20 });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return closing(new Receiver(socket));
  }

  /** Settles when every datagram that is in the socket's queue now has been counted. */
  async drained(): Promise<void> {
    const markers = this.#markers;
    await until(() => {
      if (this.#markers === markers)
        this.#socket.send(marker, this.#socket.address().port, "127.0.0.1");
      return this.#markers > markers;
    }, "the marker at the receiver");
  }

  close(): void {
    this.#socket.close();
  }
}

let sandbox: Sandbox;
let gateway: RpcClient;
let chain: Connection;
let payer: Keypair;
let clock: ManualClock;

beforeEach(async () => {
  clock = ManualClock.running();
  sandbox = await runningSandbox("127.0.0.1:0", { tierClock: clock });
  gateway = new RpcClient(sandbox.gatewayUrl);
  chain = new Connection(`http://${sandbox.endpoint.address}`, "processed");
  payer = Keypair.generate();
  await chain.requestAirdrop(payer.publicKey, 2 * LAMPORTS_PER_SOL);
  await until(() => sandbox.chain.account(payer.publicKey.toBase58()) !== null, "the airdrop");
});

async function shredTipAccount(): Promise<PublicKey> {
  const list = await gateway.call("getShredTipAccounts");
  return new PublicKey(Array.isArray(list) ? String(list[0]) : "");
}

/** A tip that landed through another provider, the chain's own node. */
async function landedTip(lamports: number): Promise<Buffer> {
  const { blockhash, lastValidBlockHeight } = await chain.getLatestBlockhash();
  const tip = new Transaction({ feePayer: payer.publicKey, blockhash, lastValidBlockHeight }).add(
    SystemProgram.transfer({
      fromPubkey: payer.publicKey,
      toPubkey: await shredTipAccount(),
      lamports,
    }),
  );
  tip.sign(payer);
  const wire = tip.serialize();
  await chain.sendRawTransaction(wire, { skipPreflight: true });
  return wire;
}

async function register(wire: Buffer): Promise<unknown> {
  const url = new URL(sandbox.gatewayUrl);
  url.pathname = "/shred-pay";
  const slot = await chain.getSlot();
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify([{ transaction: wire.toString("base64"), slot }]),
  });
  expect(answer.status).toBe(200);
  return answer.json();
}

/** Waits until getTier reports it, because the clock's timers run after the time was advanced. */
async function tierBecomes(wanted: string | null, isInGrace = false): Promise<void> {
  const endMs = performance.now() + 60_000;
  for (;;) {
    const view: unknown = await gateway.call("getTier");
    const { tier, grace } = Object(view);
    if (tier === wanted && (grace !== null) === isInGrace) return;
    if (performance.now() > endMs) {
      const expected = `${wanted}, grace ${isInGrace}`;
      throw new Error(`expected ${expected}, got ${JSON.stringify(view)}`);
    }
    await systemClock.sleep(20);
  }
}

/** The shreds that the relay sends to an address, according to its table. */
function tableEntry(address: string): { tier: string; sent: bigint } | undefined {
  return sandbox.service.relay.snapshot().destinations.find((one) => one.address === address);
}

async function thousandPackets(): Promise<void> {
  const { received } = sandbox.service.relay.snapshot();
  await until(
    () => sandbox.service.relay.snapshot().received > received + 1000n,
    "a thousand packets at the relay",
  );
}

async function expectSilence(receiver: Receiver): Promise<void> {
  await thousandPackets(); // the relay's queues of before the change are sent
  await receiver.drained();
  const before = receiver.shreds;
  await thousandPackets();
  await receiver.drained();
  expect(receiver.shreds).toBe(before);
}

describe("registered tips", () => {
  it("raise the tier immediately, and the feed falls by one tier per day", async () => {
    const receiver = await Receiver.open();
    const added = await gateway.call("addDestination", [
      { region: "frankfurt", address: receiver.address },
    ]);
    expect(added).toMatchObject({ address: receiver.address, region: "frankfurt" });
    await until(() => receiver.challenges > 0, "a challenge");
    await expectSilence(receiver);
    expect(receiver.shreds).toBe(0);

    const first = await landedTip(200_000_000);
    expect(await register(first)).toEqual({ accepted: [expect.any(String)] });
    await tierBecomes("tier-1");
    await until(() => receiver.shreds > 100, "shreds of tier-1");
    expect(tableEntry(receiver.address)?.tier).toBe("tier-1");
    expect(await register(first)).toEqual({ accepted: [] });

    expect(await register(await landedTip(300_000_000))).toMatchObject({
      accepted: [expect.any(String)],
    });
    await tierBecomes("tier-2");
    await until(() => tableEntry(receiver.address)?.tier === "tier-2", "the wider table");
    expect(sandboxSources.map(({ tier: of }) => of)).toContain("tier-2");

    clock.move(dayMs);
    await tierBecomes("tier-2", true);
    expect(tableEntry(receiver.address)?.tier).toBe("tier-2");
    clock.move(dayMs);
    await tierBecomes("tier-1", true);
    expect(tableEntry(receiver.address)?.tier).toBe("tier-1");
    clock.move(dayMs);
    await tierBecomes(null);
    expect(tableEntry(receiver.address)).toBeUndefined();
    await expectSilence(receiver);

    const history = await gateway.call("getTierHistory");
    expect(Array.isArray(history) && history.map((event: unknown) => Object(event).kind)).toEqual([
      "downgraded",
      "grace_started",
      "downgraded",
      "grace_started",
      "upgraded",
      "upgraded",
    ]);
  });
});
