// Types of the addon's socket of first packets (native/addon/first_packet_handle.h).

export type FirstPacketListener = (packet: Buffer, host: string, port: number) => void;

/** Numbers since the start. */
interface NativeFirstPacketCounts {
  readonly received: number;
  readonly retries: number;
  readonly invalidTokens: number;
  /** Not readable, of no connection, or from a link-local address. */
  readonly unknown: number;
  /** Above the limits of a second; the kernel has dropped most of them. */
  readonly limited: number;
  /** Packets of a known connection, above its limit. */
  readonly limitedPackets: number;
  readonly linkLocal: number;
}

/**
 * native/addon/first_packet_handle.h: the socket of first packets. It answers senders that have to prove their
 * address, and passes on packets of known connections, of proven senders, and a few others.
 */
export interface NativeFirstPackets {
  know(id: Uint8Array): void;
  forget(id: Uint8Array): void;
  counts(): NativeFirstPacketCounts;
  /** Closes the descriptor. */
  close(): void;
}

/**
 * Owns the descriptor from now on. `key`: of RetryTokens. `idKey`: of the connection socket at the same port.
 * Throws Error if the event loop refuses it.
 */
export type FirstPacketsConstructor = new (
  descriptor: number,
  bufferBytes: number,
  key: Uint8Array,
  idKey: Uint8Array,
  passed: FirstPacketListener,
) => NativeFirstPackets;
