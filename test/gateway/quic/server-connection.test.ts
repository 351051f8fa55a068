// One connection of the ingress with a real client in memory: in which order it reads and writes.

import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { dialects } from "../../../src/core/quic/dialects.ts";
import {
  buildQuicheConfig,
  packetBytesMax,
  type QuicheConnection,
} from "../../../src/core/quic/quiche.ts";
import { packetsOf, takePacket } from "../../../src/core/quic/quiche-calls.ts";
import { ServerConnection } from "../../../src/gateway/quic/server-connection.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { needQuiche, QuicClient } from "../../support/quic/quic-client.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";

const clientAddress = { host: "127.0.0.1", port: 1 };
const serverAddress = { host: "127.0.0.1", port: 2 };

function serverSide(streamsMax: number): QuicheConnection {
  const config = buildQuicheConfig(needQuiche(), {
    credentials: newEcdsaCredentials("shredway"),
    asksCertificate: true,
    applicationProtocol: dialects.map(({ protocol }) => protocol),
    idleTimeoutMs: 30_000,
    packetBytesMax,
    connectionBytesMax: 1 << 20,
    streamBytesMax: 1 << 16,
    streamsMax,
    bidirectionalStreamsMax: streamsMax,
  });
  const { Connection } = needQuiche();
  return Connection.accept(randomBytes(8), null, serverAddress, clientAddress, config);
}

interface PairOptions {
  readonly streamsMax: number;
  readonly responseBytesMax: number;
  /** Default: true. */
  readonly isConnected?: boolean;
}

/** Client and connection without a network: packets move only when a test moves them. */
class Pair {
  readonly client: QuicheConnection;
  readonly connection: ServerConnection;
  /** Streams that the connection has passed on. */
  readonly completed: number[] = [];
  /** How often the connection reported its end. */
  ends = 0;
  /** How often the connection tried to write a stream. */
  writes = 0;
  readonly #toClient: Buffer[] = [];

  constructor({ streamsMax, responseBytesMax, isConnected = true }: PairOptions) {
    const quiche = needQuiche();
    const config = QuicClient.configOf({
      credentials: newEcdsaCredentials("good"),
      protocol: "shredway-tpu",
      responseBytesMax,
    });
    const [here, there] = [clientAddress, serverAddress];
    this.client = quiche.Connection.connect(null, randomBytes(20), here, there, config);
    const host = {
      quiche,
      clock: new ManualClock(),
      settings: { ...IngressRun.settings, listeners: [], streamsMax },
      held: { max: 1 << 20, connectionMin: 0, total: 0 },
      send: (packet: Buffer) => void this.#toClient.push(packet),
      connected: () => true,
      completed: (_: ServerConnection, id: number) => void this.completed.push(id),
      flush: () => undefined,
      dropped: () => undefined,
      handshakeOver: () => undefined,
      ended: () => void this.ends++,
      forgotten: () => undefined,
    };
    const quic = this.#counted(serverSide(streamsMax));
    const path = { local: serverAddress, remote: clientAddress, isProven: true };
    this.connection = new ServerConnection(1, host, quic, path);
    if (!isConnected) return;
    this.exchange();
    this.connection.admit();
  }

  /** Passes everything that the client has to say, and lets the connection work once. */
  toServer(): boolean {
    const packets = [...packetsOf(this.client)];
    for (const { packet } of packets) this.connection.receive(packet);
    this.connection.work();
    return packets.length > 0;
  }

  exchange(): void {
    let isBusy = true;
    while (isBusy) {
      isBusy = this.toServer() || this.#toClient.length > 0;
      this.toClient();
    }
  }

  /** Passes everything that the connection has sent. */
  toClient(): void {
    for (const packet of this.#toClient.splice(0)) {
      takePacket(this.client, packet, { from: serverAddress, to: clientAddress });
    }
  }

  /** Loses everything that the connection has sent. Returns the number of packets. */
  lose(): number {
    return this.#toClient.splice(0).length;
  }

  #counted(quic: QuicheConnection): QuicheConnection {
    const write: QuicheConnection["streamSend"] = quic.streamSend.bind(quic);
    const counted: QuicheConnection["streamSend"] = (...words) => {
      this.writes++;
      return write(...words);
    };
    return Object.assign(quic, { streamSend: counted });
  }
}

describeQuic("a transaction that arrives before the end of the handshake", () => {
  it("waits for it, because the sockets of a listener are read one after the other", () => {
    const pair = new Pair({ streamsMax: 64, responseBytesMax: 0, isConnected: false });
    while (!pair.client.isEstablished()) {
      pair.toServer();
      pair.toClient();
    }
    const sent = () => [...packetsOf(pair.client)].map(({ packet }) => Buffer.from(packet));
    const finished = sent();
    pair.client.streamSend(2, Buffer.from("a"), true);
    const early = sent();
    const isLong = (packet: Buffer) => ((packet[0] ?? 0) & 0x80) !== 0;
    expect(finished.map(isLong)).toContain(true);
    expect(early.map(isLong)).toEqual([false]);
    for (const packet of [...early, ...finished]) pair.connection.receive(packet);
    pair.connection.work();
    pair.connection.admit();
    pair.connection.work();
    expect(pair.completed).toEqual([2]);
  });
});

describeQuic("a connection that its client closes", () => {
  it("ends when its streams are read and answered, before quiche forgets it", () => {
    const pair = new Pair({ streamsMax: 2, responseBytesMax: 0 });
    for (const id of [2, 0]) pair.client.streamSend(id, Buffer.from("a"), true);
    pair.exchange();
    expect(pair.completed).toEqual([0, 2]);
    pair.connection.answer(0, 200, "blocked by flow control");
    pair.client.close(true, 0, new Uint8Array(0));
    pair.toServer();
    expect(pair.ends).toBe(0);
    pair.connection.answer(2, 200, "ok");
    pair.connection.work();
    expect(pair.ends).toBe(1);
    pair.connection.leave();
    expect(pair.ends).toBe(1);
  });

  it("ends only after the gateway's decision about the key, because transactions may wait for it", () => {
    const pair = new Pair({ streamsMax: 64, responseBytesMax: 0, isConnected: false });
    pair.exchange();
    pair.client.streamSend(2, Buffer.from("a"), true);
    pair.toServer();
    pair.client.close(true, 0, new Uint8Array(0));
    pair.toServer();
    expect({ completed: pair.completed, ends: pair.ends }).toEqual({ completed: [], ends: 0 });
    pair.connection.admit();
    pair.connection.work();
    expect(pair.completed).toEqual([2]);
    pair.connection.answer(2, 200, "ok");
    pair.connection.work();
    expect(pair.ends).toBe(1);
  });
});

describeQuic("a connection that is closed here", () => {
  /** The client's packets arrive; the answers to `lost` of them do not. Returns how many answers there were. */
  function answersTo(pair: Pair, lost: number): number[] {
    return Array.from({ length: lost }, (_, i) => {
      pair.client.streamSend(2 + 4 * i, Buffer.from("a"), true);
      pair.toServer();
      return pair.lose();
    });
  }

  it("repeats its close to a client that lost it, ever more seldom", () => {
    const pair = new Pair({ streamsMax: 64, responseBytesMax: 0 });
    pair.connection.dismiss(4, "excess");
    pair.connection.work();
    expect(pair.lose()).toBe(1);
    expect(answersTo(pair, 9)).toEqual([1, 1, 0, 1, 0, 0, 0, 1, 0]);
    expect(pair.client.peerError()).toBeNull();
    for (let i = 9; i < 16; i++) {
      pair.client.streamSend(2 + 4 * i, Buffer.from("a"), true);
      pair.toServer();
      pair.toClient();
    }
    expect(pair.client.peerError()).toMatchObject({ isApp: true, errorCode: 4 });
    expect({ completed: pair.completed, ends: pair.ends }).toEqual({ completed: [], ends: 0 });
  });
});

describeQuic("a connection whose client accepts no response", () => {
  it("tries to write each response once", () => {
    const pair = new Pair({ streamsMax: 64, responseBytesMax: 0 });
    const ids = Array.from({ length: 20 }, (_, i) => 4 * i);
    for (const id of ids) pair.client.streamSend(id, Buffer.from("a"), true);
    pair.exchange();
    expect(pair.completed).toEqual(ids);
    for (const id of ids) pair.connection.answer(id, 200, "ok");
    expect(pair.writes).toBe(ids.length);
  });

  it("writes what was blocked before it reads, so that their streams make room", () => {
    const pair = new Pair({ streamsMax: 4, responseBytesMax: 10 });
    const ids = [0, 4, 8, 12];
    for (const id of ids) pair.client.streamSend(id, Buffer.from("a"), true);
    pair.exchange();
    for (const id of ids) pair.connection.answer(id, 200, "a signature");
    pair.exchange();
    for (const id of ids) expect(pair.client.streamRecv(id, Buffer.alloc(100))?.[0]).toBe(10);
    pair.client.streamSend(2, Buffer.from("b"), true);
    pair.toServer();
    expect(pair.completed).toEqual([...ids, 2]);
  });
});
