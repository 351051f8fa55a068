// Packet record: writes a feed's datagrams to a file of bounded size.
//
// Writes pcap with the kernel's receive times in nanoseconds, or .lpb (no times) by the file's
// extension. Used by `listen --record`; `replay` and `race --capture` read it. After the size
// limit it stops writing and counts the omitted packets.

import { closeSync, openSync, writeSync } from "node:fs";
import { parseEndpoint } from "../../core/addresses/addresses.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { lpbPacketBytesMax, writeLpb } from "../../relay/captures/lpb.ts";
import { encodePcapHeader, encodePcapRecord } from "../../relay/captures/pcap-writer.ts";
import { packetBytesMax } from "../../relay/data-plane/parse-shred.ts";
import type { RecordedPacket } from "../race/feed-recorder.ts";

const flushBytes = 256 * 1024;

export class PacketRecord {
  readonly path: string;
  packets = 0;
  bytes = 0;
  /** Packets beyond the size limit or too long for a shred. */
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

  add(packet: RecordedPacket): void {
    // A longer packet was truncated on receipt and is not a shred.
    if (packet.packet.length > Math.min(packetBytesMax, lpbPacketBytesMax)) {
      this.leftOut++;
      return;
    }
    const bytes = this.#isPcap ? pcapRecord(packet) : writeLpb([packet.packet]);
    if (this.bytes + bytes.length > this.#bytesMax) {
      this.leftOut++;
      return;
    }
    this.packets++;
    this.#append(bytes);
  }

  /** May be called repeatedly. */
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
      const message = `cannot write ${this.path}: ${messageOf(cause)}`;
      throw new ShredwayError("system", message, { cause });
    }
  }
}

// A wildcard socket does not report the local destination address; only the port matters.
function pcapRecord({ packet, timestampNs, source, port }: RecordedPacket): Uint8Array {
  const any = source.family === "ipv4" ? "0.0.0.0" : "[::]";
  const destination = parseEndpoint(`${any}:${port}`);
  return encodePcapRecord({ packet, timestampNs, source, destination });
}
