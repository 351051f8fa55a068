// Forged ICMP errors against destinations of accounts, in the complete sandbox: a stranger cannot pause
// a living receiver, and a closed port is still detected.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
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
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { closing } from "../support/closing.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";

/**
 * Sends ICMP "port unreachable" twice a second, from an address that is neither the relay's nor the
 * destination's, about a datagram of the relay to the destination. Ends by itself after two minutes.
 */
const forger = `
import socket, struct, sys, time
relay_port, port = int(sys.argv[1]), int(sys.argv[2])
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
raw.bind(("127.0.0.99", 0))
host = socket.inet_aton("127.0.0.1")
payload = bytes(range(256)) * 2
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0, host, host)
udp = struct.pack("!HHHH", relay_port, port, 8 + len(payload), 0)
body = struct.pack("!BBHI", 3, 3, 0, 0) + ip + udp + payload
total = sum(struct.unpack("!%dH" % (len(body) // 2), body))
while total >> 16: total = (total & 0xffff) + (total >> 16)
body = body[:2] + struct.pack("!H", ~total & 0xffff) + body[4:]
for _ in range(240):
    raw.sendto(body, ("127.0.0.1", 0))
    print("sent", flush=True)
    time.sleep(0.5)
`;

const mayForge =
  spawnSync("python3", ["-c", "import socket; socket.socket(2, socket.SOCK_RAW, 1)"]).status === 0;

/** A receiver of shreds that never answers challenges. */
class SilentReceiver {
  readonly #socket: Socket;
  readonly address: string;
  readonly port: number;
  /** The port from which the shreds come; every customer knows it. */
  relayPort = 0;
  shreds = 0;
  token = "";

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.port = socket.address().port;
    this.address = `127.0.0.1:${this.port}`;
    socket.on("message", (packet, from) => {
      if (packet.length > 64) {
        this.shreds++;
        this.relayPort = from.port;
      } else {
        this.token = packet.subarray(8, 24).toString("hex");
      }
    });
  }

  static async open(): Promise<SilentReceiver> {
    const socket = createSocket({ type: "udp4", recvBufferSize: 16 << 20 });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return closing(new SilentReceiver(socket));
  }

  #isClosed = false;

  close(): void {
    if (!this.#isClosed) this.#socket.close();
    this.#isClosed = true;
  }
}

async function payTip(sandbox: Sandbox, gateway: RpcClient): Promise<void> {
  const chain = new Connection(`http://${sandbox.endpoint.address}`, "processed");
  const payer = Keypair.generate();
  await chain.requestAirdrop(payer.publicKey, 2 * LAMPORTS_PER_SOL);
  await until(() => sandbox.chain.account(payer.publicKey.toBase58()) !== null, "the airdrop");
  const accounts = await gateway.call("getShredTipAccounts");
  const toPubkey = new PublicKey(Array.isArray(accounts) ? String(accounts[0]) : "");
  const { blockhash, lastValidBlockHeight } = await chain.getLatestBlockhash();
  const tip = new Transaction({ feePayer: payer.publicKey, blockhash, lastValidBlockHeight }).add(
    SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey, lamports: 200_000_000 }),
  );
  tip.sign(payer);
  const transaction = tip.serialize();
  await chain.sendRawTransaction(transaction, { skipPreflight: true });
  const slot = await chain.getSlot();
  const url = new URL(sandbox.gatewayUrl);
  url.pathname = "/shred-pay";
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify([{ transaction: transaction.toString("base64"), slot }]),
  });
  expect(answer.status).toBe(200);
}

describe.skipIf(!mayForge)("forged ICMP errors", () => {
  it("do not pause a living receiver, and a closed port is still detected", async () => {
    const sandbox = await runningSandbox("127.0.0.1:0");
    const gateway = new RpcClient(sandbox.gatewayUrl);
    const receiver = await SilentReceiver.open();
    const { id } = Object(
      await gateway.call("addDestination", [{ region: "frankfurt", address: receiver.address }]),
    );
    await until(() => receiver.token !== "", "the challenge");
    await gateway.call("proveDestination", [id, receiver.token]);
    await payTip(sandbox, gateway);
    await until(() => receiver.shreds > 100, "shreds");

    const errors = (): bigint =>
      sandbox.service.relay
        .snapshot()
        .destinations.find(({ address }) => address === receiver.address)?.icmp ?? 0n;
    const child: ChildProcess = spawn("python3", [
      "-c",
      forger,
      String(receiver.relayPort),
      String(receiver.port),
    ]);
    closing({ close: () => void child.kill("SIGKILL") });
    // Twice as long as errors must continue to be taken seriously.
    await until(() => errors() >= 50n, "25 seconds of forged errors");
    const { shreds } = receiver;
    await until(() => receiver.shreds > shreds + 200, "more shreds");
    const list = await gateway.call("getDestinations");
    expect(JSON.stringify(list)).toContain('"state":"active"');
    child.kill("SIGKILL");

    receiver.close();
    let state = "";
    while (!state.includes('"pauseReason":"icmp_unreachable"')) {
      await systemClock.sleep(200);
      state = JSON.stringify(await gateway.call("getDestinations"));
    }
  });
});
