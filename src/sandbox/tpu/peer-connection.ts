// One connection of a peer to a leader: handshake, identity, streams, close.
//
// Created by tpu-server.ts for every first packet with a validated address. It processes packets,
// and one timer runs everything that is due. The server decides about admission (`admit`).

import type { Clock, Timer } from "../../core/clock.ts";
import type { Quiche, QuicheAddress, QuicheConnection } from "../../core/quic/quiche.ts";
import { closeConnection, packetsOf, takePacket } from "../../core/quic/quiche-calls.ts";
import {
  badCertificateCode,
  type CloseReason,
  closeCodes,
  type PeerRank,
  type TpuCounts,
  type TpuLimits,
  windowMs,
} from "./limits.ts";
import { identityOf } from "./peer-identity.ts";
import { StreamReader } from "./stream-reader.ts";

/** TLS alert 116, certificate_required: BoringSSL's response to a missing certificate. */
const noCertificateCode = 0x100 + 116;
const windowNs = BigInt(windowMs) * 1_000_000n;

export interface TpuPeer {
  /** Identity in base58. */
  readonly identity: string;
  readonly isStaked: boolean;
}

/** The part of the server that a connection uses. */
export interface ConnectionHost {
  readonly quiche: Quiche;
  readonly clock: Clock;
  readonly limits: TpuLimits;
  readonly counts: TpuCounts;
  send(packet: Buffer, to: QuicheAddress): void;
  /** A reason closes the connection. undefined: the certificate is rejected. */
  admit(identity: string): PeerRank | CloseReason | undefined;
  transaction(wire: Uint8Array, peer: TpuPeer): void;
  /** Called once, when the connection has ended. */
  onClosed(connection: PeerConnection): void;
}

export class PeerConnection {
  readonly #host: ConnectionHost;
  readonly #quic: QuicheConnection;
  readonly #streams: StreamReader;
  readonly #handshakeEndNs: bigint;
  #phase: "handshake" | "open" | "ending" | "gone" = "handshake";
  #peer: TpuPeer | undefined;
  #rank: PeerRank = { isStaked: false, streamsPerWindow: 0 };
  #windowEndNs = 0n;
  #left = 0;
  #isParked = false;
  #lastUsedNs: bigint;
  #timer: Timer | undefined;

  constructor(host: ConnectionHost, quic: QuicheConnection) {
    this.#host = host;
    this.#quic = quic;
    this.#lastUsedNs = host.clock.monotonicNs();
    this.#handshakeEndNs = this.#lastUsedNs + BigInt(host.limits.handshakeMs) * 1_000_000n;
    this.#streams = new StreamReader(host.quiche, {
      transaction: (wire) => {
        host.counts.transactions++;
        if (this.#peer) host.transaction(wire, this.#peer);
      },
      dropped: () => void host.counts.streamsDropped++,
    });
  }

  /** True from the end of a successful handshake to the end of the connection. */
  get peer(): TpuPeer | undefined {
    return this.#phase === "open" ? this.#peer : undefined;
  }

  /** Time of the last stream, or of the opening. */
  get lastUsedNs(): bigint {
    return this.#lastUsedNs;
  }

  /**
   * Processes a packet; `work` must follow. It overwrites the packet: decryption happens in place.
   */
  receive(packet: Buffer, from: QuicheAddress, to: QuicheAddress): void {
    takePacket(this.#quic, packet, { from, to });
  }

  /** Handles the effects of packets or timers, and sends. */
  work(): void {
    if (this.#phase === "gone") return;
    const nowNs = this.#host.clock.monotonicNs();
    if (this.#phase === "handshake") this.#handshake(nowNs);
    if (this.#phase === "open") this.#read(nowNs);
    this.#sendAll();
    if (this.#quic.isClosed()) this.forget();
    else this.#arm(nowNs);
  }

  /** Closes with a reason for the peer. Nothing is read afterwards. */
  close(reason: CloseReason): void {
    if (this.#phase === "ending" || this.#phase === "gone") return;
    this.#host.counts.closed[reason]++;
    this.#end(true, closeCodes[reason], reason);
  }

  /** Closes without a packet to the peer. Idempotent. */
  forget(): void {
    if (this.#phase === "gone") return;
    if (this.#phase === "handshake") this.#countFailure();
    this.#phase = "gone";
    this.#timer?.cancel();
    this.#host.onClosed(this);
  }

  /** Close packet when the leader shuts down. */
  leave(): void {
    this.#end(true, 0, "");
    this.#sendAll();
    this.forget();
  }

  #end(isApplication: boolean, code: number, reason: string): void {
    this.#phase = "ending";
    closeConnection(this.#quic, isApplication, code, reason);
  }

  #handshake(nowNs: bigint): void {
    const { counts } = this.#host;
    if (!this.#quic.isEstablished()) {
      if (this.#quic.localError() || this.#quic.isDraining()) {
        this.#countFailure();
        this.#phase = "ending";
      } else if (nowNs >= this.#handshakeEndNs) {
        counts.handshakesFailed++;
        this.#end(false, 0, "");
      }
      return;
    }
    const identity = identityOf(this.#quic.peerCertChain());
    const admitted = identity === null ? undefined : this.#host.admit(identity);
    if (identity === null || admitted === undefined) {
      counts.certificatesRefused++;
      this.#end(false, badCertificateCode, "");
      return;
    }
    counts.connections++;
    if (typeof admitted === "string") {
      this.close(admitted);
      return;
    }
    this.#rank = admitted;
    this.#peer = { identity, isStaked: admitted.isStaked };
    this.#phase = "open";
    this.#lastUsedNs = nowNs;
  }

  #countFailure(): void {
    const { counts } = this.#host;
    if (this.#quic.localError()?.errorCode === noCertificateCode) counts.certificatesRefused++;
    else counts.handshakesFailed++;
  }

  #read(nowNs: bigint): void {
    if (nowNs >= this.#windowEndNs) {
      this.#windowEndNs = nowNs + windowNs;
      this.#left = this.#rank.streamsPerWindow;
    }
    const { begun, isLong, hasMore } = this.#streams.read(this.#quic, this.#left, nowNs);
    this.#left -= begun;
    if (begun > 0) this.#lastUsedNs = nowNs;
    this.#isParked = hasMore;
    if (isLong) {
      this.close("invalid_stream");
      return;
    }
    this.#streams.dropBefore(this.#quic, nowNs - BigInt(this.#host.limits.streamMs) * 1_000_000n);
  }

  #sendAll(): void {
    for (const { packet, to } of packetsOf(this.#quic)) this.#host.send(packet, to);
  }

  /** One timer: for quiche, the window, the handshake and unfinished streams. */
  #arm(nowNs: bigint): void {
    this.#timer?.cancel();
    const quicMs = this.#quic.timeout();
    const due = quicMs === null ? [] : [quicMs];
    const until = (ns: bigint): void => void due.push(Number(ns - nowNs) / 1e6);
    if (this.#phase === "handshake") until(this.#handshakeEndNs);
    if (this.#isParked && this.#phase === "open") until(this.#windowEndNs);
    const oldestNs = this.#streams.oldestNs;
    if (oldestNs !== undefined && this.#phase === "open") {
      until(oldestNs + BigInt(this.#host.limits.streamMs) * 1_000_000n);
    }
    if (due.length === 0) return;
    const delayMs = Math.max(1, Math.ceil(Math.min(...due)));
    this.#timer = this.#host.clock.after(delayMs, () => {
      this.#quic.onTimeout();
      this.work();
    });
  }
}
