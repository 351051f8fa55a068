// Tokens of stateless retries: a sender proves that it receives packets at its address.
//
// Called by the QUIC ingress and by the sandbox's leaders for first packets (RFC 9000, 8.1). Under load, the
// addon makes the ingress's tokens in the same layout. A token
// contains the original connection id of the sender. It is valid for one address, one of our connection
// ids and a limited time. Layout: u64 big-endian of the expiry (ns, monotonic) | original connection id |
// HMAC.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { QuicheAddress } from "../../core/quic/quiche.ts";

const lifetimeNs = 15_000_000_000n;
const timeBytes = 8;
const macBytes = 32;

export class RetryTokens {
  readonly #clock: Clock;
  /** 32 bytes. The addon makes tokens with it, too (native/quic/retry.h). */
  readonly key = randomBytes(32);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `scid`: the connection id of the retry. */
  mint(address: QuicheAddress, originalDcid: Uint8Array, scid: Uint8Array): Buffer {
    const time = Buffer.alloc(timeBytes);
    time.writeBigUInt64BE(this.#clock.monotonicNs() + lifetimeNs);
    const body = Buffer.concat([time, originalDcid]);
    return Buffer.concat([body, this.#mac(body, address, scid)]);
  }

  /** The original connection id; undefined: the token is invalid, or for another connection. */
  read(token: Uint8Array, address: QuicheAddress, scid: Uint8Array): Uint8Array | undefined {
    const bytes = Buffer.from(token);
    if (bytes.length < timeBytes + macBytes) return undefined;
    const body = bytes.subarray(0, -macBytes);
    if (!timingSafeEqual(bytes.subarray(-macBytes), this.#mac(body, address, scid))) {
      return undefined;
    }
    if (body.readBigUInt64BE() < this.#clock.monotonicNs()) return undefined;
    return body.subarray(timeBytes);
  }

  #mac(body: Uint8Array, { host, port }: QuicheAddress, scid: Uint8Array): Buffer {
    const hmac = createHmac("sha256", this.key);
    // Both ids have variable lengths: the lengths are included, so that no byte can move from one
    // to the other.
    hmac.update(Uint8Array.of(body.length, scid.length)).update(body).update(scid);
    return hmac.update(`${host} ${port}`).digest();
  }
}
