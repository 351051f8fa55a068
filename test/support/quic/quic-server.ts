// A test leader: accepts transactions over QUIC, and rejects them on request.
//
// It uses the same binding as the route, with its own sockets. Changes of its faults apply to later
// packets.

import { randomBytes, X509Certificate } from "node:crypto";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import { describe } from "vitest";
import { newCredentials } from "../../../src/core/quic/certificate.ts";
import {
  buildQuicheConfig,
  loadQuiche,
  packetBytesMax,
  type Quiche,
  type QuicheConfig,
  type QuicheConnection,
  tpuProtocol,
} from "../../../src/core/quic/quiche.ts";

const idBytes = 8;
const lookMs = 5;
const defaultHost = "127.0.0.1";

export interface QuicServerOptions {
  readonly streamsMax?: number;
  readonly streamBytesMax?: number;
  /** Requires a stateless retry of all peers. */
  readonly retries?: boolean;
  readonly protocol?: string;
  /** Default: 127.0.0.1. */
  readonly host?: string;
}

interface Peer {
  readonly quiche: QuicheConnection;
  readonly from: RemoteInfo;
  readonly parts: Map<number, Buffer[]>;
  isGreeted: boolean;
}

/** Runs tests that need the optional package, if it is installed. */
export const describeQuic = loadQuiche() ? describe : describe.skip;

export function quicheOfTests(): Quiche {
  const quiche = loadQuiche();
  if (!quiche) throw new Error("expected the optional package @matrixai/quic, got none");
  return quiche;
}

/** 32 bytes in hex; empty without a certificate. */
function identityIn(quiche: QuicheConnection): string {
  const [certificate] = quiche.peerCertChain() ?? [];
  if (!certificate) return "";
  const { publicKey } = new X509Certificate(Buffer.from(certificate));
  const { x } = publicKey.export({ format: "jwk" });
  return Buffer.from(x ?? "", "base64url").toString("hex");
}

export class QuicServer {
  readonly transactions: Buffer[] = [];
  /** Identity of each connection, in hex. */
  readonly identities: string[] = [];
  /** Number of received packets. */
  packets = 0;
  initials = 0;
  retried = 0;
  streamResets = 0;
  /** Application codes of received closes. */
  readonly closes: number[] = [];
  /** Never answers. */
  isSilent = false;
  /** Reads nothing: streams stay open. */
  isStuck = false;
  /** Closes every new connection with this code. */
  refusal: { readonly code: number; readonly isApp: boolean } | null = null;
  /** Asks the peer to stop every stream before it is read. */
  stopsStreams = false;
  readonly port: number;
  readonly #quiche: Quiche;
  readonly #socket: Socket;
  readonly #config: QuicheConfig;
  readonly #options: QuicServerOptions;
  readonly #peers = new Map<string, Peer>();
  readonly #pollTimer: NodeJS.Timeout;

  static async open(options: QuicServerOptions = {}): Promise<QuicServer> {
    const { host = defaultHost } = options;
    const type = isIPv6(host) ? "udp6" : "udp4";
    const socket = createSocket({ type, recvBufferSize: 1 << 22 });
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.bind(0, host, resolve);
    });
    return new QuicServer(socket, options);
  }

  private constructor(socket: Socket, options: QuicServerOptions) {
    this.#quiche = quicheOfTests();
    this.#socket = socket;
    this.#options = options;
    this.port = socket.address().port;
    this.#config = buildQuicheConfig(this.#quiche, {
      credentials: newCredentials(),
      asksCertificate: true,
      applicationProtocol: options.protocol ?? tpuProtocol,
      idleTimeoutMs: 10_000,
      packetBytesMax,
      connectionBytesMax: 10_000_000,
      streamBytesMax: options.streamBytesMax ?? 4096,
      streamsMax: options.streamsMax ?? 512,
    });
    socket.on("message", (packet, from) => this.#receive(packet, from));
    this.#pollTimer = setInterval(() => this.#expire(), lookMs);
  }

  get address(): { host: string; port: number } {
    return { host: this.#options.host ?? defaultHost, port: this.port };
  }

  /** Number of established, open connections. */
  get connections(): number {
    return new Set(this.#open()).size;
  }

  closeAll(code: number, isApp = true): void {
    for (const peer of this.#open()) {
      peer.quiche.close(isApp, code, Buffer.from("tests"));
      this.#flush(peer);
    }
  }

  close(): void {
    clearInterval(this.#pollTimer);
    this.#socket.close();
  }

  #open(): Peer[] {
    return [...new Set(this.#peers.values())].filter(
      ({ quiche }) => quiche.isEstablished() && !quiche.isClosed() && !quiche.isDraining(),
    );
  }

  #receive(packet: Buffer, from: RemoteInfo): void {
    this.packets++;
    if (this.isSilent) return;
    let peer: Peer | undefined;
    try {
      peer = this.#peerOf(packet, from);
    } catch {
      return; // not QUIC
    }
    if (!peer) return;
    const local = this.address;
    try {
      peer.quiche.recv(packet, { from: { host: from.address, port: from.port }, to: local });
    } catch {
      // The state of the connection shows the error.
    }
    this.#serve(peer);
    this.#flush(peer);
  }

  #peerOf(packet: Buffer, from: RemoteInfo): Peer | undefined {
    const quiche = this.#quiche;
    const header = quiche.Header.fromSlice(packet, idBytes);
    const known = this.#peers.get(Buffer.from(header.dcid).toString("hex"));
    if (known || header.ty !== quiche.Type.Initial) return known;
    this.initials++;
    const token = header.token ?? new Uint8Array(0);
    const remote = { host: from.address, port: from.port };
    let original: Uint8Array | null = null;
    let scid: Uint8Array = randomBytes(idBytes);
    if (this.#options.retries) {
      if (token.length === 0) {
        this.retried++;
        const out = Buffer.alloc(packetBytesMax);
        const { scid: theirs, dcid, version } = header;
        const length = quiche.retry(theirs, dcid, scid, dcid, version, out);
        this.#socket.send(out.subarray(0, length), from.port, from.address);
        return undefined;
      }
      original = token;
      scid = header.dcid;
    }
    const connection = quiche.Connection.accept(scid, original, this.address, remote, this.#config);
    const peer: Peer = { quiche: connection, from, parts: new Map(), isGreeted: false };
    this.#peers.set(Buffer.from(scid).toString("hex"), peer);
    this.#peers.set(Buffer.from(header.dcid).toString("hex"), peer);
    return peer;
  }

  #serve(peer: Peer): void {
    const { quiche } = peer;
    if (quiche.isDraining() || quiche.isClosed()) {
      const error = quiche.peerError();
      if (error && peer.isGreeted) this.closes.push(error.errorCode);
      peer.isGreeted = false;
      return;
    }
    if (!quiche.isEstablished()) return;
    if (!peer.isGreeted) {
      peer.isGreeted = true;
      this.identities.push(identityIn(quiche));
      if (this.refusal) {
        quiche.close(this.refusal.isApp, this.refusal.code, Buffer.from("tests"));
        return;
      }
    }
    if (this.isStuck) return;
    for (const streamId of quiche.readable()) this.#read(peer, streamId);
  }

  #read({ quiche, parts }: Peer, streamId: number): void {
    if (this.stopsStreams) {
      quiche.streamShutdown(streamId, this.#quiche.Shutdown.Read, 7);
      return;
    }
    try {
      for (;;) {
        const chunk = Buffer.alloc(65_536);
        const read = quiche.streamRecv(streamId, chunk);
        if (!read) return;
        const own = parts.get(streamId) ?? [];
        own.push(chunk.subarray(0, read[0]));
        parts.set(streamId, own);
        if (!read[1]) continue;
        parts.delete(streamId);
        this.transactions.push(Buffer.concat(own));
        return;
      }
    } catch {
      this.streamResets++;
      parts.delete(streamId);
    }
  }

  #flush({ quiche, from }: Peer): void {
    for (;;) {
      const packet = Buffer.allocUnsafe(packetBytesMax);
      let written: ReturnType<QuicheConnection["send"]> = null;
      try {
        written = quiche.send(packet);
      } catch {
        return;
      }
      if (!written) return;
      this.#socket.send(packet.subarray(0, written[0]), from.port, from.address);
    }
  }

  #expire(): void {
    for (const peer of new Set(this.#peers.values())) {
      if (this.isSilent || peer.quiche.isClosed()) continue;
      if (peer.quiche.timeout() === 0) peer.quiche.onTimeout();
      this.#serve(peer);
      this.#flush(peer);
    }
  }
}
