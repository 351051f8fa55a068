// The digest of a run: a hash of everything that happened, in its order.

import { createHash } from "node:crypto";
import type { Sent } from "./network.ts";

const bufferBytes = 1 << 16;
/** The head of a shred identifies it. */
const headBytes = 83;

/** Collects bytes, because each call of the hash takes longer than hashing a shred's head. */
export class RunDigest {
  readonly #hash = createHash("sha256");
  readonly #buffer = Buffer.allocUnsafe(bufferBytes);
  #length = 0;

  note(text: string): void {
    if (3 * text.length > bufferBytes) {
      this.#flush();
      this.#hash.update(text);
      return;
    }
    this.#reserve(3 * text.length);
    this.#length += this.#buffer.write(text, this.#length);
  }

  sent(datagrams: readonly Sent[]): void {
    for (const { to, packet } of datagrams) {
      this.#reserve(to.length + headBytes);
      this.#length += this.#buffer.write(to, this.#length, "latin1");
      const head = packet.subarray(0, headBytes);
      this.#buffer.set(head, this.#length);
      this.#length += head.length;
    }
  }

  hex(): string {
    this.#flush();
    return this.#hash.digest("hex");
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes > bufferBytes) this.#flush();
  }

  #flush(): void {
    this.#hash.update(this.#buffer.subarray(0, this.#length));
    this.#length = 0;
  }
}
