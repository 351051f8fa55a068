import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { familyOf } from "../../../src/core/addresses/addresses.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import { memorySource } from "../../../src/relay/captures/byte-reader.ts";
import { lpbPacketBytesMax, writeLpb } from "../../../src/relay/captures/lpb.ts";
import { type PacketToWrite, writePcap } from "../../../src/relay/captures/pcap-writer.ts";
import {
  type CapturedPacket,
  openCapture,
  readCapture,
} from "../../../src/relay/captures/read-capture.ts";
import * as frames from "../../support/network/frames.ts";

/** All packets in the bytes, and the error at the end, if any. */
function readAll(bytes: Uint8Array) {
  const packets: CapturedPacket[] = [];
  try {
    const capture = readCapture(memorySource(bytes), "test");
    try {
      for (const packet of capture.packets) packets.push(packet);
      return { packets, format: capture.format, skipped: capture.skipped, error: undefined };
    } catch (error) {
      if (!(error instanceof ShredwayError) || error.reason !== "capture_invalid") throw error;
      return { packets, format: capture.format, skipped: capture.skipped, error };
    }
  } catch (error) {
    if (!(error instanceof ShredwayError) || error.reason !== "capture_invalid") throw error;
    return { packets, format: undefined, skipped: undefined, error };
  }
}

const payloads = (read: { packets: readonly CapturedPacket[] }) =>
  read.packets.map(({ packet }) => packet);

const port = fc.nat(65_535);
const endpointPairs = fc.constantFrom(4, 16).chain((size) => {
  const bytes = fc.uint8Array({ minLength: size, maxLength: size }).map((address) => {
    if (size === 16) return address.with(0, 0x20);
    const mapped = new Uint8Array(16).fill(0xff, 10, 12);
    mapped.set(address, 12);
    return mapped;
  });
  const endpoint = fc
    .record({ bytes, port })
    .map((part) => ({ ...part, family: familyOf(part.bytes) }));
  return fc.tuple(endpoint, endpoint);
});
const packetsToWrite: fc.Arbitrary<PacketToWrite> = fc
  .tuple(
    fc.uint8Array({ maxLength: 1300 }),
    fc.bigInt(0n, (2n ** 32n - 1n) * 1_000_000_000n),
    endpointPairs,
  )
  .map(([packet, timestampNs, [source, destination]]) => ({
    packet,
    timestampNs,
    source,
    destination,
  }));

describe("writing and reading", () => {
  it("return the packets of an .lpb file", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: lpbPacketBytesMax }), { minLength: 1 }),
        (packets) => {
          const read = readAll(writeLpb(packets));
          expect([read.format, payloads(read), read.error]).toEqual(["lpb", packets, undefined]);
        },
      ),
      { numRuns: 200 },
    );
    expect(() => writeLpb([new Uint8Array(2049)])).toThrow("at most 2048 bytes, got 2049");
  });

  it("return packets, times and endpoints of a pcap file", () => {
    fc.assert(
      fc.property(fc.array(packetsToWrite, { maxLength: 8 }), (packets) => {
        const read = readAll(writePcap(packets));
        expect([read.format, read.packets, read.error]).toEqual(["pcap", packets, undefined]);
      }),
      { numRuns: 200 },
    );
  });

  it("handle files larger than the buffer, in pieces of any size", () => {
    const packets = Array.from({ length: 1500 }, (_, i) => new Uint8Array(1228).fill(i));
    const bytes = writeLpb(packets);
    let at = 0;
    const capture = readCapture((into) => {
      const part = bytes.subarray(at, at + 1 + ((at * 31) % 7919)).subarray(0, into.length);
      into.set(part);
      at += part.length;
      return part.length;
    }, "pieces");
    // Compared as one buffer, because 2 MB byte by byte take seconds.
    const read = Buffer.concat(Array.from(capture.packets, ({ packet }) => packet));
    expect(read.equals(Buffer.concat(packets))).toBe(true);
  });
});

const payload = Uint8Array.from({ length: 50 }, (_, i) => i);
const frame = frames.ethernet(0x0800, frames.ipv4(frames.udp(payload)));
const arp = frames.ethernet(0x0806, new Uint8Array(28));

describe("pcap", () => {
  it.each([
    { littleEndian: true, nanoseconds: true, timestampNs: 1_000_000_000_005n },
    { littleEndian: true, nanoseconds: false, timestampNs: 1_000_000_005_000n },
    { littleEndian: false, nanoseconds: true, timestampNs: 1_000_000_000_005n },
    { littleEndian: false, nanoseconds: false, timestampNs: 1_000_000_005_000n },
  ])("reads little-endian $littleEndian, nanoseconds $nanoseconds", ({ timestampNs, ...form }) => {
    const read = readAll(frames.pcapFile({ ...form, linkType: 1 }, [frame, arp, frame]));
    expect(read.format).toBe("pcap");
    expect(payloads(read)).toEqual([payload, payload]);
    expect(read.packets[0]?.timestampNs).toBe(timestampNs);
    expect(read.skipped).toMatchObject({ not_ip: 1, fragment: 0 });
  });

  it("delivers the packets before the end of a truncated file, and names the offset", () => {
    const whole = frames.pcapFile({ littleEndian: true, nanoseconds: true, linkType: 1 }, [
      frame,
      frame,
    ]);
    const second = 24 + 16 + frame.length;
    for (let length = 0; length < whole.length; length++) {
      const read = readAll(whole.subarray(0, length));
      expect(read.packets.length).toBe(length < second ? 0 : 1);
      if (length === 24 || length === second) expect(read.error).toBeUndefined();
      else expect(read.error?.message).toMatch(/^test: at byte \d+: expected/);
    }
    const cut = readAll(whole.subarray(0, second + 20)).error;
    expect(cut?.details).toEqual({ file: "test", offset: second + 16 });
    expect(cut?.message).toContain(`expected ${frame.length} more bytes of a frame, got 4`);
  });

  it("rejects absurd lengths and versions", () => {
    const whole = frames.pcapFile({ littleEndian: true, nanoseconds: true, linkType: 1 }, [frame]);
    new DataView(whole.buffer, whole.byteOffset).setUint32(24 + 8, 0xffff_fff0, true);
    expect(readAll(whole).error?.message).toContain(
      "at byte 32: expected a frame of at most 262144 bytes",
    );
    new DataView(whole.buffer, whole.byteOffset).setUint16(4, 3, true);
    expect(readAll(whole).error?.message).toContain("expected pcap version 2, got 3");
  });
});

describe("pcapng", () => {
  const file = (littleEndian: boolean, ...blocks: Uint8Array[]) =>
    frames.bytesOf(frames.sectionHeader(littleEndian), ...blocks);

  it.each([true, false])(
    "reads sections, interfaces and packets (little-endian %s)",
    (littleEndian) => {
      const option = (code: number, value: Uint8Array) => frames.option(littleEndian, code, value);
      const offset = frames.words(8, (view) => view.setBigInt64(0, 100n, littleEndian));
      const enhanced = (number: number, ticks: bigint, body: Uint8Array) =>
        frames.enhancedPacket({ littleEndian, interface: number, ticks }, body);
      const read = readAll(
        file(
          littleEndian,
          frames.interfaceBlock(littleEndian, 1),
          frames.interfaceBlock(littleEndian, 101, option(9, Uint8Array.of(9))),
          frames.block(littleEndian, 0xbad, new Uint8Array(300_000)),
          frames.interfaceBlock(
            littleEndian,
            1,
            frames.bytesOf(
              option(2, payload),
              option(9, Uint8Array.of(0x81)),
              option(14, offset),
              option(0, new Uint8Array(0)),
            ),
          ),
          enhanced(0, 7_000_001n, frame),
          enhanced(1, 2n ** 33n + 5n, frame.subarray(14)),
          enhanced(2, 3n, frame),
          enhanced(0, 0n, arp),
          frames.simplePacket(littleEndian, frame),
          frames.block(
            littleEndian,
            2,
            frames.bytesOf(
              frames.words(20, (view) => {
                view.setUint16(0, 1, littleEndian);
                view.setUint32(8, 9, littleEndian);
                view.setUint32(12, frame.length - 14, littleEndian);
              }),
              frame.subarray(14),
            ),
          ),
          frames.sectionHeader(!littleEndian, new Uint8Array(2000)),
          frames.interfaceBlock(!littleEndian, 113),
          frames.enhancedPacket(
            { littleEndian: !littleEndian, interface: 0, ticks: 1n },
            frames.cooked(0x0800, frame.subarray(14)),
          ),
        ),
      );
      expect(read.error).toBeUndefined();
      expect(read.format).toBe("pcapng");
      expect(read.packets.map(({ timestampNs }) => timestampNs)).toEqual([
        7_000_001_000n,
        2n ** 33n + 5n,
        101_500_000_000n,
        null,
        9n,
        1000n,
      ]);
      expect(payloads(read)).toEqual(Array.from({ length: 6 }, () => payload));
      expect(read.skipped).toMatchObject({ not_ip: 1 });
    },
  );

  it("delivers the packets before the end of a truncated file", () => {
    const head = file(true, frames.interfaceBlock(true, 1));
    const packet = frames.enhancedPacket({ littleEndian: true, interface: 0, ticks: 0n }, frame);
    const whole = frames.bytesOf(head, packet, packet);
    for (let length = 4; length < whole.length; length++) {
      const read = readAll(whole.subarray(0, length));
      expect(read.packets.length).toBe(length < head.length + packet.length ? 0 : 1);
      if (read.error) expect(read.error.message).toMatch(/^test: at byte \d+: expected/);
      else expect([28, head.length, head.length + packet.length]).toContain(length);
    }
  });

  it.each([
    [
      "a packet without interface",
      file(true, frames.enhancedPacket({ littleEndian: true, interface: 0, ticks: 0n }, frame)),
      /expected one of 0 described interfaces/,
    ],
    [
      "a wrong repeated length",
      frames.bytesOf(file(true, frames.interfaceBlock(true, 1)).with(44, 99)),
      /expected the block length 20 again, got 99/,
    ],
    [
      "a frame longer than its block",
      file(
        true,
        frames.interfaceBlock(true, 1),
        frames.enhancedPacket({ littleEndian: true, interface: 0, ticks: 0n }, frame).with(22, 1),
      ),
      /expected a frame within the block/,
    ],
    [
      "a short block",
      file(true, frames.block(true, 6, new Uint8Array(16))),
      /expected a block of at least 32 bytes, got 28/,
    ],
    ["another version", frames.sectionHeader(true).with(12, 2), /expected pcapng version 1, got 2/],
    ["no byte order", frames.sectionHeader(true).with(8, 0), /expected a byte-order magic/],
    [
      "a block of 8 bytes",
      frames.bytesOf(frames.sectionHeader(true), 5, 0, 0, 0, 8, 0, 0, 0),
      /expected a block length .* from 12 on, got 8/,
    ],
    [
      "too many interfaces",
      file(true, ...Array.from({ length: 4097 }, () => frames.interfaceBlock(true, 1))),
      /at most 4096 interfaces/,
    ],
  ])("refuses %s", (_name, bytes, message) => {
    expect(readAll(bytes).error?.message).toMatch(message);
  });
});

describe("formats", () => {
  it.each([
    ["an empty file", new Uint8Array(0)],
    ["one byte", Uint8Array.of(1)],
    ["text", new TextEncoder().encode("hello, this is no capture")],
    ["JSON", new TextEncoder().encode("{\n  1")],
    ["gzip", Uint8Array.of(0x1f, 0x8b, 8, 0)],
    ["an ELF program", new TextEncoder().encode("\x7fELF")],
  ])("refuses %s", (_name, bytes) => {
    expect(readAll(bytes).error?.message).toMatch(
      /at byte 0: expected a pcap, pcapng or .lpb capture, got/,
    );
  });

  it("names the offset where an .lpb file is damaged", () => {
    const good = writeLpb([payload]);
    expect(readAll(frames.bytesOf(good, 0, 0x10)).error?.message).toContain(
      "at byte 52: expected a packet length of at most 2048, got 4096",
    );
    expect(readAll(frames.bytesOf(good, 3)).error?.details).toEqual({ file: "test", offset: 52 });
    expect(payloads(readAll(frames.bytesOf(good, 3, 0, 9)))).toEqual([payload]);
  });

  it("reads any bytes as packets, or throws a ShredwayError", () => {
    const starts = fc.constantFrom(
      new Uint8Array(0),
      frames.pcapFile({ littleEndian: true, nanoseconds: true, linkType: 1 }, [frame]),
      frames.pcapFile({ littleEndian: false, nanoseconds: false, linkType: 101 }, []),
      frames.bytesOf(frames.sectionHeader(true), frames.interfaceBlock(true, 1)),
      frames.bytesOf(
        frames.sectionHeader(false),
        frames.interfaceBlock(false, 1),
        frames.simplePacket(false, frame),
      ),
      writeLpb([payload, payload]),
    );
    const corrupted = fc
      .tuple(
        starts,
        fc.uint8Array({ maxLength: 200 }),
        fc.array(fc.tuple(fc.nat(300), fc.nat(255)), { maxLength: 4 }),
      )
      .map(([start, rest, changes]) => {
        const bytes = frames.bytesOf(start, rest);
        for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
        return bytes;
      });
    fc.assert(
      fc.property(corrupted, (bytes) => {
        // Every packet needs bytes of its own, so the output is bounded by the input.
        const total = readAll(bytes).packets.reduce((sum, { packet }) => sum + packet.length, 0);
        expect(total).toBeLessThanOrEqual(bytes.length);
      }),
      { numRuns: 5000 },
    );
  });

  it("bounds its memory for any declared block length", () => {
    const head = frames.bytesOf(
      frames.sectionHeader(true),
      Uint8Array.of(0xad, 0x0b, 0, 0, 0xfc, 0xff, 0xff, 0xff),
    );
    let longest = 0;
    let given = 0;
    const capture = readCapture((into) => {
      longest = Math.max(longest, into.length);
      if (given === 0) into.set(head);
      const length = given === 0 ? head.length : given < 64 * 1024 * 1024 ? into.length : 0;
      given += length;
      return length;
    }, "endless");
    expect(() => Array.from(capture.packets)).toThrow(/the file is truncated/);
    expect(longest).toBeLessThanOrEqual(1024 * 1024);
  });
});

describe("files", () => {
  const inFolder = (use: (folder: string) => void): void => {
    const folder = mkdtempSync(join(tmpdir(), "shredway-"));
    try {
      use(folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
  const written: PacketToWrite[] = [
    {
      packet: payload,
      timestampNs: 1_700_000_000_123_456_789n,
      source: {
        bytes: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1),
        port: 4000,
        family: "ipv4",
      },
      destination: {
        bytes: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 2),
        port: 20_000,
        family: "ipv4",
      },
    },
    {
      packet: payload.subarray(0, 49),
      timestampNs: 1_700_000_001_000_000_000n,
      source: { bytes: new Uint8Array(16).fill(0x20), port: 4000, family: "ipv6" },
      destination: { bytes: new Uint8Array(16).fill(0x21), port: 20_000, family: "ipv6" },
    },
  ];

  it("detects the format by content, and closes the file", () => {
    inFolder((folder) => {
      const path = join(folder, "capture.lpb");
      writeFileSync(path, writePcap(written));
      const capture = openCapture(path);
      expect(capture.format).toBe("pcap");
      expect(Array.from(capture.packets)).toEqual(written);
      expect(capture.offset).toBe(writePcap(written).length);
      capture.close();
      capture.close();
      expect(() => openCapture(join(folder, "none"))).toThrow(/none: cannot be read/);
      expect(() => openCapture(folder)).toThrow(ShredwayError);
    });
  });

  const hasTshark = spawnSync("tshark", ["--version"]).status === 0;
  it.skipIf(!hasTshark)("writes a pcap that tshark reads, with correct checksums", () => {
    inFolder((folder) => {
      const path = join(folder, "written.pcap");
      writeFileSync(path, writePcap(written));
      const fields = [
        "frame.time_epoch",
        "ip.src",
        "ipv6.src",
        "udp.srcport",
        "udp.dstport",
        "ip.checksum.status",
        "udp.checksum.status",
        "udp.payload",
      ];
      const checks = ["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
      const text = execFileSync(
        "tshark",
        ["-r", path, ...checks, "-T", "fields", ...fields.flatMap((field) => ["-e", field])],
        { encoding: "utf8" },
      );
      const rows = text
        .trimEnd()
        .split("\n")
        .map((line) => line.split("\t"));
      const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
      const v6 = Array.from({ length: 8 }, () => "2020").join(":");
      expect(rows).toEqual([
        ["1700000000.123456789", "192.0.2.1", "", "4000", "20000", "1", "1", hex(payload)],
        ["1700000001.000000000", "", v6, "4000", "20000", "", "1", hex(payload.subarray(0, 49))],
      ]);
    });
  });

  it("never writes the UDP checksum 0, which means that it is absent", () => {
    const [entry] = written;
    if (!entry) return expect.fail("a packet");
    // One of all two-byte payloads has the sum 0.
    const checksumAt = 24 + 16 + 20 + 6;
    const sums = Array.from({ length: 65_536 }, (_, value) => {
      const bytes = writePcap([{ ...entry, packet: frames.be16(value) }]);
      return (bytes[checksumAt] ?? 0) * 256 + (bytes[checksumAt + 1] ?? 0);
    });
    expect(sums.includes(0)).toBe(false);
    expect(sums.includes(0xffff)).toBe(true);
  });

  it("rejects packets that the format cannot contain", () => {
    const [first, second] = written;
    if (!first || !second) return expect.fail("two packets");
    expect(() => writePcap([{ ...first, destination: second.destination }])).toThrow(
      /endpoints of one family/,
    );
    expect(() => writePcap([{ ...first, timestampNs: -1n }])).toThrow(/expected a time/);
    expect(() => writePcap([{ ...first, packet: new Uint8Array(65_508) }])).toThrow(
      /at most 65507 bytes/,
    );
  });
});
