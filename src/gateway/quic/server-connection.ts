// One connection of a client to the QUIC ingress: handshake, admission, streams, responses, close.
//
// Created by ingress-server.ts for a first packet. After the handshake it waits for the gateway's decision
// about the client's key and reads no stream before it. One timer runs everything that is due.

import type { Clock } from "../../core/clock.ts";
import { type Dialect, findDialect } from "../../core/quic/dialects.ts";
import { DueTimer } from "../../core/quic/due-timer.ts";
import type { Quiche, QuicheAddress, QuicheConnection } from "../../core/quic/quiche.ts";
import { closeConnection, endNameOf, packetsOf, takePacket } from "../../core/quic/quiche-calls.ts";
import { responseFrame } from "../../core/quic/response-frame.ts";
import { type CertificateFacts, readCertificateFacts } from "./certificate-facts.ts";
import { type HeldBytes, StreamAssembler, unidirectionalBit } from "./stream-assembler.ts";
import type { DropName, IngressSettings } from "./types.ts";

const handshakeMs = 5000;
/** Packets that came before the end of the handshake: they wait for it, because QUIC would lose them. */
const earlyPacketsMax = 16;
const longHeaderBit = 0x80;
const nsPerMs = 1_000_000n;
/** Bytes that an unproven address gets for each byte that came from it. */
const amplificationMax = 3;
/** Streams without a transaction that a connection may have at once, and in a second. */
const dropsBurst = 200;
const dropsPerSecond = 50;

/** The part of the server that a connection uses. */
export interface ConnectionHost {
  readonly quiche: Quiche;
  readonly clock: Clock;
  readonly settings: IngressSettings;
  /** Shared by all connections. */
  readonly held: HeldBytes;
  /** To the client. */
  send(packet: Buffer): void;
  /** The handshake is complete; false: the connection limit is reached. */
  connected(connection: ServerConnection, facts: CertificateFacts, protocol: string): boolean;
  completed(connection: ServerConnection, streamId: number, bytes: Uint8Array): void;
  /** Passes on the completed streams. */
  flush(): void;
  dropped(reason: DropName, connection: ServerConnection): void;
  /** Called once, when the handshake is complete or has failed. */
  handshakeOver(): void;
  /** Called once, when the connection has ended. Its late packets may still come. */
  ended(connection: ServerConnection, end: string): void;
  /** Called once, after `ended`: nothing is left of the connection. */
  forgotten(connection: ServerConnection): void;
}

type Phase = "handshake" | "waiting" | "open" | "ending" | "gone";

interface Path {
  readonly local: QuicheAddress;
  readonly remote: QuicheAddress;
  /** The client returned a token, so it receives packets at its address. */
  readonly isProven: boolean;
}

const noCertificate: CertificateFacts = { commonName: null, ed25519Key: null, protection: false };

interface DropAnswer {
  readonly status: number;
  readonly text: (limits: { bytes: number; ms: number }) => string;
}

/** A reset stream gets no answer. */
const dropAnswers: Readonly<Record<Exclude<DropName, "reset">, DropAnswer>> = {
  empty: {
    status: 400,
    text: () => "value_invalid: stream: expected a transaction, got 0 bytes",
  },
  timed_out: {
    status: 400,
    text: ({ ms }) =>
      `value_invalid: stream: expected its end within ${ms} ms; send each transaction at once`,
  },
  too_long: {
    status: 400,
    text: ({ bytes }) => `value_invalid: stream: expected at most ${bytes} bytes, got more`,
  },
  memory_limit: {
    status: 503,
    text: () =>
      "overloaded: stream: the service holds too many bytes of incomplete streams; send it again",
  },
};

export class ServerConnection {
  readonly id: number;
  readonly remote: QuicheAddress;
  readonly #host: ConnectionHost;
  readonly #quic: QuicheConnection;
  readonly #local: QuicheAddress;
  #isProven: boolean;
  /** Bytes before the address is proven. */
  #receivedBytes = 0;
  #sentBytes = 0;
  readonly #handshakeEndNs: bigint;
  #early: Buffer[] = [];
  #phase: Phase = "handshake";
  #dialect: Dialect | undefined;
  #streams: StreamAssembler | undefined;
  /** Streams at the gateway, and responses that the client's flow control does not accept yet. */
  #inFlight = 0;
  readonly #responses = new Map<number, Buffer>();
  #dropsLeft = dropsBurst;
  #dropsAtNs: bigint;
  #end = "";
  /** The last packet of a connection that was closed here. */
  #closingPacket: Buffer | undefined;
  #packetsAfterClose = 0;
  #isEndReported = false;
  readonly #timer: DueTimer;

  constructor(id: number, host: ConnectionHost, quic: QuicheConnection, path: Path) {
    this.id = id;
    this.#host = host;
    this.#quic = quic;
    this.#local = path.local;
    this.remote = path.remote;
    this.#isProven = path.isProven;
    this.#dropsAtNs = host.clock.monotonicNs();
    this.#handshakeEndNs = this.#dropsAtNs + BigInt(handshakeMs) * nsPerMs;
    this.#timer = new DueTimer(host.clock, () => this.#expired());
  }

  isFrom({ host, port }: QuicheAddress): boolean {
    return port === this.remote.port && host === this.remote.host;
  }

  /** Processes a packet of the client; `work` must follow. Decryption overwrites the packet. */
  receive(packet: Buffer): void {
    this.#receivedBytes += packet.length;
    if (this.#closingPacket) {
      this.#repeatClose(this.#closingPacket);
      return;
    }
    if (this.#isEarly(packet)) {
      // The two sockets of a listener are read one after the other.
      if (this.#early.length < earlyPacketsMax) this.#early.push(Buffer.from(packet));
      return;
    }
    this.#take(packet);
    if (this.#early.length === 0 || !this.#quic.isEstablished()) return;
    for (const early of this.#early) this.#take(early);
    this.#early = [];
  }

  #isEarly(packet: Buffer): boolean {
    const isLong = ((packet[0] ?? 0) & longHeaderBit) !== 0;
    return this.#phase === "handshake" && !isLong && !this.#quic.isEstablished();
  }

  #take(packet: Buffer): void {
    takePacket(this.#quic, packet, { from: this.remote, to: this.#local });
  }

  /** Handles the effects of packets, answers or timers, and sends. */
  work(): void {
    this.read();
    this.#host.flush();
    this.send();
  }

  /** The first part of `work`: reads streams. `send` must follow. */
  read(): void {
    if (this.#phase === "gone") return;
    const nowNs = this.#host.clock.monotonicNs();
    if (this.#phase === "handshake") this.#handshake(nowNs);
    if (this.#phase === "open") this.#read(nowNs);
    if (this.#isLeft) this.#leftByClient();
  }

  /** The last part of `work`. */
  send(): void {
    if (this.#phase === "gone") return;
    this.#sendAll();
    if (this.#quic.isClosed()) this.#forget();
    else this.#arm(this.#host.clock.monotonicNs());
  }

  /** The client may submit. */
  admit(): void {
    if (this.#phase === "waiting") this.#enter("open");
  }

  /** Closes with a code of the dialect. Nothing is read afterwards. */
  dismiss(code: number, reason: string): void {
    if (this.#phase === "gone" || this.#phase === "ending") return;
    this.#close(true, code, reason);
  }

  /** The gateway's answer to a stream. `work` must follow. */
  answer(streamId: number, status: number, body: string): void {
    if (this.#phase !== "open") return;
    this.#inFlight--;
    this.#respond(streamId, status, body);
  }

  /** Closes because the service shuts down. */
  leave(): void {
    this.#close(true, this.#dialect?.closeCodes.closed ?? 0, "shutdown");
    this.#sendAll();
    this.#forget();
  }

  /** Ends without a packet to the client. Idempotent. */
  #forget(): void {
    if (this.#phase === "gone") return;
    this.#enter("gone");
    this.#timer.cancel();
    this.#streams?.close();
    this.#reportEnd();
    this.#host.forgotten(this);
  }

  /**
   * The client has closed the connection, and everything that came before is read and answered. quiche keeps
   * it for a while, for late packets.
   */
  get #isLeft(): boolean {
    if (!this.#quic.isDraining() || this.#quic.peerError() === null) return false;
    if (this.#phase === "open") return this.#inFlight === 0 && !this.#quic.isReadable();
    return this.#phase === "ending";
  }

  #leftByClient(): void {
    if (this.#phase === "open") this.#enter("ending");
    this.#streams?.close();
    this.#reportEnd();
  }

  #reportEnd(): void {
    if (this.#isEndReported) return;
    this.#isEndReported = true;
    this.#host.ended(this, this.#end === "" ? endNameOf(this.#quic) : this.#end);
  }

  #enter(phase: Phase): void {
    const isOver = this.#phase === "handshake";
    this.#phase = phase;
    if (isOver) this.#host.handshakeOver();
  }

  #close(isApplication: boolean, code: number, reason: string): void {
    this.#enter("ending");
    this.#end = `here_${reason.split(":", 1)[0] ?? ""}`;
    this.#responses.clear();
    this.#streams?.close();
    closeConnection(this.#quic, isApplication, code, reason);
  }

  /**
   * quiche sends the close once. A client that lost it still sends, and gets it again for the first, second,
   * fourth packet and so on (RFC 9000, 10.2.1).
   */
  #repeatClose(packet: Buffer): void {
    const count = ++this.#packetsAfterClose;
    const isPowerOfTwo = (count & (count - 1)) === 0;
    if (isPowerOfTwo && this.#maySend(packet.length)) this.#host.send(packet);
  }

  #handshake(nowNs: bigint): void {
    if (this.#quic.isEstablished()) this.#established();
    else if (nowNs >= this.#handshakeEndNs) this.#close(false, 0, "handshake_timeout");
  }

  #established(): void {
    this.#isProven = true;
    const protocol = Buffer.from(this.#quic.applicationProto()).toString("latin1");
    const dialect = findDialect(protocol);
    const [certificate] = this.#quic.peerCertChain() ?? [];
    // A missing or unreadable certificate identifies no key, so the gateway refuses it.
    const facts = (certificate && readCertificateFacts(certificate)) ?? noCertificate;
    if (!dialect) {
      this.#close(true, 0, "closed: unknown protocol");
      return;
    }
    this.#dialect = dialect;
    const { streamTimeoutMs } = this.#host.settings;
    const timeoutNs = BigInt(streamTimeoutMs) * nsPerMs;
    this.#streams = new StreamAssembler(
      { streamBytesMax: dialect.streamBytesMax, timeoutNs, held: this.#host.held },
      {
        completed: (streamId, bytes) => {
          this.#inFlight++;
          this.#host.completed(this, streamId, bytes);
        },
        dropped: (streamId, reason) => this.#drop(streamId, reason),
      },
    );
    this.#enter("waiting");
    if (this.#host.connected(this, facts, protocol)) return;
    const code = dialect.closeCodes.connection_limit;
    this.#close(true, code, "connection_limit: the service has too many connections");
  }

  #read(nowNs: bigint): void {
    const streams = this.#streams;
    if (!streams) return;
    const allows = () => this.#hasRoom && this.#phase === "open";
    // Each written response makes room for another stream.
    for (const [streamId, frame] of this.#responses) this.#write(streamId, frame);
    streams.read(this.#quic, nowNs, allows);
    // The end of a stream may be here, and wait for room.
    if (allows()) streams.expire(nowNs);
  }

  /** For another stream at the gateway. */
  get #hasRoom(): boolean {
    return this.#inFlight < this.#host.settings.streamsMax;
  }

  #drop(streamId: number, reason: DropName): void {
    this.#host.dropped(reason, this);
    if (reason === "reset") {
      if (this.#responses.delete(streamId)) this.#inFlight--;
      this.#abandonWriting(streamId);
    } else {
      const { status, text } = dropAnswers[reason];
      this.#respond(streamId, status, text(this.#limits));
    }
    if (this.#takeDrop() || this.#phase !== "open") return;
    const code = this.#dialect?.closeCodes.excess ?? 0;
    this.#close(true, code, "excess: too many streams without a transaction");
  }

  get #limits(): { bytes: number; ms: number } {
    const bytes = this.#dialect?.streamBytesMax ?? 0;
    return { bytes, ms: this.#host.settings.streamTimeoutMs };
  }

  /** false: the connection had too many. */
  #takeDrop(): boolean {
    const nowNs = this.#host.clock.monotonicNs();
    const passed = Number(nowNs - this.#dropsAtNs) / 1e9;
    this.#dropsAtNs = nowNs;
    this.#dropsLeft = Math.min(dropsBurst, this.#dropsLeft + passed * dropsPerSecond) - 1;
    return this.#dropsLeft >= 0;
  }

  /** A unidirectional stream has no way back; a dialect without responses only ends the stream. */
  #respond(streamId: number, status: number, body: string): void {
    if ((streamId & unidirectionalBit) !== 0) return;
    const frame = this.#dialect?.hasResponses ? responseFrame(status, body) : Buffer.alloc(0);
    this.#inFlight++;
    this.#write(streamId, frame);
  }

  /** Keeps the rest for later if the client's flow control does not accept all of it. */
  #write(streamId: number, frame: Buffer): void {
    let written: number | null;
    try {
      written = this.#quic.streamSend(streamId, frame, true);
    } catch {
      written = frame.length; // the client stopped or reset the stream
    }
    if (written !== frame.length && this.#canWrite(streamId)) {
      this.#responses.set(streamId, frame.subarray(written ?? 0));
      return;
    }
    this.#responses.delete(streamId);
    this.#inFlight--;
  }

  /**
   * For a blocked stream, and for one that quiche has discarded because the client stopped it, `streamSend` returns
   * null. Only the first one has a capacity. A connection that the client has closed sends nothing more.
   */
  #canWrite(streamId: number): boolean {
    if (this.#quic.isDraining()) return false;
    try {
      this.#quic.streamCapacity(streamId);
      return true;
    } catch {
      return false;
    }
  }

  #abandonWriting(streamId: number): void {
    if ((streamId & unidirectionalBit) !== 0) return;
    try {
      this.#quic.streamShutdown(streamId, this.#host.quiche.Shutdown.Write, 0);
    } catch {
      // The stream has already ended.
    }
  }

  #sendAll(): void {
    for (const { packet } of packetsOf(this.#quic)) {
      if (this.#end !== "") this.#closingPacket = packet;
      if (this.#maySend(packet.length)) this.#host.send(packet);
    }
  }

  /**
   * The limit of RFC 9000 (8.1), which quiche exceeds when it repeats packets. QUIC treats a packet that is
   * held back as lost.
   */
  #maySend(bytes: number): boolean {
    if (this.#isProven) return true;
    if (this.#sentBytes + bytes > amplificationMax * this.#receivedBytes) return false;
    this.#sentBytes += bytes;
    return true;
  }

  #expired(): void {
    if (this.#phase === "gone") return;
    if (this.#quic.timeout() === 0) this.#quic.onTimeout();
    this.work();
  }

  #arm(nowNs: bigint): void {
    const quicMs = this.#quic.timeout();
    let dueNs = quicMs === null ? null : nowNs + BigInt(Math.ceil(quicMs)) * nsPerMs;
    const atMost = (ns: bigint): void => {
      if (dueNs === null || ns < dueNs) dueNs = ns;
    };
    if (this.#phase === "handshake") atMost(this.#handshakeEndNs);
    const oldestNs = this.#streams?.oldestNs;
    if (oldestNs !== undefined && this.#phase === "open" && this.#hasRoom) {
      atMost(oldestNs + BigInt(this.#host.settings.streamTimeoutMs) * nsPerMs);
    }
    if (dueNs !== null) this.#timer.set(dueNs);
  }
}
