// `shredway race` on captures with chosen times and known results, and on real UDP from two paced
// senders.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { writeLpb } from "../../../src/relay/captures/lpb.ts";
import { writePcap } from "../../../src/relay/captures/pcap-writer.ts";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { race } from "../../../src/tools/race/race.ts";
import type { RaceReport } from "../../../src/tools/race/race-report.ts";
import { closing } from "../../support/closing.ts";
import { freeUdpPort } from "../../support/network/free-ports.ts";
import { GroupSender } from "../../support/network/group-sender.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { CommandRun } from "../../support/processes/command-run.ts";
import { ShredTraffic, type SlotShreds } from "../../support/shreds/shred-traffic.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { isFullRun } from "../../support/vitest/test-scope.ts";

type Printed = RaceReport & { final: boolean; verdict: string[] };

const slotNs = 100_000_000;
const setsPerSlot = 2;
const perSlot = setsPerSlot * 64;
const beginNs = 1_700_000_000_000_000_000n;

let folder = "";
beforeEach(() => {
  folder = temporaryFolder();
});

/** Generated slots, and a leader schedule file for them. */
function traffic(slots: number): { slotShreds: SlotShreds[]; leaders: string } {
  const maker = new ShredTraffic({
    seed: 4,
    leaders: 2,
    firstSlot: 7000n,
    shredVersion: 99,
    fecSetsPerSlot: setsPerSlot,
    slotNs,
  });
  const schedule = maker.schedule(6000n, 2000);
  const leaders: Record<string, number[]> = {};
  for (const [slot, leader] of schedule.leaderBySlot.entries()) {
    const key = pubkeyOf(schedule.keys[leader] ?? new Uint8Array());
    leaders[key] = [...(leaders[key] ?? []), slot];
  }
  const path = join(folder, "leaders.json");
  writeFileSync(path, JSON.stringify({ firstSlot: 6000, leaders }));
  return { slotShreds: Array.from({ length: slots }, () => maker.completeSlot()), leaders: path };
}

interface Timed {
  readonly packet: Uint8Array;
  readonly at: number;
}

function capture(name: string, packets: readonly Timed[], stepNs = 1): string {
  const endpoint = parseEndpoint("127.0.0.1:9000");
  const path = join(folder, name);
  const sorted = packets.toSorted((a, b) => a.at - b.at);
  writeFileSync(
    path,
    writePcap(
      sorted.map(({ packet, at }) => ({
        packet,
        timestampNs: beginNs + BigInt(Math.floor(at / stepNs) * stepNs),
        source: endpoint,
        destination: endpoint,
      })),
    ),
  );
  return path;
}

function altered(packet: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(packet); // a Buffer's slice shares the packet's memory
  copy[700] = (copy[700] ?? 0) ^ 0xff;
  return copy;
}

async function ended(args: readonly string[]): Promise<{ code: number; report: Printed }> {
  const run = new CommandRun(race, [...args, "--json"]);
  const code = await run.code;
  const report = run.objects<Printed>().at(-1);
  if (!report) throw new Error(`expected a report, got ${run.stdout}`);
  return { code, report };
}

const slots = 41;
const judged = slots - 1; // the first one is excluded

/**
 * Both feeds send a packet long after the last slot, so that all slots settle. It is not a shred.
 */
const after: Timed = { packet: Uint8Array.of(1), at: (slots + 20) * slotNs };

function packetsOf(slotShreds: readonly SlotShreds[]): Timed[] {
  return slotShreds.flatMap(({ packets }, slot) =>
    packets.map(({ packet, timeNs }) => ({ packet, at: slot * slotNs + timeNs + 1 })),
  );
}

describe("a race of captures", () => {
  it("is exact: wins, coverage, solo counts, lags, table, picture", async () => {
    const { slotShreds, leaders } = traffic(slots);
    const all = packetsOf(slotShreds);
    const a = all.filter((_, i) => i % 50 !== 7);
    // b is 250 µs behind, but 100 µs ahead with every fourth shred, and has its own losses.
    const b = all
      .map(({ packet, at }, i) => ({ packet, at: i % 4 === 0 ? at - 100_000 : at + 250_001 }))
      .filter((_, i) => i % 10 !== 3);
    const files = ["svg", "html", "csv"].map((kind) => join(folder, `race.${kind}`));
    const { code, report } = await ended([
      "--capture",
      `a=${capture("a.pcap", [...a, after])}`,
      "--capture",
      `b=${capture("b.pcap", [...b, after])}`,
      "--leaders",
      leaders,
      "--settle",
      "500",
      ...files.flatMap((file, i) => [["--svg", "--html", "--csv"][i] ?? "", file]),
    ]);
    expect(code).toBe(0);
    // Computed independently over the judged slots.
    const numbers = all.map((_, i) => i).filter((i) => i >= perSlot);
    const inA = (i: number) => i % 50 !== 7;
    const inB = (i: number) => i % 10 !== 3;
    const count = (of: (i: number) => boolean) => numbers.filter(of).length;
    const both = count((i) => inA(i) && inB(i));
    expect(report).toMatchObject({
      final: true,
      verified: true,
      resolutionNs: 1,
      shared: both,
      slots: { judged, whole: judged, edge: 1 },
    });
    expect(report.shreds.distinct).toBe(count((i) => inA(i) || inB(i)));
    const [first, second] = report.feeds;
    expect(first).toMatchObject({
      received: a.length + 1,
      shreds: a.length,
      refused: { too_short: 1 },
      distinct: count(inA),
      solo: count((i) => inA(i) && !inB(i)),
      wins: count((i) => inA(i) && !(inB(i) && i % 4 === 0)),
      ties: 0,
    });
    // Both captures end at the same time.
    expect(report.verdict.join()).not.toContain("ends first");
    expect(second).toMatchObject({
      received: b.length + 1,
      refused: { too_short: 1 },
      distinct: count(inB),
      solo: count((i) => inB(i) && !inA(i)),
      wins: count((i) => inB(i) && (i % 4 === 0 || !inA(i))),
    });
    expect(second?.coverage).toBeCloseTo(count(inB) / report.shreds.distinct, 10);
    for (const [p, expected] of [
      ["min", -100_000],
      ["p50", 250_001],
      ["max", 250_001],
    ] as const)
      expect(Math.abs((second?.lagNs[p] ?? 0) / expected - 1)).toBeLessThan(0.001);
    expect(report.pairs[0]).toMatchObject({ a: "a", b: "b", both, ties: 0, significant: true });
    expect(report.verdict[0]).toMatch(
      /^a was first for 7\d\.\d % \(.*\) of 5,\d+ shreds in 40 slots\.$/,
    );
    const [svg = "", html = "", csv = ""] = files.map((file) => readFileSync(file, "utf8"));
    expect(svg).toMatch(/^<svg /);
    expect(html).toContain(report.verdict[0]);
    const rows = csv.trim().split("\n");
    expect(rows[0]).toBe("slot,type,fec_set,index,first_ns,first,a_ns,b_ns");
    expect(rows.length - 1).toBe(report.shreds.distinct);
    expect(rows.filter((row) => row.endsWith(",")).length).toBe(first?.solo);
  });

  it("gives forgeries no win if it verifies, and otherwise reports NOT VERIFIED", async () => {
    const { slotShreds, leaders } = traffic(12);
    const all = packetsOf(slotShreds);
    const forged = all.map(({ packet, at }) => ({ packet: altered(packet), at: at - 400_000 }));
    const honest = all.map(({ packet, at }) => ({ packet, at: at + 300_000 }));
    const args = [
      "--capture",
      `honest=${capture("honest.pcap", [...all, after])}`,
      "--capture",
      `cheat=${capture("cheat.pcap", [...forged, ...honest, after])}`,
      "--settle",
      "500",
    ];
    const { report } = await ended([...args, "--leaders", leaders, "--verify"]);
    expect(report.feeds[0]).toMatchObject({ winShare: 1 });
    const refused = Object.values(report.feeds[1]?.refused ?? {});
    expect(refused.reduce((total, count) => total + count, 0)).toBe(all.length + 1); // and `after`
    expect(report.feeds[1]).toMatchObject({ wins: 0, coverage: 1 });

    const unverified = (await ended(args)).report;
    expect(unverified.feeds[1]).toMatchObject({ winShare: 1 });
    expect(unverified.verdict.join("\n")).toContain("NOT VERIFIED");
  });

  it("treats equal times of a coarse clock as ties", async () => {
    const { slotShreds } = traffic(12);
    const all = [...packetsOf(slotShreds), after];
    const later = all.map(({ packet, at }) => ({ packet, at: at + 300 }));
    const { report } = await ended([
      "--capture",
      `a=${capture("a.pcap", all, 1000)}`,
      "--capture",
      `b=${capture("b.pcap", later, 1000)}`,
    ]);
    expect(report).toMatchObject({ resolutionNs: 1000 });
    expect(report.feeds).toMatchObject([
      { wins: 0, ties: 11 * perSlot, winShare: 0.5 },
      { wins: 0, ties: 11 * perSlot, winShare: 0.5 },
    ]);
    expect(report.verdict.join("\n")).toContain("equal to");
  });

  it("counts arrivals after the settling time as late and suggests a longer one", async () => {
    const { slotShreds } = traffic(12);
    const all = packetsOf(slotShreds);
    const late = all.map(({ packet, at }) => ({ packet, at: at + 800_000_000 }));
    const end = { ...after, at: after.at + 1e9 };
    const { report } = await ended([
      "--capture",
      `a=${capture("a.pcap", [...all, end])}`,
      "--capture",
      `b=${capture("b.pcap", [...late.slice(0, 1), ...late, end])}`,
      "--settle",
      "300",
    ]);
    expect(report.feeds[1]?.late).toBeGreaterThan(5 * perSlot);
    expect(report.verdict.join("\n")).toContain("use --settle with more than 300 ms");
  });

  it("begins again with a feed that starts after more than ten seconds", async () => {
    const { slotShreds } = traffic(140);
    const all = packetsOf(slotShreds);
    const joinedSlot = 120;
    const end = { ...after, at: (140 + 20) * slotNs };
    const { report } = await ended([
      "--capture",
      `early=${capture("a.pcap", [...all, end])}`,
      "--capture",
      `late=${capture("b.pcap", [...all.slice(joinedSlot * perSlot), end])}`,
      "--settle",
      "300",
    ]);
    // The slot in which the late feed started is excluded, like those before.
    expect(report.slots).toMatchObject({ judged: 140 - joinedSlot - 1, edge: joinedSlot + 1 });
    expect(report.feeds).toMatchObject([
      { coverage: 1, solo: 0 },
      { coverage: 1, solo: 0 },
    ]);
    expect(report.notes[0]).toBe("late started after 12.0 s; the comparison begins there.");
    expect(report.verdict).toContain(report.notes[0]);
  });

  it("refuses captures without times, and missing files", async () => {
    const { slotShreds } = traffic(1);
    const packets = packetsOf(slotShreds).map(({ packet }) => packet);
    const lpb = join(folder, "a.lpb");
    writeFileSync(lpb, writeLpb(packets));
    const run = (file: string) =>
      new CommandRun(race, ["--capture", `a=${file}`, "--capture", `b=${lpb}`]).code;
    await expect(run(lpb)).rejects.toThrow(
      /a\.lpb has no packet times; expected a capture with times/,
    );
    await expect(run("/nonexistent.pcap")).rejects.toThrow(/cannot be read/);
  });
});

describe("invalid options", () => {
  it.each([
    [[], "got 0 feeds; expected 2 to 8 (--feed NAME=…)"],
    [["--feed", "a=20001"], "got 1 feed; expected 2 to 8 (--feed NAME=…)"],
    [["--feed", "a=20001", "--feed", "a=20002"], "duplicate name a; expected different names"],
    [["--feed", "a=20001", "--feed", "b=20001"], "--feed b: port 20001 is also the port of a"],
    [
      ["--feed", "a=20001@10.0.0.1", "--feed", "b=20001@10.0.0.1"],
      "or different senders for both (@ADDRESS)",
    ],
    [
      ["--feed", "a=233.84.178.1:7733", "--feed", "b=233.84.178.1:7733"],
      "port 7733 is also the port of a",
    ],
    [
      ["--feed", "a=233.84.178.1:7733@10.0.0.1", "--feed", "b=20001"],
      "a multicast group is a feed with all its senders; remove @SENDER",
    ],
    [
      ["--feed", "a=192.0.2.1%eth0:7733", "--feed", "b=20001"],
      "has an interface; expected it for multicast groups only",
    ],
    [["--feed", "a b=20001", "--feed", "c=20002"], "expected NAME=PORT"],
    [["--feed", "20001", "--feed", "c=20002"], "expected NAME=PORT"],
    [["--feed", "a=70000", "--feed", "c=20002"], "--feed a: invalid value "],
    [["--feed", "a=host:20001", "--feed", "c=20002"], "--feed a: invalid value "],
    [["--feed", "a=20001@nowhere", "--feed", "c=20002"], "--feed a: invalid value "],
    [["--feed", "a=20001", "--capture", "b=b.pcap"], "at most one of --feed, --capture"],
    [["--capture", "b=b.pcap", "--seconds", "3"], "at most one of --capture, --seconds"],
    [
      ["--feed", "a=1", "--feed", "b=2", "--verify"],
      "--verify requires --leaders FILE or --rpc URL",
    ],
    [
      ["--feed", "a=1", "--feed", "b=2", "--settle", "0"],
      '--settle: invalid value "0"; expected a number above 0',
    ],
  ])("%j are refused", async (args, message) => {
    await expect(new CommandRun(race, args).code).rejects.toThrow(message);
  });
});

describe("a race of multicast groups", () => {
  it("identifies feeds by their groups", async () => {
    const { slotShreds, leaders } = traffic(2);
    const port = await freeUdpPort();
    const run = new CommandRun(race, [
      "--feed",
      `fast=239.255.78.1%lo:${port}`,
      "--feed",
      `slow=239.255.78.2%lo:${port}`,
      "--leaders",
      leaders,
      "--settle",
      "50",
      "--json",
    ]);
    closing({
      close: async () => {
        run.stop();
        await run.code;
      },
    });
    await until(
      () => run.stderr.includes(`group 239.255.78.2:${port} on lo joined`),
      "both groups",
    );
    const sender = await GroupSender.open();
    const packets = slotShreds.flatMap((slot) => slot.packets.map(({ packet }) => packet));
    await sender.send(packets, "239.255.78.1", port);
    await sender.send(packets.slice(0, 100), "239.255.78.2", port);
    const received = () =>
      run
        .objects<Printed>()
        .at(-1)
        ?.feeds.map((feed) => feed.received);
    await until(() => received()?.join() === `${packets.length},100`, "all shreds of both feeds");
    run.stop();
    await run.code; // 1: no slot was judged
    expect(run.objects<Printed>().at(-1)?.feeds).toMatchObject([
      { name: "fast", from: `group 239.255.78.1 on lo to port ${port}`, refused: {} },
      { name: "slow", refused: {} },
    ]);
  });
});

describe("a race over UDP", () => {
  async function started(leaders: string, settleMs: number) {
    const ports = { a: await freeUdpPort(), b: await freeUdpPort() };
    const run = new CommandRun(race, [
      "--feed",
      `a=127.0.0.1:${ports.a}`,
      "--feed",
      `b=127.0.0.1:${ports.b}@127.0.0.0/8`,
      "--leaders",
      leaders,
      "--settle",
      String(settleMs),
      "--json",
    ]);
    const close = async (): Promise<void> => {
      run.stop();
      await run.code;
    };
    closing({ close });
    await until(() => run.stderr.includes("comparing"), "the ports to be open");
    const open = (port: number) => {
      const sender = PacedSender.open({ to: `127.0.0.1:${port}` });
      closing(sender);
      return sender;
    };
    return { run, a: open(ports.a), b: open(ports.b) };
  }

  async function send(sender: PacedSender, packets: readonly Uint8Array[]): Promise<void> {
    sender.enqueue(packets, new BigUint64Array(packets.length));
    await until(() => sender.counts().queued === 0n, "the packets to go");
  }

  it("counts exactly which feed delivered each shred, excludes forgeries, and prints a summary on Ctrl-C", async () => {
    const { slotShreds, leaders } = traffic(9);
    const { run, a, b } = await started(leaders, 3000);
    for (const { packets } of slotShreds) {
      const shreds = packets.map(({ packet }) => packet);
      // Send b's forgeries first, then a without every eighth shred, then b reversed without
      // every tenth.
      await send(b, shreds.map(altered));
      await send(
        a,
        shreds.filter((_, i) => i % 8 !== 0),
      );
      await send(b, shreds.filter((_, i) => i % 10 !== 1).toReversed());
    }
    const settled = slotShreds.length - 1;
    await until(
      () => run.objects<Printed>().at(-1)?.slots.judged === settled,
      `${settled} judged slots`,
    );
    run.stop();
    expect(await run.code).toBe(0);
    const report = run.objects<Printed>().at(-1);
    const count = (of: (i: number) => boolean) =>
      settled * Array.from({ length: perSlot }, (_, i) => i).filter(of).length;
    const inA = (i: number) => i % 8 !== 0;
    const inB = (i: number) => i % 10 !== 1;
    expect(report).toMatchObject({
      final: true,
      lost: 0,
      shreds: { distinct: count((i) => inA(i) || inB(i)) },
      feeds: [
        { distinct: count(inA), wins: count(inA), solo: count((i) => inA(i) && !inB(i)) },
        {
          distinct: count(inB),
          wins: count((i) => inB(i) && !inA(i)),
          solo: count((i) => inB(i) && !inA(i)),
          kernelDrops: 0,
        },
      ],
    });
    const refused = Object.values(report?.feeds[1]?.refused ?? {});
    expect(refused.reduce((total, one) => total + one, 0)).toBe(slotShreds.length * perSlot);
  });

  it.runIf(isFullRun)(
    "loses nothing in five seconds of two feeds and reports a silent feed",
    async () => {
      const { slotShreds, leaders } = traffic(50);
      const { run, a } = await started(leaders, 200);
      const all = packetsOf(slotShreds);
      a.enqueue(
        all.map(({ packet }) => packet),
        BigUint64Array.from(all, ({ at }) => BigInt(at)),
      );
      await until(() => a.counts().queued === 0n, "five seconds of packets");
      await until(
        () => (run.objects<Printed>().at(-1)?.feeds[0]?.received ?? 0) === all.length,
        "all packets",
      );
      run.stop();
      expect(await run.code).toBe(0);
      const report = run.objects<Printed>().at(-1);
      expect(report).toMatchObject({
        lost: 0,
        feeds: [{ received: all.length, shreds: all.length, kernelDrops: 0 }, { received: 0 }],
      });
      expect(report?.verdict).toContain("b delivered no packets.");
    },
  );
});
