// The QUIC server of the ingress: sockets, first packets, and connections by id.
//
// Runs in a confined process (ingress-process-main.ts). The addon reads the sockets and stops most of a flood
// (server-sockets.ts). Any other first packet leads to a connection, a retry, a version negotiation, or nothing;
// handshake-limits.ts decides. Packets that arrive together are processed together, with one response for all.

import { formatEndpoint, parseAddress } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { dialects } from "../../core/quic/dialects.ts";
import {
  buildQuicheConfig,
  packetBytesMax,
  type Quiche,
  type QuicheAddress,
  type QuicheConfig,
  type QuicheConnection,
  type QuicheCredentials,
} from "../../core/quic/quiche.ts";
import { HandshakeLimits } from "./handshake-limits.ts";
import { type LongHeader, readLongHeader } from "./long-header.ts";
import { RetryTokens } from "./retry-tokens.ts";
import { type ConnectionHost, ServerConnection } from "./server-connection.ts";
import {
  connectionIdKey,
  encodeAddress,
  type OpenListenerSockets,
  ServerSockets,
} from "./server-sockets.ts";
import { StatelessResets } from "./stateless-reset.ts";
import type { HeldBytes } from "./stream-assembler.ts";
import type {
  DropName,
  IngressAnswer,
  IngressConnection,
  IngressCounts,
  IngressSettings,
  ReceivedStream,
} from "./types.ts";

interface ServerDependencies {
  readonly quiche: Quiche;
  readonly clock: Clock;
  readonly settings: IngressSettings;
  readonly credentials: QuicheCredentials;
  /** For stateless resets and connection ids. */
  readonly secret: string;
  /** The bound sockets of each listener, in their order. */
  readonly sockets: readonly OpenListenerSockets[];
  /** None of these may throw. */
  readonly connected: (connection: IngressConnection) => void;
  readonly received: (stream: ReceivedStream) => void;
  /** Passes on what was received. */
  readonly flush: () => void;
  readonly ended: (connection: number, end: string) => void;
}

/** As kConnectionIdBytes in native/quic/connection_ids.h. */
const connectionIdBytes = 8;
/**
 * UDP payload of the longest packet that the server sends. Every path of IPv6 carries it: 1,280 bytes without
 * the headers of IPv6 and UDP. The sockets ignore ICMP, so a longer packet could be lost again and again.
 */
const sentPacketBytesMax = 1232;
/** Minimum length of a first packet (RFC 9000, 14.1). */
const firstPacketBytesMin = 1200;
const linkLocalText =
  "packets from link-local IPv6 addresses are ignored; clients need a global or unique local address";
/** Unread bytes of a connection: a few transactions for each stream. */
const connectionBytesMax = 256 * 1024;
/** Bytes of incomplete streams of all connections, a quarter of the memory of the process. */
const heldBytesMax = 128 * 1024 * 1024;
/** The part of them that each connection has in any case. */
const heldBytesPerConnection = 32 * 1024;
/** Shorter destination ids of first packets are invalid (RFC 9000, 7.2). */
const firstIdBytesMin = 8;

interface Listener {
  readonly index: number;
  readonly sockets: ServerSockets;
}

/** A connection that exists, with its ids: ours, and the one that the client chose for its first packets. */
interface LiveConnection {
  readonly connection: ServerConnection;
  readonly ids: readonly Buffer[];
  readonly sockets: ServerSockets;
}

function keyOf(connectionId: Uint8Array): string {
  return Buffer.from(connectionId.buffer, connectionId.byteOffset, connectionId.length).toString(
    "latin1",
  );
}

type MutableCounts = { -readonly [Name in Exclude<keyof IngressCounts, "drops">]: number };

export class IngressServer {
  readonly #dependencies: ServerDependencies;
  readonly #limits: HandshakeLimits;
  readonly #tokens: RetryTokens;
  readonly #resets: StatelessResets;
  #config: QuicheConfig;
  readonly #listeners: readonly Listener[];
  readonly #byId = new Map<string, ServerConnection>();
  readonly #live = new Map<number, LiveConnection>();
  /** Connections whose handshake is complete. */
  readonly #byNumber = new Map<number, ServerConnection>();
  #due = new Set<ServerConnection>();
  #next = 0;
  #inProgress = 0;
  readonly #held: HeldBytes = {
    max: heldBytesMax,
    connectionMin: heldBytesPerConnection,
    total: 0,
  };
  /** Packets from link-local addresses, at the last report. */
  #linkLocal = 0;
  readonly #counts: MutableCounts = {
    packets: 0,
    unknownPackets: 0,
    limitedPackets: 0,
    retries: 0,
    invalidTokens: 0,
    limitedHandshakes: 0,
    failedHandshakes: 0,
    handshakes: 0,
  };
  readonly #drops: Record<DropName, number> = {
    empty: 0,
    reset: 0,
    timed_out: 0,
    too_long: 0,
    memory_limit: 0,
  };
  /** Dropped streams since the last report, by connection. */
  #connectionDrops = new Map<number, number>();

  /** Throws quiche's Error for an invalid key. */
  constructor(dependencies: ServerDependencies) {
    this.#dependencies = dependencies;
    const { clock, settings, credentials, secret, sockets } = dependencies;
    this.#limits = new HandshakeLimits(clock, settings.handshakesPerMinute);
    this.#tokens = new RetryTokens(clock);
    this.#resets = new StatelessResets(secret);
    this.#config = this.#makeConfig(credentials);
    const idKey = connectionIdKey(secret);
    this.#listeners = sockets.map((open, index) => {
      const listener = {
        index,
        sockets: new ServerSockets({
          open,
          tokenKey: this.#tokens.key,
          idKey,
          received: (connection, packet) => this.#receive(connection, packet),
          strayed: (packet, from) => this.#reset(packet, from, listener),
          begun: (packet, from) => this.#receiveFirst(packet, from, listener),
        }),
      };
      return listener;
    });
  }

  /** "ip:port" of each socket. */
  get addresses(): readonly string[] {
    return this.#listeners.map(({ sockets: { local } }) =>
      formatEndpoint({ bytes: parseAddress(local.host), port: local.port }),
    );
  }

  get counts(): IngressCounts {
    const counts = { ...this.#counts };
    for (const { sockets } of this.#listeners) {
      const { packets, retries, invalidTokens, ...ignored } = sockets.counts();
      counts.packets += packets;
      counts.retries += retries;
      counts.invalidTokens += invalidTokens;
      counts.unknownPackets += ignored.unknownPackets;
      counts.limitedPackets += ignored.limitedPackets;
      counts.limitedHandshakes += ignored.limitedHandshakes;
    }
    return { ...counts, drops: { ...this.#drops } };
  }

  /** Whether dropped streams of the connection are not reported yet. */
  hasDrops(connection: number): boolean {
    return this.#connectionDrops.has(connection);
  }

  /** Dropped streams since the last call. */
  takeConnectionDrops(): [number, number][] {
    const drops = [...this.#connectionDrops];
    this.#connectionDrops = new Map();
    return drops;
  }

  /** Number of packets that could not be sent or received, and the last reason. */
  get failures(): { readonly packets: number; readonly last: string } {
    const counts = this.#listeners.map(({ sockets }) => sockets.counts());
    const failed = counts.reduce((sum, { failedSends }) => sum + failedSends, 0);
    const linkLocal = counts.reduce((sum, each) => sum + each.linkLocal, 0);
    const lastFailure = counts.find((each) => each.lastFailure !== "")?.lastFailure ?? "";
    const last = linkLocal > this.#linkLocal ? linkLocalText : lastFailure;
    this.#linkLocal = linkLocal;
    return { packets: failed + linkLocal, last };
  }

  /** A new certificate, for new connections. */
  identify(credentials: QuicheCredentials): void {
    this.#config = this.#makeConfig(credentials);
  }

  admit(number: number): void {
    const connection = this.#byNumber.get(number);
    if (!connection) return;
    const live = this.#live.get(number);
    for (const id of live?.ids ?? []) live?.sockets.admit(id);
    connection.admit();
    this.#schedule(connection);
  }

  dismiss(number: number, code: number, reason: string): void {
    const connection = this.#byNumber.get(number);
    if (!connection) return;
    connection.work(); // sends the responses that came before
    connection.dismiss(code, reason);
    this.#schedule(connection);
  }

  answer(answers: readonly IngressAnswer[]): void {
    for (const { connection: number, stream, status, body } of answers) {
      const connection = this.#byNumber.get(number);
      if (!connection) continue;
      connection.answer(stream, status, body);
      this.#schedule(connection);
    }
  }

  /** Closes all connections with notice. The sockets are closed one turn later, after their last packets. */
  async close(): Promise<void> {
    this.#work(); // sends the last responses
    for (const { connection } of this.#live.values()) connection.leave();
    await new Promise((resolve) => setImmediate(resolve));
    for (const { sockets } of this.#listeners) sockets.close();
  }

  #makeConfig(credentials: QuicheCredentials): QuicheConfig {
    const { quiche, settings } = this.#dependencies;
    const streamBytesMax = Math.max(...dialects.map((dialect) => dialect.streamBytesMax));
    const config = buildQuicheConfig(quiche, {
      credentials,
      asksCertificate: true,
      applicationProtocol: dialects.map(({ protocol }) => protocol),
      idleTimeoutMs: settings.idleTimeoutMs,
      packetBytesMax: sentPacketBytesMax,
      connectionBytesMax,
      streamBytesMax,
      streamsMax: settings.streamsMax,
      bidirectionalStreamsMax: settings.streamsMax,
    });
    // quiche would enlarge both for fast clients.
    config.setMaxConnectionWindow(connectionBytesMax);
    config.setMaxStreamWindow(streamBytesMax);
    return config;
  }

  #receive(number: number, packet: Buffer): void {
    const connection = this.#live.get(number)?.connection;
    if (!connection) return;
    connection.receive(packet);
    this.#schedule(connection);
  }

  #receiveFirst(packet: Buffer, from: QuicheAddress, listener: Listener): void {
    const connection = this.#connectionOf(packet, from, listener);
    if (!connection) return;
    // A copy that arrives first from another address would replace the client's packet.
    if (!connection.isFrom(from)) {
      this.#counts.unknownPackets++;
      return;
    }
    connection.receive(packet);
    this.#schedule(connection);
  }

  #schedule(connection: ServerConnection): void {
    if (this.#due.size === 0) setImmediate(() => this.#work());
    this.#due.add(connection);
  }

  /** The gateway gets the streams first: encrypting and sending packets takes longer than passing them on. */
  #work(): void {
    const due = this.#due;
    this.#due = new Set();
    for (const connection of due) connection.read();
    this.#dependencies.flush();
    for (const connection of due) connection.send();
  }

  #connectionOf(
    packet: Buffer,
    from: QuicheAddress,
    listener: Listener,
  ): ServerConnection | undefined {
    const header = readLongHeader(packet);
    if (!header) {
      this.#counts.unknownPackets++;
      return undefined;
    }
    return this.#byId.get(keyOf(header.dcid)) ?? this.#begin(header, packet.length, from, listener);
  }

  #reset(packet: Buffer, from: QuicheAddress, listener: Listener): void {
    if (!this.#limits.allowsStateless()) return;
    const id = packet.subarray(1, 1 + connectionIdBytes);
    // Another listener has the connection: with the token in a reset, a stranger could end it.
    if (this.#byId.has(keyOf(id))) return;
    const answer = this.#resets.packetFor(id, packet.length);
    if (answer) this.#send(answer, from, listener);
  }

  #begin(
    header: LongHeader,
    packetBytes: number,
    from: QuicheAddress,
    listener: Listener,
  ): ServerConnection | undefined {
    const isFirst = packetBytes >= firstPacketBytesMin && header.dcid.length >= firstIdBytesMin;
    const isSupported = this.#dependencies.quiche.versionIsSupported(header.version);
    // An answer to a version negotiation could lead to an endless exchange with another server.
    const isNegotiation = header.version === 0;
    if (!isFirst || isNegotiation || (isSupported && !header.isInitial)) {
      this.#counts.unknownPackets++;
      return undefined;
    }
    if (!isSupported) {
      this.#negotiate(header, from, listener);
      return undefined;
    }
    const hasToken = header.token.length > 0;
    const original = hasToken ? this.#tokens.read(header.token, from, header.dcid) : null;
    // Clients keep tokens of other servers under the same name (RFC 9000, 8.1.3).
    if (hasToken && !original) this.#counts.invalidTokens++;
    if (!original) {
      if (this.#limits.allowsUnproven(this.#inProgress, from.host)) {
        return this.#accept(listener.sockets.newId(), header.dcid, null, { from, listener });
      }
      this.#retry(header, from, listener);
      return undefined;
    }
    if (this.#limits.allowsProven(this.#inProgress, from.host)) {
      return this.#accept(header.dcid, header.dcid, original, { from, listener });
    }
    this.#counts.limitedHandshakes++;
    return undefined;
  }

  #negotiate({ scid, dcid }: LongHeader, from: QuicheAddress, listener: Listener): void {
    this.#counts.unknownPackets++;
    if (!this.#limits.allowsStateless()) return;
    const out = Buffer.alloc(packetBytesMax);
    const length = this.#dependencies.quiche.negotiateVersion(scid, dcid, out);
    this.#send(out.subarray(0, length), from, listener);
  }

  #retry({ scid, dcid, version }: LongHeader, from: QuicheAddress, listener: Listener): void {
    if (!this.#limits.allowsStateless()) {
      this.#counts.limitedHandshakes++;
      return;
    }
    this.#counts.retries++;
    const out = Buffer.alloc(packetBytesMax);
    const offered = listener.sockets.newId();
    const token = this.#tokens.mint(from, dcid, offered);
    const length = this.#dependencies.quiche.retry(scid, dcid, offered, token, version, out);
    this.#send(out.subarray(0, length), from, listener);
  }

  #accept(
    scid: Uint8Array,
    dcid: Uint8Array,
    original: Uint8Array | null,
    { from, listener }: { readonly from: QuicheAddress; readonly listener: Listener },
  ): ServerConnection | undefined {
    const { quiche } = this.#dependencies;
    const { sockets } = listener;
    let quic: QuicheConnection;
    try {
      this.#config.setStatelessResetToken(this.#resets.tokenNumberOf(scid));
      quic = quiche.Connection.accept(scid, original, sockets.local, from, this.#config);
    } catch {
      this.#counts.failedHandshakes++;
      return undefined;
    }
    const id = this.#next++;
    const isProven = original !== null;
    const path = { local: sockets.local, remote: from, isProven };
    const remote = encodeAddress(from);
    const host = this.#hostOf(listener, remote, isProven);
    const connection = new ServerConnection(id, host, quic, path);
    this.#inProgress++;
    // Until the client knows our id, it sends to its own.
    const ids = [scid, dcid].map((each) => Buffer.from(each));
    this.#live.set(id, { connection, ids, sockets });
    for (const each of ids) {
      this.#byId.set(keyOf(each), connection);
      sockets.know(each, id, remote);
    }
    return connection;
  }

  #hostOf(listener: Listener, remote: Uint8Array, isProven: boolean): ConnectionHost {
    const { quiche, clock, settings, received, flush } = this.#dependencies;
    return {
      quiche,
      clock,
      settings,
      held: this.#held,
      send: (packet) => listener.sockets.send(packet, remote),
      connected: (connection, facts, protocol) => {
        const { host } = connection.remote;
        // A completed handshake proves the address.
        if (!isProven) this.#limits.count(host);
        if (this.#byNumber.size >= settings.connectionsMax) return false;
        this.#counts.handshakes++;
        const { id } = connection;
        this.#byNumber.set(id, connection);
        const about = { id, listener: listener.index, protocol, host };
        this.#dependencies.connected({ ...about, ...facts });
        return true;
      },
      completed: (connection, stream, bytes) => {
        const receivedNs = clock.monotonicNs();
        received({ connection: connection.id, stream, receivedNs, bytes });
      },
      flush,
      dropped: (reason, { id }) => {
        this.#drops[reason]++;
        this.#connectionDrops.set(id, (this.#connectionDrops.get(id) ?? 0) + 1);
      },
      handshakeOver: () => {
        this.#inProgress--;
      },
      ended: ({ id }, end) => {
        if (this.#byNumber.delete(id)) this.#dependencies.ended(id, end);
        else this.#counts.failedHandshakes++;
      },
      forgotten: ({ id }) => this.#forget(id),
    };
  }

  #forget(number: number): void {
    const live = this.#live.get(number);
    for (const each of live?.ids ?? []) {
      this.#byId.delete(keyOf(each));
      live?.sockets.forget(each);
    }
    this.#live.delete(number);
  }

  #send(packet: Buffer, to: QuicheAddress, { sockets }: Listener): void {
    sockets.send(packet, encodeAddress(to));
  }
}
