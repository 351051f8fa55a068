// Frames of the reference encoder, damaged frames, and bounds of the output.

import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { decompressZstd, ZstdError } from "../../../src/core/zstd/zstd.ts";

function accounts(count: number): string {
  return Array.from(
    { length: count },
    (_, i) => `account ${(i * i) % 97} of slot ${(i * 7) % 13}, `,
  ).join("");
}

/** Made with the program zstd 1.5, from the text beside each. */
const frames: readonly (readonly [string, string, string])[] = [
  ["no content", "", "KLUv/SQAAQAAmenYUQ=="],
  [
    "a raw block",
    "streams of decoded transactions",
    "KLUv/QRY+QAAc3RyZWFtcyBvZiBkZWNvZGVkIHRyYW5zYWN0aW9uc789/2k=",
  ],
  ["repeated bytes", "a".repeat(300_000), "KLUv/QRYVAAAEGFhAQD7/znAAgIAEGEDnwRhjV8Epg=="],
  [
    "one stream of literals, and sequences",
    accounts(20),
    "KLUv/QRY/QMAUgQOEsClDZY2AEP8NyC0sru3IEM4Jx5Gula4pNKUSlPvV2gnl9+ztMWqPNmf3oN8jEA4MCafoTClAAEmIGAjhR0Fsdlsy30V3AxKa992MMy34Ib7FrSZpX0aoeBmK+LBnMxmbjlo38awpdmiIGyWpdUW2II3K2JfYba43EhoJmVE6io=",
  ],
  [
    "tables of their own",
    accounts(60),
    "KLUv/QRoVQUAIskWErCnDVA0WRoMS0RubkmbA2J0Kscfi3ynYd7Y+cZnN3mGzmPJWP+x5ukTqQzxyI7FKt2smqdtqOVsS3pNdL+iFpnbYn2a5TuN6MVsXQcogxjEMYMxZZAiMQQhCEeoEUDl7r8BcC2tHBK4AQUTNASLD+7fAU3628Nx9X91/F8leUuoJPaeOCJM7URSyBgQlddKjGIFWsGT5bBhsziIIcgc588V9V0RQKrtA1XF",
  ],
];
const hasZstd = spawnSync("zstd", ["--version"]).status === 0;
const header = Buffer.from("28b52ffd0058", "hex");
/** A frame of raw blocks with one byte each. */
const frameOf = (blocks: number) =>
  Buffer.concat([
    header,
    ...Array.from({ length: blocks }, (_, i) => Buffer.of(8 + Number(i === blocks - 1), 0, 0, 65)),
  ]);

describe("decompressZstd", () => {
  it.each(frames)("reads a frame with %s", (_, text, base64) => {
    expect(decompressZstd(Buffer.from(base64, "base64"), text.length).toString()).toBe(text);
  });

  it("reads several frames, and leaves out skippable ones", () => {
    const skippable = Buffer.from("5f2a4d1803000000010203", "hex");
    const [, raw = ["", "", ""]] = frames;
    const frame = Buffer.from(raw[2], "base64");
    const all = Buffer.concat([frame, skippable, frame]);
    expect(decompressZstd(all, 1000).toString()).toBe(raw[1] + raw[1]);
  });

  it.skipIf(!hasZstd).each(["--fast=5", "-1", "-3", "-9", "-19"])(
    "reads what the zstd program writes with %s",
    (level) => {
      const random = new SeededRandom(7);
      const noise = random.fillBytes(new Uint8Array(300_000));
      const contents = [
        noise,
        noise.map((byte, i) => byte & (noise[i + 1] ?? 0) & (noise[i + 2] ?? 0)),
        noise.map((byte) => 97 + (byte % 6)),
        Buffer.from(accounts(6000)),
        Buffer.concat(
          Array.from(noise.subarray(0, 9000), (byte) => noise.subarray(byte, 2 * byte)),
        ),
      ];
      for (const content of contents) {
        const options = { input: content, maxBuffer: 2 * content.length + 1024 };
        const { status, stdout } = spawnSync("zstd", [level, "-c", "-q"], options);
        expect(status).toBe(0);
        expect(decompressZstd(stdout, content.length).equals(content)).toBe(true);
      }
    },
  );

  it("refuses content that is longer than permitted", () => {
    for (const [, text, base64] of frames.slice(1)) {
      const decompress = () => decompressZstd(Buffer.from(base64, "base64"), text.length - 1);
      expect(decompress).toThrow(expect.objectContaining({ isTooLong: true }));
    }
  });

  it("refuses many small blocks, which cost more time than their bytes show", () => {
    expect(decompressZstd(frameOf(1000), 2000)).toEqual(Buffer.alloc(1000, "A"));
    expect(() => decompressZstd(frameOf(1100), 2000)).toThrow("the content has too many blocks");
  });

  it.each([
    ["", "the content is cut off"],
    ["00000000", "a frame does not begin with its magic number"],
    ["28b52ffd0358010000000100", "a frame needs a dictionary"],
    ["28b52ffd0858010000", "a frame has a reserved bit"],
    ["28b52ffd0058070000", "a block has a reserved type"],
    // Literals without a Huffman table before, and sequences without another one.
    ["28b52ffd00582d00001340000100", "a block repeats a table that does not exist"],
    ["28b52ffd00581d00000001c0", "a block repeats a table that does not exist"],
    ["28b52ffd00582500000001ff80", "a block of sequences has a reserved mode"],
  ])("refuses %s: %s", (hex, message) => {
    expect(() => decompressZstd(Buffer.from(hex, "hex"), 1000)).toThrow(message);
  });

  it("throws nothing but its own error for damaged frames", () => {
    const all = fc.constantFrom(...frames.map(([, , base64]) => base64));
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 6 });
    fc.assert(
      fc.property(all, damage, fc.nat(), (base64, changes, cut) => {
        const whole = Buffer.from(base64, "base64");
        for (const [at, byte] of changes) whole[at % whole.length] = byte;
        const frame = cut % 3 === 0 ? whole.subarray(0, cut % whole.length) : whole;
        try {
          decompressZstd(frame, 1 << 20);
        } catch (error) {
          expect(error).toBeInstanceOf(ZstdError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
