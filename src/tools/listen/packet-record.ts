// The record of a feed: its datagrams in a file, bounded by size.
//
// A pcap with the kernel's receive times in nanoseconds, or an .lpb (no times) where the file's name
// ends so. Used by `listen --record`; `replay` and `race --capture` read it. When the bound is reached it
// stops writing and counts what it left out.

import { closeSync, openSync, writeSync } from "node:fs";
import { parseEndpoint } from "../../core/addresses/addresses.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { lpbPacketBytesMax, writeLpb } from "../../relay/captures/lpb.ts";
import { encodePcapHeader, encodePcapRecord } from "../../relay/captures/pcap-writer.ts";
import { packetBytesMax } from "../../relay/data-plane/parse-shred.ts";
import type { KeptPacket } from "../race/feed-recorder.ts";

const flushBytes = 256 * 1024;

export class PacketRecord {
  readonly path: string;
  packets = 0;
  bytes = 0;
  /** Beyond the bound, or too long to be anybody's shred. */
  leftOut = 0;
  readonly #file: number;
  readonly #bytesMax: number;
  readonly #isPcap: boolean;
  #pieces: Uint8Array[] = [];
  #waiting = 0;
  #isOpen = true;

  /** Throws ShredwayError "system". */
  constructor(path: string, bytesMax: number) {
    this.path = path;
    this.#bytesMax = bytesMax;
    this.#isPcap = !path.endsWith(".lpb");
    this.#file = this.#system(() => openSync(path, "w"));
    if (this.#isPcap) this.#append(encodePcapHeader());
  }

  get isFull(): boolean {
    return this.bytes >= this.#bytesMax;
  }

  add(kept: KeptPacket): void {
    // A longer one was cut when it was kept, and is no shred.
    if (kept.packet.length > Math.min(packetBytesMax, lpbPacketBytesMax)) {
      this.leftOut++;
      return;
    }
    const bytes = this.#isPcap ? pcapRecord(kept) : writeLpb([kept.packet]);
    if (this.bytes + bytes.length > this.#bytesMax) {
      this.leftOut++;
      return;
    }
    this.packets++;
    this.#append(bytes);
  }

  /** May be called again. */
  close(): void {
    if (!this.#isOpen) return;
    this.#flush();
    closeSync(this.#file);
    this.#isOpen = false;
  }

  #append(bytes: Uint8Array): void {
    this.bytes += bytes.length;
    this.#pieces.push(bytes);
    this.#waiting += bytes.length;
    if (this.#waiting >= flushBytes) this.#flush();
  }

  #flush(): void {
    const bytes = Buffer.concat(this.#pieces);
    for (let at = 0; at < bytes.length; )
      at += this.#system(() => writeSync(this.#file, bytes, at));
    this.#pieces = [];
    this.#waiting = 0;
  }

  #system<T>(call: () => T): T {
    try {
      return call();
    } catch (cause) {
      const message = `${this.path}: cannot be written: ${messageOf(cause)}`;
      throw new ShredwayError("system", message, { cause });
    }
  }
}

// To which own address it came, a socket for all of them does not tell: the port is what matters.
function pcapRecord({ packet, timestampNs, source, port }: KeptPacket): Uint8Array {
  const any = source.family === "ipv4" ? "0.0.0.0" : "[::]";
  const destination = parseEndpoint(`${any}:${port}`);
  return encodePcapRecord({ packet, timestampNs, source, destination });
}
