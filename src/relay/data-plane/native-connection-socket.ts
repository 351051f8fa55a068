// Types of the addon's socket of QUIC connections (native/addon/connection_socket_handle.h).

/** As kConnectionBatchMax and kConnectionPacketBytesMax in native/quic/connection_socket.h. */
export const packetSlots = 64;
export const slotBytes = 1536;

/**
 * A packet in a slot of the memory, valid during the call. `connection`: number of the connection with its id and
 * the address of its sender. -1: no connection has them, and `stranger` is the sender.
 */
export type ConnectionPacketListener = (
  connection: number,
  slot: number,
  length: number,
  stranger?: { readonly host: string; readonly port: number },
) => void;

/** Numbers since the start. */
interface NativeConnectionSocketCounts {
  readonly received: number;
  /** Packets of no connection, from another address than the connection's, or from a link-local address. */
  readonly unknown: number;
  /** Packets of a connection, above its limit or that of its address. */
  readonly limited: number;
  readonly linkLocal: number;
  /** Packets that the kernel refused to send. */
  readonly failed: number;
  /** Text of the last errno; empty: none. */
  readonly lastFailure: string;
}

/**
 * Receives packets with a short header, and sends. The kernel drops packets whose ids are not from `newId` of a
 * socket with the same key.
 */
export interface NativeConnectionSocket {
  address(): { readonly host: string; readonly port: number };
  /** An id of 8 bytes for a new connection. */
  newId(): Buffer;
  /** `remote`: an endpoint of encodeEndpoint. */
  know(id: Uint8Array, connection: number, remote: Uint8Array): void;
  /** The client may submit: it has a larger share of the packets from now on. */
  admit(id: Uint8Array): void;
  forget(id: Uint8Array): void;
  /** Takes a copy, which waits for `flush` if the batch has room. `to`: an endpoint of encodeEndpoint. */
  send(packet: Uint8Array, to: Uint8Array): void;
  flush(): void;
  counts(): NativeConnectionSocketCounts;
  /** Closes the descriptor. */
  close(): void;
}

/**
 * Owns the descriptor from now on. `idKey`: 32 bytes. `memory`: packetSlots times slotBytes. Throws Error if the
 * event loop refuses it.
 */
export type ConnectionSocketConstructor = new (
  descriptor: number,
  bufferBytes: number,
  idKey: Uint8Array,
  memory: Uint8Array,
  received: ConnectionPacketListener,
) => NativeConnectionSocket;
