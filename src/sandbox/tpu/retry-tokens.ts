// Tokens of stateless retries: a sender shows that what goes to its address reaches it.
//
// Called by the leaders' server for first packets (RFC 9000, 8.1). A token names the connection id
// that the sender chose first; it is good for one address, one connection id of ours and a while.
// Layout: u64 big-endian of the last good moment (ns, monotonic) | original connection id | HMAC.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { QuicheAddress } from "../../gateway/tpu/quiche.ts";

const lifetimeNs = 15_000_000_000n;
const timeBytes = 8;
const macBytes = 32;

export class RetryTokens {
  readonly #clock: Clock;
  readonly #key = randomBytes(32);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `scid`: the connection id that the retry offers. */
  mint(address: QuicheAddress, originalDcid: Uint8Array, scid: Uint8Array): Buffer {
    const time = Buffer.alloc(timeBytes);
    time.writeBigUInt64BE(this.#clock.monotonicNs() + lifetimeNs);
    const body = Buffer.concat([time, originalDcid]);
    return Buffer.concat([body, this.#mac(body, address, scid)]);
  }

  /** The original connection id; undefined: no token of ours, or not for this. */
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
    const hmac = createHmac("sha256", this.#key);
    // Both ids have lengths of their own: told, so that no byte moves from one to the other.
    hmac.update(Uint8Array.of(body.length, scid.length)).update(body).update(scid);
    return hmac.update(`${host} ${port}`).digest();
  }
}
