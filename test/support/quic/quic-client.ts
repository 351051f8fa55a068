// A bare QUIC client that can use a leader's port correctly or incorrectly.
//
// It is independent of the product's client: quiche, a socket, one connection. It opens streams as
// the peer grants credit, and queues data until then.

import { randomBytes } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { newCredentials } from "../../../src/core/quic/certificate.ts";
import {
  buildQuicheConfig,
  loadQuiche,
  packetBytesMax,
  type Quiche,
  type QuicheConfig,
  type QuicheConnection,
  type QuicheCredentials,
  tpuProtocol,
} from "../../../src/core/quic/quiche.ts";
import { closing } from "../closing.ts";

/** If quiche is not available, tests are skipped: describe.skipIf(!quiche). */
export const quiche = loadQuiche();

/** Call this only if the test was not skipped. */
export function needQuiche(): Quiche {
  if (!quiche) throw new Error("expected quiche, but it is not installed");
  return quiche;
}

export interface QuicEnd {
  readonly by: "peer" | "here" | "time";
  readonly isApp?: boolean;
  readonly code?: number;
  readonly reason?: string;
}

export interface QuicClientOptions {
  /** null: no certificate. Default: an ephemeral key. */
  readonly credentials?: QuicheCredentials | null;
  readonly protocol?: string;
  readonly idleTimeoutMs?: number;
  /** UDP payload of the longest packet. Default: that of the product. */
  readonly packetBytesMax?: number;
  /** Unread bytes of a response. Default: 64 kB. */
  readonly responseBytesMax?: number;
  /** Called with every outgoing packet. */
  readonly onTransmit?: (packet: Buffer) => void;
}

function configOf(options: QuicClientOptions): QuicheConfig {
  const { protocol = tpuProtocol, idleTimeoutMs = 10_000 } = options;
  if (options.credentials === null) {
    const config = needQuiche().Config.withBoringSslCtx(false, false, null, null, null, "ed25519");
    config.setApplicationProtos([protocol]);
    config.setMaxIdleTimeout(idleTimeoutMs);
    return config;
  }
  const config = buildQuicheConfig(needQuiche(), {
    credentials: options.credentials ?? newCredentials(),
    applicationProtocol: protocol,
    idleTimeoutMs,
    packetBytesMax: options.packetBytesMax ?? packetBytesMax,
    connectionBytesMax: 1 << 20,
    streamBytesMax: 0,
    streamsMax: 0,
  });
  config.setInitialMaxStreamDataBidiLocal(options.responseBytesMax ?? 65_536);
  return config;
}

export class QuicClient {
  readonly quic: QuicheConnection;
  /** Settles when the connection has ended. */
  readonly ended: Promise<QuicEnd>;
  /** Settles when the handshake is complete on this side; the peer may still reject it. */
  readonly established: Promise<void>;
  /** Every received packet. */
  readonly packets: Buffer[] = [];
  /** Number of streams that were completely passed to quiche. */
  streams = 0;
  #end: (end: QuicEnd) => void = () => undefined;
  #stand: () => void = () => undefined;
  #onTransmit: (packet: Buffer) => void = () => undefined;
  #isOver = false;
  #isClosed = false;
  readonly #socket: Socket;
  readonly #local: { host: string; port: number };
  readonly #remote: { host: string; port: number };
  readonly #waiting: Uint8Array[] = [];
  #partial: { id: number; rest: Uint8Array } | undefined;
  #nextId = 2;
  #nextRequestId = 0;
  /** Rests of requests that the peer's flow control did not accept yet. */
  readonly #unsent = new Map<number, Uint8Array>();
  readonly #requests = new Map<number, { parts: Buffer[]; end: (bytes: Buffer) => void }>();
  #timer: NodeJS.Timeout | undefined;

  static readonly configOf = configOf;

  /** Begins the handshake. `address`: "ip:port". */
  static async open(address: string, options: QuicClientOptions = {}): Promise<QuicClient> {
    const socket = await bound();
    const client = new QuicClient(socket, parseEndpoint(address).port, configOf(options));
    client.#onTransmit = options.onTransmit ?? (() => undefined);
    client.work();
    return closing(client);
  }

  private constructor(socket: Socket, port: number, config: QuicheConfig) {
    this.#socket = socket;
    this.#local = { host: "127.0.0.1", port: socket.address().port };
    this.#remote = { host: "127.0.0.1", port };
    const { Connection } = needQuiche();
    this.quic = Connection.connect(null, randomBytes(20), this.#local, this.#remote, config);
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.established = new Promise((resolve) => {
      this.#stand = resolve;
    });
    this.#listen();
  }

  get localPort(): number {
    return this.#local.port;
  }

  /** Sends one stream as soon as the peer grants it. */
  send(bytes: Uint8Array): void {
    this.#waiting.push(bytes);
    this.work();
  }

  /** Sends one bidirectional stream and returns the response, after its end. */
  request(bytes: Uint8Array): Promise<Buffer> {
    const id = this.#nextRequestId;
    this.#nextRequestId += 4;
    return new Promise((resolve) => {
      this.#requests.set(id, { parts: [], end: resolve });
      this.#unsent.set(id, bytes);
      this.work();
    });
  }

  /** Starts a bidirectional stream and leaves it open. Returns the response, if there is one. */
  beginRequest(bytes: Uint8Array): Promise<Buffer> {
    const id = this.#nextRequestId;
    this.#nextRequestId += 4;
    return new Promise((resolve) => {
      this.#requests.set(id, { parts: [], end: resolve });
      this.quic.streamSend(id, bytes, false);
      this.work();
    });
  }

  /** Sends one bidirectional stream and refuses its response, both in one packet. */
  cancelledRequest(bytes: Uint8Array): void {
    const id = this.#nextRequestId;
    this.#nextRequestId += 4;
    const accepted = this.quic.streamSend(id, bytes, true);
    if (accepted !== bytes.length) throw new Error(`expected room for stream ${id}`);
    this.quic.streamShutdown(id, needQuiche().Shutdown.Read, 5);
    this.work();
  }

  /** Resets a started stream. */
  reset(id: number): void {
    this.quic.streamShutdown(id, needQuiche().Shutdown.Write, 7);
    this.work();
  }

  /** Starts a stream and leaves it open. Returns its id. */
  begin(bytes: Uint8Array): number {
    const id = this.#nextId;
    this.#nextId += 4;
    this.quic.streamSend(id, bytes, false);
    this.work();
    return id;
  }

  /** Continues a started stream. */
  extend(id: number, bytes: Uint8Array): void {
    this.quic.streamSend(id, bytes, false);
    this.work();
  }

  /** Continues a started stream to its end. */
  finish(id: number, bytes: Uint8Array): void {
    this.quic.streamSend(id, bytes, true);
    this.work();
  }

  /** The peer has closed the connection, or it has ended otherwise. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Number of granted, unused streams. */
  get credit(): number {
    return this.quic.peerStreamsLeftUni();
  }

  /** Number of granted, unused bidirectional streams. */
  get requestCredit(): number {
    return this.quic.peerStreamsLeftBidi();
  }

  /** Sends raw bytes to the same address. */
  transmit(packet: Uint8Array): void {
    this.#socket.send(packet, this.#remote.port, this.#remote.host);
  }

  work(): void {
    if (this.#isOver) return;
    if (this.quic.isEstablished()) {
      this.#stand();
      this.#write();
      this.#readResponses();
    }
    const buffer = Buffer.alloc(1500);
    for (;;) {
      const sent = this.#sendOne(buffer);
      if (!sent) break;
      const packet = Buffer.from(buffer.subarray(0, sent));
      this.#onTransmit(packet);
      this.transmit(packet);
    }
    if (this.quic.isDraining() || this.quic.isClosed()) this.#over();
    else this.#arm();
  }

  /** Closes with a close packet. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.quic.close(true, 0, new Uint8Array(0));
    } catch {
      // The connection is already closed.
    }
    this.work();
    this.#over();
    await new Promise(setImmediate); // the socket sends one turn later
    this.#socket.close();
  }

  #listen(): void {
    this.#socket.on("message", (packet) => {
      this.packets.push(Buffer.from(packet));
      try {
        this.quic.recv(packet, { from: this.#remote, to: this.#local });
      } catch {
        // The error is visible in `ended`.
      }
      this.work();
    });
    this.#socket.on("error", () => undefined);
  }

  #sendOne(buffer: Buffer): number {
    try {
      return this.quic.send(buffer)?.[0] ?? 0;
    } catch {
      return 0;
    }
  }

  #write(): void {
    for (const [id, rest] of this.#unsent) {
      const accepted = this.quic.streamSend(id, rest, true);
      if (accepted === null) continue;
      if (accepted === rest.length) this.#unsent.delete(id);
      else this.#unsent.set(id, rest.subarray(accepted));
    }
    for (;;) {
      if (!this.#partial) {
        const rest = this.credit > 0 ? this.#waiting.shift() : undefined;
        if (!rest) return;
        this.#partial = { id: this.#nextId, rest };
        this.#nextId += 4;
      }
      const { id, rest } = this.#partial;
      const accepted = this.quic.streamSend(id, rest, true) ?? 0;
      if (accepted < rest.length) {
        this.#partial = { id, rest: rest.subarray(accepted) };
        return;
      }
      this.#partial = undefined;
      this.streams++;
    }
  }

  #readResponses(): void {
    const buffer = Buffer.alloc(65_536);
    for (const id of this.quic.readable()) {
      const request = this.#requests.get(id);
      const read = this.quic.streamRecv(id, buffer);
      if (!request || !read) continue;
      request.parts.push(Buffer.from(buffer.subarray(0, read[0])));
      if (!read[1]) continue;
      this.#requests.delete(id);
      request.end(Buffer.concat(request.parts));
    }
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const delayMs = this.quic.timeout();
    if (delayMs === null) return;
    this.#timer = setTimeout(
      () => {
        this.quic.onTimeout();
        this.work();
      },
      Math.max(1, delayMs),
    );
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    const peer = this.quic.peerError();
    const error = peer ?? this.quic.localError();
    const by = peer ? "peer" : error ? "here" : "time";
    this.#end({
      by,
      ...(error && {
        isApp: error.isApp,
        code: error.errorCode,
        reason: Buffer.from(error.reason).toString(),
      }),
    });
  }
}

async function bound(): Promise<Socket> {
  const socket = createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}
