// examples/udp-c, udp-python and udp-rust compared with parseShred: the same packets give the same
// output.

import { execFileSync, spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { parseShred } from "../../src/relay/data-plane/parse-shred.ts";
import { Shredder, type SlotPosition } from "../../src/relay/data-plane/shredder.ts";
import { closing } from "../support/closing.ts";
import { freeUdpPort } from "../support/network/free-ports.ts";
import { until } from "../support/network/udp-receiver.ts";
import { goodCodeFields, goodDataFields, makePacket } from "../support/shreds/shreds.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { Program } from "./installed-package.ts";

const has = (program: string): boolean => spawnSync(program, ["--version"]).status === 0;

/** Command that receives; it is built in `folder` if necessary. */
const receivers: Readonly<Record<string, (folder: string) => readonly [string, ...string[]]>> = {
  gcc: (folder) => {
    const program = join(folder, "receive-c");
    const flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"];
    execFileSync("gcc", [...flags, "-o", program, "examples/udp-c/receive.c"]);
    return [program];
  },
  python3: () => ["python3", "examples/udp-python/receive.py"],
  rustc: (folder) => {
    const program = join(folder, "receive-rust");
    const flags = ["--edition", "2021", "-O", "-D", "warnings"];
    execFileSync("rustc", [...flags, "-o", program, "examples/udp-rust/receive.rs"]);
    return [program];
  },
};

/** Two FEC sets of a slot, including its last one. */
function realPackets(): Uint8Array[] {
  const shredder = new Shredder(new Uint8Array(32).fill(7));
  const position: SlotPosition = {
    slot: 417_955_312n,
    parentOffset: 2,
    version: 50_093,
    chainedRoot: new Uint8Array(32),
    nextFecSetIndex: 0,
  };
  const entries = new Uint8Array(20_000).fill(1);
  const first = shredder.shred(entries, { position, referenceTick: 3, lastInSlot: false });
  const options = { position: first.position, referenceTick: 64 - 1, lastInSlot: true };
  const second = shredder.shred(entries, options);
  return [...first.packets, ...second.packets];
}

/** One packet for each rule that a packet can violate, and for each valid exception. */
function generatePackets(): Uint8Array[] {
  const [data, code] = [goodDataFields, goodCodeFields];
  return [
    makePacket(data),
    makePacket(code),
    makePacket(data, 1232), // trailing bytes
    makePacket(data, 1233),
    makePacket(data, 1202),
    makePacket(code, 1227),
    makePacket(data, 65),
    makePacket(data, 64),
    makePacket(data, 1),
    new Uint8Array(),
    Uint8Array.from({ length: 132 }, (_, i) => (i === 0 ? 4 : 0)),
    ...[0xa5, 0x5a, 0x86, 0x46, 0x95, 0x67, 0x00, 0xff].map((variant) =>
      makePacket({ ...data, variant }, 1228),
    ),
    makePacket({ ...data, index: 32_768, fecSetIndex: 32_768 }),
    makePacket({ ...data, index: 32_767, fecSetIndex: 32_736, slot: 2n ** 64n - 1n }),
    makePacket({ ...data, index: 0xffff_ffff, fecSetIndex: 0xffff_ffe0 }),
    makePacket({ ...data, fecSetIndex: 33 }),
    makePacket({ ...data, fecSetIndex: 64 }),
    makePacket({ ...data, fecSetIndex: 0 }),
    makePacket({ ...data, at85: 0x85 }),
    makePacket({ ...data, index: 62 }),
    makePacket({ ...data, at83: 1001 }),
    makePacket({ ...data, at83: 0 }),
    makePacket({ ...data, at83: 0, slot: 0n }),
    makePacket({ ...data, last: 87 }),
    makePacket({ ...data, last: 1051 }),
    makePacket({ ...data, last: 1052 }),
    makePacket({ ...data, variant: 0xb6, last: 987 }),
    makePacket({ ...data, variant: 0xb6, last: 988 }),
    makePacket({ ...code, at83: 31 }),
    makePacket({ ...code, at85: 33 }),
    makePacket({ ...code, last: 30 }),
    challengeOf("SWPROOF2"),
    challengeOf("SWPROOF1").subarray(0, 51),
  ];
}

/** Valid packets with some bytes of their headers changed. */
function damagedPackets(count: number): Uint8Array[] {
  const random = new SeededRandom(11);
  const good = realPackets();
  return Array.from({ length: count }, () => {
    const packet = Uint8Array.from(good[random.below(good.length)] ?? []);
    for (let i = random.below(3); i >= 0; i--) packet[64 + random.below(25)] = random.below(256);
    return packet;
  });
}

function challengeOf(mark: string): Uint8Array {
  return Buffer.from(`${mark}0123456789abcdefshredway: prove this address`, "latin1");
}

/** Output of the receivers; null: not a shred. */
function lineOf(packet: Uint8Array): string | null {
  const parsed = parseShred(packet);
  if (!parsed.ok) return null;
  const { shred } = parsed;
  const { slot, index, type, fecSetIndex, version } = shred;
  const words: unknown[] = [slot, index, type, fecSetIndex, version];
  const isData = shred.type === "data";
  if (isData && shred.dataComplete) words.push("data_complete");
  if (isData && shred.lastInSlot) words.push("last_in_slot");
  return words.join(" ");
}

/** This many fit into the smallest socket buffer; receivers answer sixteen challenges a second. */
const burst = 40;
const burstsMax = 14;

for (const [name, make] of Object.entries(receivers)) {
  it.skipIf(!has(name))(`a receiver made by ${name} reads packets like parseShred`, async () => {
    const [program, ...args] = make(temporaryFolder());
    const port = await freeUdpPort();
    const packets = [...realPackets(), ...generatePackets()];
    packets.push(...damagedPackets(burst * burstsMax - packets.length));
    const options = [`${port}`, "--bind", "127.0.0.1", "--count", `${packets.length}`];
    const receiver = closing(new Program(program, [...args, ...options]));
    await until(() => receiver.stderr.includes("receiving on 127.0.0.1"), "the receiver");

    const socket = createSocket("udp4");
    const answers: Buffer[] = [];
    socket.on("message", (datagram) => answers.push(datagram));
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    closing({ close: () => void socket.close() });
    const send = (packet: Uint8Array): void => socket.send(packet, port, "127.0.0.1");
    const [first = new Uint8Array(), ...others] = packets;
    send(first);
    await until(
      () => /^\d+\/s {2}shreds 1 {2}bad 0 .*: 1 data 0 code$/m.test(receiver.stderr),
      "a second",
    );

    const challenge = challengeOf("SWPROOF1");
    let requests = 0;
    for (let at = 0; at < others.length; at += burst) {
      // Sent before the last burst, because the receiver ends with that.
      send(challenge);
      requests++;
      await until(() => answers.length === requests, "the answer to a challenge");
      for (const packet of others.slice(at, at + burst)) send(packet);
    }
    expect(await receiver.ended).toBe(0);
    expect(answers.every((answer) => answer.equals(challenge))).toBe(true);
    const lines = packets.map(lineOf);
    const good = lines.filter((line) => line !== null);
    expect(receiver.stdout.trimEnd().split("\n")).toEqual(good);
    expect(good.some((line) => line.endsWith(" data_complete last_in_slot"))).toBe(true);
    const bad = packets.length - good.length;
    expect(receiver.stderr).toContain(
      `total: shreds ${good.length}, bad ${bad}, challenges ${requests}\n`,
    );
  });
}
