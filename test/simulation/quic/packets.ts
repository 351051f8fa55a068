// Packets of the simulated QUIC: frames that both sides understand, in datagrams of a true length.
//
// A datagram contains the number of its packet in a table of the run. The product sees its length and the id of
// the gateway's connection, and nothing else of it.

export type Frame =
  /** The first one of a handshake. */
  | { readonly kind: "hello" }
  /** The end of a handshake. */
  | { readonly kind: "welcome" }
  /** Numbers of packets that arrived. */
  | { readonly kind: "ack"; readonly packets: readonly number[] }
  /** The remote side may open so many streams in total. */
  | { readonly kind: "streams"; readonly most: number }
  | {
      readonly kind: "stream";
      readonly id: number;
      readonly offset: number;
      readonly bytes: Buffer;
      readonly isLast: boolean;
    }
  | { readonly kind: "reset" | "stop"; readonly id: number }
  | { readonly kind: "ping" }
  | { readonly kind: "close"; readonly isApp: boolean; readonly code: number };

export type StreamFrame = Extract<Frame, { kind: "stream" }>;

export interface Packet {
  /** Counts the packets of its connection and direction. */
  readonly number: number;
  readonly frames: readonly Frame[];
}

/** Flags of a packet with a short header. */
const shortHeader = 0x40;
const idBytes = 8;
const numberAt = 1 + idBytes;
const tagBytes = 16;
const headBytes = numberAt + 4 + tagBytes;
/** A first packet is at least so long. */
const helloBytes = 1200;
const frameBytes = 6;

/** Bytes of stream data that one packet carries at most. */
export const streamBytesMax = 1280 - headBytes - 12;

export function hasStream(frames: readonly Frame[]): boolean {
  return frames.some(({ kind }) => kind === "stream");
}

/** Whether the remote side acknowledges a packet with these frames. */
export function isAckEliciting(frames: readonly Frame[]): boolean {
  return frames.some(({ kind }) => kind !== "ack" && kind !== "close");
}

export class PacketTable {
  readonly #packets: Packet[] = [];

  /** `id`: of the gateway's connection, whatever the direction. Returns the length of the datagram. */
  write(id: Uint8Array, packet: Packet, datagram: Buffer): number {
    let length = headBytes;
    for (const frame of packet.frames)
      length += frameBytes + (frame.kind === "stream" ? frame.bytes.length : 0);
    if (packet.frames.some(({ kind }) => kind === "hello")) length = helloBytes;
    datagram.fill(0, 0, length);
    datagram[0] = shortHeader;
    datagram.set(id, 1);
    datagram.writeUInt32LE(this.#packets.push(packet) - 1, numberAt);
    return length;
  }

  datagram(id: Uint8Array, packet: Packet): Buffer {
    const datagram = Buffer.alloc(2048);
    return datagram.subarray(0, this.write(id, packet, datagram));
  }

  /** The id of the gateway's connection as text, and the packet. */
  read(datagram: Uint8Array): { readonly id: string; readonly packet: Packet } {
    const bytes = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.length);
    const packet = this.#packets[bytes.readUInt32LE(numberAt)];
    if (!packet) throw new RangeError("expected a packet of the simulation");
    return { id: bytes.toString("latin1", 1, 1 + idBytes), packet };
  }
}
