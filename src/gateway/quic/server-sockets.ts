// The two sockets of one listener: packets of connections, and first packets.
//
// Owned by ingress-server.ts. The addon reads both (native/quic/): it drops packets of no connection and
// most of a flood, and passes on the others. It also sends, all packets of a turn of the event loop in
// one batch.

import { createHash } from "node:crypto";
import { formatEndpoint, parseAddress } from "../../core/addresses/addresses.ts";
import type { QuicheAddress } from "../../core/quic/quiche.ts";
import {
  type ConnectionPacketListener,
  type NativeConnectionSocket,
  packetSlots,
  slotBytes,
} from "../../relay/data-plane/native-connection-socket.ts";
import type {
  FirstPacketListener,
  NativeFirstPackets,
} from "../../relay/data-plane/native-first-packets.ts";
import { encodeEndpoint } from "../../relay/data-plane/tables.ts";

/** Opens the bound sockets of a listener. */
export interface OpenListenerSockets {
  readonly connections: (
    idKey: Uint8Array,
    memory: Uint8Array,
    received: ConnectionPacketListener,
  ) => NativeConnectionSocket;
  /** `key`: of the tokens. */
  readonly firstPackets: (
    key: Uint8Array,
    idKey: Uint8Array,
    passed: FirstPacketListener,
  ) => NativeFirstPackets;
}

interface ServerSocketsOptions {
  readonly open: OpenListenerSockets;
  readonly tokenKey: Uint8Array;
  readonly idKey: Uint8Array;
  /** A packet of the connection. Its bytes are valid during the call. */
  readonly received: (connection: number, packet: Buffer) => void;
  /** A packet with a short header of no connection. */
  readonly strayed: (packet: Buffer, from: QuicheAddress) => void;
  /** A packet with a long header. */
  readonly begun: (packet: Buffer, from: QuicheAddress) => void;
}

interface SocketCounts {
  readonly packets: number;
  readonly unknownPackets: number;
  readonly limitedPackets: number;
  readonly retries: number;
  readonly invalidTokens: number;
  readonly limitedHandshakes: number;
  readonly linkLocal: number;
  readonly failedSends: number;
  /** Reason of the last failed send; empty: none. */
  readonly lastFailure: string;
}

/** The same after a restart, so that packets from before it get a stateless reset. */
export function connectionIdKey(secret: string): Buffer {
  return createHash("sha256").update("shredway connection ids").update(secret).digest();
}

/** The form in which `send` takes an address. */
export function encodeAddress({ host, port }: QuicheAddress): Uint8Array {
  return encodeEndpoint(formatEndpoint({ bytes: parseAddress(host), port }));
}

export class ServerSockets {
  readonly #connections: NativeConnectionSocket;
  readonly #firstPackets: NativeFirstPackets;
  readonly local: QuicheAddress;
  #isWaiting = false;

  constructor({ open, tokenKey, idKey, received, strayed, begun }: ServerSocketsOptions) {
    const memory = Buffer.alloc(packetSlots * slotBytes);
    this.#connections = open.connections(idKey, memory, (connection, slot, length, stranger) => {
      const at = slot * slotBytes;
      const packet = memory.subarray(at, at + length);
      if (stranger) strayed(packet, stranger);
      else received(connection, packet);
    });
    this.#firstPackets = open.firstPackets(tokenKey, idKey, (packet, host, port) =>
      begun(packet, { host, port }),
    );
    this.local = this.#connections.address();
  }

  /** An id for a new connection. */
  newId(): Buffer {
    return this.#connections.newId();
  }

  /** From now on, packets with the id from this address belong to the connection. */
  know(id: Uint8Array, connection: number, remote: Uint8Array): void {
    this.#connections.know(id, connection, remote);
    this.#firstPackets.know(id);
  }

  /** The client of the connection may submit. */
  admit(id: Uint8Array): void {
    this.#connections.admit(id);
  }

  forget(id: Uint8Array): void {
    this.#connections.forget(id);
    this.#firstPackets.forget(id);
  }

  /** Sent with all others of this turn. `to`: of encodeAddress. */
  send(packet: Uint8Array, to: Uint8Array): void {
    this.#connections.send(packet, to);
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    queueMicrotask(() => {
      this.#isWaiting = false;
      this.#connections.flush();
    });
  }

  counts(): SocketCounts {
    const connections = this.#connections.counts();
    const first = this.#firstPackets.counts();
    return {
      packets: connections.received + first.received,
      unknownPackets: connections.unknown + first.unknown,
      limitedPackets: connections.limited + first.limitedPackets,
      retries: first.retries,
      invalidTokens: first.invalidTokens,
      limitedHandshakes: first.limited,
      linkLocal: connections.linkLocal + first.linkLocal,
      failedSends: connections.failed,
      lastFailure: connections.lastFailure,
    };
  }

  close(): void {
    this.#connections.flush();
    this.#firstPackets.close();
    this.#connections.close();
  }
}
