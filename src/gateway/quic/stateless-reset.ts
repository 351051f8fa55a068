// Stateless resets (RFC 9000, 10.3): a client learns at once that its connection is gone.
//
// Used by ingress-server.ts. Tokens derive from a secret in the data folder, so they survive a restart of
// the process and of the service, and a new certificate.

import { createHash, createHmac, randomBytes } from "node:crypto";

const tokenBytes = 16;
/** Shorter ones could be mistaken for other packets. */
const packetBytesMin = 21;
const packetBytesUsual = 43;
const fixedBits = 0x40;

export class StatelessResets {
  readonly #key: Buffer;

  constructor(secret: string) {
    this.#key = createHash("sha256").update("shredway stateless reset").update(secret).digest();
  }

  tokenOf(connectionId: Uint8Array): Buffer {
    const hmac = createHmac("sha256", this.#key).update(connectionId);
    return hmac.digest().subarray(0, tokenBytes);
  }

  /** quiche takes the token as an integer of 128 bits. */
  tokenNumberOf(connectionId: Uint8Array): bigint {
    return BigInt(`0x${this.tokenOf(connectionId).toString("hex")}`);
  }

  /**
   * The response to a packet of an unknown connection; null: the packet is too short. It is always
   * shorter than the packet, so two services cannot keep answering each other.
   */
  packetFor(connectionId: Uint8Array, packetBytes: number): Buffer | null {
    const length = Math.min(packetBytesUsual, packetBytes - 1);
    if (length < packetBytesMin) return null;
    const packet = randomBytes(length);
    packet[0] = ((packet[0] ?? 0) & 0x3f) | fixedBits;
    packet.set(this.tokenOf(connectionId), length - tokenBytes);
    return packet;
  }
}
