// A leader's TPU port: QUIC, one transaction per stream.
//
// Opened by tpu-leaders.ts for every validator of the sandbox, and by tests. One UDP socket. First
// packets get a stateless retry, peers must send a certificate with an Ed25519 key, and limits
// depend on stake. Transactions go to `onTransaction`, which must not throw. `faults` may change at
// any time. Differences from Agave, because of quiche: the initial stream credit is the same for
// all (limits.ts). Peers without a certificate get TLS alert 116 instead of 50. Key exchanges other
// than x25519 are accepted. Packets of unknown connections get no stateless reset. A stream that
// the peer was asked to stop loses its credit.

import { randomBytes } from "node:crypto";
import type { RemoteInfo, Socket } from "node:dgram";
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { newCredentials } from "../../core/quic/certificate.ts";
import {
  buildQuicheConfig,
  packetBytesMax,
  type Quiche,
  type QuicheAddress,
  type QuicheConfig,
  type QuicheConnection,
  type QuicheHeader,
  tpuProtocol,
} from "../../core/quic/quiche.ts";
import { RetryTokens } from "../../gateway/quic/retry-tokens.ts";
import { openUdpSocket } from "../../relay/data-plane/udp-socket.ts";
import { ConnectionTable } from "./connection-table.ts";
import {
  type CloseReason,
  defaultLimits,
  emptyCounts,
  type TpuCounts,
  type TpuLimits,
  transactionBytesMax,
} from "./limits.ts";
import { type ConnectionHost, PeerConnection, type TpuPeer } from "./peer-connection.ts";

const connectionIdBytes = 20;
/** Minimum length of a first packet (RFC 9000, 14.1). */
const firstPacketBytesMin = 1200;
const receiveBufferBytes = 4 << 20;
const longHeaderBit = 0x80;

interface TpuFaults {
  /**
   * Every new connection is closed with this reason after its handshake. "certificate": with the
   * TLS alert for an unsupported certificate.
   */
  refuse: CloseReason | "certificate" | null;
  /** Packets are counted but not answered, and nothing is sent, like an unreachable host. */
  silent: boolean;
  /** Delay of every handshake packet. */
  handshakeDelayMs: number;
}

export interface TpuServerOptions {
  readonly quiche: Quiche;
  readonly clock: Clock;
  /** Address without a port. Default "127.0.0.1". */
  readonly host?: string;
  readonly limits?: Partial<TpuLimits>;
  /** Stakes of the peers. Default: all are unstaked. */
  readonly stakes?: StakeTable;
  /** Answers first packets with a retry. Default true. */
  readonly retries?: boolean;
  readonly onTransaction: (wire: Uint8Array, peer: TpuPeer) => void;
}

/** Lamports. */
export interface StakeTable {
  readonly total: bigint;
  of(identity: string): bigint;
}

const noStakes: StakeTable = { total: 0n, of: () => 0n };

export class TpuServer {
  readonly faults: TpuFaults = { refuse: null, silent: false, handshakeDelayMs: 0 };
  readonly counts: TpuCounts = emptyCounts();
  readonly limits: TpuLimits;
  readonly #options: TpuServerOptions;
  readonly #local: { host: string; port: number };
  readonly #table: ConnectionTable;
  readonly #host: ConnectionHost;
  readonly #due = new Set<PeerConnection>();
  #tokens: RetryTokens;
  #config: QuicheConfig;
  #socket: Socket | undefined;
  #isClosed = false;

  /** Listens on a port that the kernel chooses. Throws ShredwayError "system". */
  static async open(options: TpuServerOptions): Promise<TpuServer> {
    const server = new TpuServer(options);
    await server.start();
    return server;
  }

  private constructor(options: TpuServerOptions) {
    this.#options = options;
    this.limits = { ...defaultLimits, ...options.limits };
    this.#local = { host: options.host ?? "127.0.0.1", port: 0 };
    this.#table = new ConnectionTable(options.clock, this.limits, options.stakes ?? noStakes);
    this.#tokens = new RetryTokens(options.clock);
    this.#config = this.#makeConfig();
    this.#host = {
      quiche: options.quiche,
      clock: options.clock,
      limits: this.limits,
      counts: this.counts,
      send: (packet, to) => this.#send(packet, to),
      admit: (identity) => this.#admit(identity),
      transaction: options.onTransaction,
      onClosed: (connection) => this.#table.remove(connection),
    };
  }

  /** "ip:port", unchanged by `stop` and `start`. */
  get address(): string {
    const { host, port } = this.#local;
    return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  }

  /** Number of connections after the handshake. */
  get connections(): number {
    return this.#table.openCount;
  }

  /** Closes every connection with `reason`. */
  disconnect(reason: CloseReason): void {
    for (const connection of this.#table.connections()) {
      if (!connection.peer) continue;
      connection.close(reason);
      connection.work();
    }
  }

  /** Stops without notice to peers, like a crashed leader process. */
  async stop(): Promise<void> {
    for (const connection of this.#table.connections()) connection.forget();
    const socket = this.#socket;
    this.#socket = undefined;
    if (!socket) return;
    const closed = once(socket, "close");
    socket.close();
    await closed;
  }

  /**
   * Listens on the same port as before, without any earlier state. Throws ShredwayError "system".
   */
  async start(): Promise<void> {
    if (this.#socket || this.#isClosed) return;
    this.#tokens = new RetryTokens(this.#options.clock);
    this.#config = this.#makeConfig();
    const { host, port } = this.#local;
    let socket: Socket;
    try {
      socket = openUdpSocket({ host, port, recvBufferSize: receiveBufferBytes });
    } catch (cause) {
      const message = `cannot listen on ${this.address} (UDP): ${messageOf(cause)}`;
      throw new ShredwayError("system", message, { cause });
    }
    this.#socket = socket;
    this.#local.port = socket.address().port;
    socket.on("message", (packet, from) => this.#receive(packet, from));
    // The kernel's errors for earlier packets are ignored: QUIC detects the loss itself.
    socket.on("error", () => undefined);
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Moves to another port that the kernel chooses. */
  async move(): Promise<void> {
    await this.stop();
    this.#local.port = 0;
    await this.start();
  }

  /** Closes all connections with notice. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const connection of this.#table.connections()) connection.leave();
    await nextTurn(); // the socket sends one turn later, and not after a close
    await this.stop();
  }

  #makeConfig(): QuicheConfig {
    return buildQuicheConfig(this.#options.quiche, {
      credentials: newCredentials(), // random, as with real leaders: it is not verified
      asksCertificate: true,
      applicationProtocol: tpuProtocol,
      idleTimeoutMs: this.limits.idleMs,
      packetBytesMax,
      connectionBytesMax: this.limits.streamsMax * transactionBytesMax,
      streamBytesMax: 2 * transactionBytesMax, // large enough to detect a transaction that is too long
      streamsMax: this.limits.streamsMax,
    });
  }

  #admit(identity: string): ReturnType<ConnectionHost["admit"]> {
    const { refuse } = this.faults;
    if (refuse === "certificate") return undefined;
    if (refuse !== null) return refuse;
    return this.#table.admit(identity, (connection) => {
      connection.close("dropped");
      connection.work();
    });
  }

  #send(packet: Buffer, { host, port }: QuicheAddress): void {
    if (!this.faults.silent) this.#socket?.send(packet, port, host);
  }

  #receive(packet: Buffer, { address: host, port }: RemoteInfo): void {
    this.counts.packets++;
    if (this.faults.silent) return;
    const from = { host, port };
    const { handshakeDelayMs } = this.faults;
    const isHandshake = ((packet[0] ?? 0) & longHeaderBit) !== 0;
    if (isHandshake && handshakeDelayMs > 0) {
      const socket = this.#socket;
      this.#options.clock.after(handshakeDelayMs, () => {
        if (socket === this.#socket) this.#take(packet, from);
      });
    } else {
      this.#take(packet, from);
    }
  }

  #take(packet: Buffer, from: QuicheAddress): void {
    const connection = this.#connectionOf(packet, from);
    if (!connection) return;
    connection.receive(packet, from, this.#local);
    // Packets that arrive together are processed together, with one response for all.
    if (this.#due.size === 0) setImmediate(() => this.#work());
    this.#due.add(connection);
  }

  #work(): void {
    const due = [...this.#due];
    this.#due.clear();
    for (const connection of due) connection.work();
  }

  #connectionOf(packet: Buffer, from: QuicheAddress): PeerConnection | undefined {
    if (((packet[0] ?? 0) & longHeaderBit) === 0) {
      const known = this.#table.find(packet.subarray(1, 1 + connectionIdBytes));
      if (!known) this.counts.packetsUnknown++;
      return known;
    }
    let header: QuicheHeader;
    try {
      header = this.#options.quiche.Header.fromSlice(packet, connectionIdBytes);
    } catch {
      this.counts.packetsUnknown++;
      return undefined;
    }
    return this.#table.find(header.dcid) ?? this.#begin(header, packet.length, from);
  }

  /** A first packet: leads to version negotiation, a retry, or a new connection. */
  #begin(
    { ty, version, dcid, scid, token }: QuicheHeader,
    packetBytes: number,
    from: QuicheAddress,
  ): PeerConnection | undefined {
    const { quiche, retries = true } = this.#options;
    const out = Buffer.alloc(packetBytesMax);
    if (packetBytes < firstPacketBytesMin) {
      this.counts.packetsUnknown++;
    } else if (!quiche.versionIsSupported(version)) {
      this.#send(out.subarray(0, quiche.negotiateVersion(scid, dcid, out)), from);
    } else if (ty !== quiche.Type.Initial) {
      this.counts.packetsUnknown++;
    } else if (!retries) {
      return this.#accept(randomBytes(connectionIdBytes), dcid, null, from);
    } else if (!token || token.length === 0) {
      this.counts.retries++;
      const offered = randomBytes(connectionIdBytes);
      const minted = this.#tokens.mint(from, dcid, offered);
      const length = quiche.retry(scid, dcid, offered, minted, version, out);
      this.#send(out.subarray(0, length), from);
    } else {
      const originalDcid = this.#tokens.read(token, from, dcid);
      if (originalDcid) return this.#accept(dcid, dcid, originalDcid, from);
      this.counts.tokensRefused++;
    }
    return undefined;
  }

  #accept(
    scid: Uint8Array,
    dcid: Uint8Array,
    originalDcid: Uint8Array | null,
    from: QuicheAddress,
  ): PeerConnection | undefined {
    if (!this.#table.mayConnect(from.host)) {
      this.counts.connectionsIgnored++;
      return undefined;
    }
    let quic: QuicheConnection;
    try {
      quic = this.#options.quiche.Connection.accept(
        scid,
        originalDcid,
        this.#local,
        from,
        this.#config,
      );
    } catch {
      this.counts.handshakesFailed++;
      return undefined;
    }
    const connection = new PeerConnection(this.#host, quic);
    // Until the peer knows our id, it sends to its own.
    this.#table.add(connection, [scid, dcid]);
    return connection;
  }
}
