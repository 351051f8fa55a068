// Reads a capture of any format, detected by its first bytes.
//
// For `replay`, tests and tools. Reads synchronously through a bounded buffer, so a consumer that also
// serves traffic must take a few packets at a time.

import { closeSync, readSync } from "node:fs";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { openRegularFile } from "../../core/files.ts";
import { ByteReader, type ByteSource } from "./byte-reader.ts";
import { type CapturedPacket, captureError, newSkipCounts, type SkipCounts } from "./capture.ts";
import { lpbPacketBytesMax, readLpb } from "./lpb.ts";
import { isPcapMagic, readPcap, viewOf } from "./pcap.ts";
import { pcapngMagic, readPcapng } from "./pcapng.ts";

export type { CapturedPacket, SkipCounts } from "./capture.ts";

type CaptureFormat = "lpb" | "pcap" | "pcapng";

interface Capture {
  readonly format: CaptureFormat;
  /** Records without a UDP datagram, so far. */
  readonly skipped: Readonly<SkipCounts>;
  /**
   * The packets in the order of the file, once. Throws ShredwayError "capture_invalid" where the file is
   * damaged or truncated, after all packets before that offset.
   */
  readonly packets: Generator<CapturedPacket>;
}

export interface OpenCapture extends Capture {
  /** Bytes read so far, for progress. */
  readonly offset: number;
  /** Stops reading and closes the file. Idempotent. */
  close(): void;
}

function formatOf(reader: ByteReader): CaptureFormat {
  const first = reader.peek(4);
  if (first.length === 4) {
    const view = viewOf(first);
    if (view.getUint32(0) === pcapngMagic) return "pcapng";
    if (isPcapMagic(view.getUint32(0, true)) || isPcapMagic(view.getUint32(0))) return "pcap";
  }
  const length = (first[0] ?? 0) | ((first[1] ?? 0) << 8);
  if (first.length >= 2 && length <= lpbPacketBytesMax) return "lpb";
  const got = first.length === 0 ? "an empty file" : `bytes ${Buffer.from(first).toString("hex")}`;
  throw captureError(reader.name, 0, `expected a pcap, pcapng or .lpb capture, got ${got}`);
}

/** Reads a capture from any source of bytes; `name` appears in errors. */
export function readCapture(source: ByteSource, name: string): Capture & { reader: ByteReader } {
  const reader = new ByteReader(source, name);
  const format = formatOf(reader);
  const skipped = newSkipCounts();
  const packets =
    format === "lpb"
      ? readLpb(reader)
      : format === "pcap"
        ? readPcap(reader, skipped)
        : readPcapng(reader, skipped);
  return { format, skipped, packets, reader };
}

/**
 * Opens a capture, a regular file. Throws ShredwayError "capture_invalid"; the caller must close it.
 */
export function openCapture(path: string): OpenCapture {
  const system = <T>(call: () => T): T => {
    try {
      return call();
    } catch (cause) {
      const message = `${path}: cannot be read: ${messageOf(cause)}`;
      throw new ShredwayError("capture_invalid", message, { cause });
    }
  };
  const file = system(() => openRegularFile(path));
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(file);
    isOpen = false;
  };
  try {
    const source: ByteSource = (into) =>
      isOpen ? system(() => readSync(file, into, 0, into.length, null)) : 0;
    const { format, skipped, packets, reader } = readCapture(source, path);
    return {
      format,
      skipped,
      packets,
      close,
      get offset() {
        return reader.offset;
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}
