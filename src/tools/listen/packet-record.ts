// Packet record: writes a feed's datagrams to a file of bounded size.
//
// Writes pcap with the kernel's receive times in nanoseconds, or .lpb (no times) by the file's
// extension. Used by `listen --record`; `replay` and `race --capture` read it. After the size
// limit, or when the file cannot be written, it stops writing and counts the omitted packets.

import { parseEndpoint } from "../../core/addresses/addresses.ts";
import type { ShredwayError } from "../../core/errors.ts";
import { lpbPacketBytesMax, writeLpb } from "../../relay/captures/lpb.ts";
import { encodePcapHeader, encodePcapRecord } from "../../relay/captures/pcap-writer.ts";
import { packetBytesMax } from "../../relay/data-plane/parse-shred.ts";
import type { RecordedPacket } from "../race/feed-recorder.ts";
import { SessionFile } from "../terminal/session-file.ts";

const flushBytes = 256 * 1024;

export class PacketRecord {
  packets = 0;
  bytes = 0;
  /** Packets beyond the size limit, after a failed write, or too long for a shred. */
  leftOut = 0;
  readonly #file: SessionFile;
  readonly #bytesMax: number;
  readonly #isPcap: boolean;
  #pieces: Uint8Array[] = [];
  #waiting = 0;

  /** Throws ShredwayError "system". */
  constructor(path: string, bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#isPcap = !path.endsWith(".lpb");
    this.#file = new SessionFile(path);
    if (this.#isPcap) this.#append(encodePcapHeader());
  }

  get path(): string {
    return this.#file.path;
  }

  /** Why the file is incomplete; null: it is not, or packets still wait to be written. */
  get failure(): ShredwayError | null {
    return this.#file.failure;
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
    if (this.failure || this.bytes + bytes.length > this.#bytesMax) {
      this.leftOut++;
      return;
    }
    this.packets++;
    this.#append(bytes);
  }

  /** Never throws. May be called repeatedly. */
  close(): void {
    this.#flush();
    this.#file.close();
  }

  #append(bytes: Uint8Array): void {
    this.bytes += bytes.length;
    this.#pieces.push(bytes);
    this.#waiting += bytes.length;
    if (this.#waiting >= flushBytes) this.#flush();
  }

  #flush(): void {
    this.#file.write(Buffer.concat(this.#pieces));
    this.#pieces = [];
    this.#waiting = 0;
  }
}

// A wildcard socket does not report the local destination address; only the port matters.
function pcapRecord({ packet, timestampNs, source, port }: RecordedPacket): Uint8Array {
  const any = source.family === "ipv4" ? "0.0.0.0" : "[::]";
  const destination = parseEndpoint(`${any}:${port}`);
  return encodePcapRecord({ packet, timestampNs, source, destination });
}
