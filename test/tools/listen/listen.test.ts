// `shredway listen`: losses, times of FEC sets, and recording.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openCapture } from "../../../src/relay/captures/read-capture.ts";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { listen } from "../../../src/tools/listen/listen.ts";
import { closing } from "../../support/closing.ts";
import { freeUdpPort } from "../../support/network/free-ports.ts";
import { GroupSender } from "../../support/network/group-sender.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { CommandRun } from "../../support/processes/command-run.ts";
import { Shredway } from "../../support/processes/shredway.ts";
import { ShredTraffic } from "../../support/shreds/shred-traffic.ts";
import { traceShred } from "../../support/shredstream/test-block-engine.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

interface Printed {
  received: number;
  settledSlots: number;
  fecSets: {
    seen: number;
    complete: number;
    recoverable: number;
    absent: number;
    firstTo32Ns: { count: number };
  };
  losses: { share: number; data: number; code: number; gaps: number; longestGap: number };
  betweenShredsNs: { count: number };
  recorded: { packets: number; leftOut: number; lost: number; failure: string | null };
}

const setsPerSlot = 2;

function shreds(slots: number): Uint8Array[][] {
  const maker = new ShredTraffic({
    seed: 4,
    leaders: 2,
    firstSlot: 7000n,
    shredVersion: 99,
    fecSetsPerSlot: setsPerSlot,
    slotNs: 100_000_000,
  });
  return Array.from({ length: slots }, () =>
    maker.completeSlot().packets.map(({ packet }) => packet),
  );
}

async function listening(...args: string[]): Promise<{ run: CommandRun; sender: PacedSender }> {
  const run = new CommandRun(listen, ["--port", "0", "--bind", "127.0.0.1", "--json", ...args]);
  closing({
    close: async () => {
      run.stop();
      await run.code.catch(() => undefined); // the test expects its result
    },
  });
  await until(() => run.stderr.includes("listening on"), "the port to be open");
  const [, to = ""] = /listening on (\S+)/.exec(run.stderr) ?? [];
  const sender = PacedSender.open({ to });
  closing(sender);
  return { run, sender };
}

function isHole(i: number): boolean {
  return i % 16 === 3 || i % 16 === 4;
}

/** A node that knows one leader. Returns its URL. */
async function openNode(): Promise<string> {
  const epoch = { epoch: 0, absoluteSlot: 4, slotIndex: 4, slotsInEpoch: 8192 };
  const results: Record<string, unknown> = {
    getEpochInfo: epoch,
    getLeaderSchedule: { "11111111111111111111111111111112": [4, 5, 6, 7] },
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { id, method } = JSON.parse(Buffer.concat(chunks).toString());
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[String(method)] ?? null }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

describe("listen --rpc", () => {
  const run = (...args: string[]) => {
    const child = Shredway.run("listen", "--bind", "127.0.0.1", ...args);
    closing({ close: () => child.kill() });
    return child;
  };

  it("ends if the port is in use, and if --svg cannot be written", async () => {
    const user = createSocket("udp4").bind(0, "127.0.0.1");
    await once(user, "listening");
    closing({ close: () => void user.close() });
    const url = await openNode();
    const busy = run("--port", String(user.address().port), "--rpc", url);
    const unwritable = run("--port", "0", "--rpc", url, "--svg", "/proc/shredway.svg");
    expect(await busy.end()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`127.0.0.1:${user.address().port}`),
    });
    expect(await unwritable.end()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("cannot write /proc/shredway.svg"),
    });
  });
});

describe("listen", () => {
  it("joins multicast groups, which are one feed", async () => {
    const port = await freeUdpPort();
    const groups = ["239.255.77.1", "239.255.77.2"];
    const run = new CommandRun(listen, [
      "--port",
      String(port),
      "--json",
      ...groups.flatMap((group) => ["--group", `${group}%lo`]),
    ]);
    closing({
      close: async () => {
        run.stop();
        await run.code;
      },
    });
    await until(
      () => run.stderr.includes(`group 239.255.77.2:${port} on lo joined`),
      "both groups",
    );
    const sender = await GroupSender.open();
    const [packets = []] = shreds(1);
    await sender.send(packets.slice(0, 64), "239.255.77.1", port);
    await sender.send(packets, "239.255.77.2", port);
    await sender.send(packets, "239.255.77.3", port); // not joined
    await until(() => run.objects<Printed>().at(-1)?.settledSlots === 1, "a settled slot");
    run.stop();
    expect(await run.code).toBe(0);
    expect(run.objects<Printed>().at(-1)).toMatchObject({
      received: 64 + packets.length,
      fecSets: { seen: setsPerSlot, complete: setsPerSlot },
    });
  });

  it.each([
    [["--group", "192.0.2.1", "--port", "7733"], /--group: 192.0.2.1 is not a multicast address/],
    [["--group", "239.1.2.3", "--port", "0"], /--group requires a --port other than 0/],
    [
      ["--group", "239.1.2.3", "--bind", "127.0.0.1", "--port", "7733"],
      /at most one of --bind, --group/,
    ],
  ])("refuses %j", async (args, message) => {
    await expect(new CommandRun(listen, args).code).rejects.toThrow(message);
  });

  it("finds gaps by index and measures the times of FEC sets", async () => {
    const { run, sender } = await listening();
    const slots = shreds(3);
    const sent = slots.flatMap((packets) => packets.filter((_, i) => !isHole(i)));
    sender.enqueue(sent, new BigUint64Array(sent.length));
    await until(
      () => run.objects<Printed>().at(-1)?.settledSlots === slots.length,
      "settled slots",
    );
    run.stop();
    expect(await run.code).toBe(0);
    const sets = slots.length * setsPerSlot;
    // Two of sixteen in a row, eight times per set: four runs of data and four of code.
    expect(run.objects<Printed>().at(-1)).toMatchObject({
      received: sent.length,
      fecSets: { seen: sets, complete: 0, recoverable: sets, firstTo32Ns: { count: sets } },
      losses: { share: 1 / 8, data: 4 * sets, code: 4 * sets, gaps: 4 * sets, longestGap: 2 },
      betweenShredsNs: { count: sent.length - slots.length },
      recorded: null,
    });
  });

  it("counts no loss of shreds that were sent before the first received one", async () => {
    const { run, sender } = await listening();
    const slots = shreds(3);
    // The first slot has two FEC sets; its first set and a part of the second one are missing.
    const sent = slots.flat().slice(64 + 20);
    sender.enqueue(sent, new BigUint64Array(sent.length));
    await until(
      () => run.objects<Printed>().at(-1)?.settledSlots === slots.length,
      "settled slots",
    );
    run.stop();
    expect(await run.code).toBe(0);
    expect(run.objects<Printed>().at(-1)).toMatchObject({
      received: sent.length,
      fecSets: { seen: 4, complete: 4, recoverable: 4, absent: 0 },
      losses: { share: 0, data: 0, code: 0, gaps: 0 },
    });
  });

  it("counts no absent FEC sets in a first slot whose beginning and end were not received", async () => {
    const { run, sender } = await listening();
    const [first = [], second = []] = shreds(2);
    // The second FEC set of the first slot, without its last data shred and one code shred.
    const sent = [...first.slice(64).filter((_, i) => i !== 31 && i !== 40), ...second];
    sender.enqueue(sent, new BigUint64Array(sent.length));
    await until(() => run.objects<Printed>().at(-1)?.settledSlots === 2, "settled slots");
    run.stop();
    expect(await run.code).toBe(0);
    expect(run.objects<Printed>().at(-1)).toMatchObject({
      received: sent.length,
      fecSets: { seen: 2, complete: 2, recoverable: 2, absent: 0 },
      losses: { share: 0, data: 0, code: 0, gaps: 0 },
    });
  });

  it("records received packets exactly, with the kernel's times, up to its limit", async () => {
    const file = join(temporaryFolder(), "feed.pcap");
    const { run, sender } = await listening("--record", file, "--record-mb", "1");
    const sent = [Uint8Array.of(1, 2, 3), ...shreds(7).flat()]; // 1.1 MB
    const beforeNs = BigInt(Date.now() - 1000) * 1_000_000n;
    sender.enqueue(sent, new BigUint64Array(sent.length));
    await until(() => run.objects<Printed>().at(-1)?.received === sent.length, "all packets");
    run.stop();
    expect(await run.code).toBe(0);
    const capture = openCapture(file);
    closing(capture);
    const packets = [...capture.packets];
    const { recorded } = run.objects<Printed>().at(-1) ?? {};
    expect(packets.length).toBe(recorded?.packets);
    expect(packets.length).toBeGreaterThan(700);
    expect(recorded).toMatchObject({ lost: 0, leftOut: sent.length - packets.length });
    for (const [i, { packet, timestampNs }] of packets.entries()) {
      expect(Buffer.from(packet).equals(sent[i] ?? packet)).toBe(true);
      expect(timestampNs).toBeGreaterThan(beforeNs);
    }
  });

  it("goes on if the recording cannot be written, and reports it at the end", async () => {
    const { run, sender } = await listening("--record", "/dev/full");
    const sent = shreds(3).flat(); // more than the recording buffers
    sender.enqueue(sent, new BigUint64Array(sent.length));
    const failure = "cannot write /dev/full: ENOSPC: no space left on device, write";
    await until(
      () => run.objects<Printed>().at(-1)?.recorded.failure === failure,
      "the failed write",
    );
    run.stop();
    await expect(run.code).rejects.toThrow(failure);
    expect(run.objects<Printed>().at(-1)).toMatchObject({ final: true, received: sent.length });
  });

  it("shows the one-way delay of trace packets by region", async () => {
    const { run, sender } = await listening();
    const createdMs = Date.now() - 250;
    const seconds = Math.floor(createdMs / 1000);
    const trace = traceShred("frankfurt", { seconds, nanos: (createdMs % 1000) * 1e6 });
    sender.enqueue([trace], new BigUint64Array(1));
    await until(() => run.stdout.includes("frankfurt"), "the delay");
    const line = run.stdout.split("\n").find((text) => text.includes("frankfurt")) ?? "";
    const [traceView] = JSON.parse(line).traces;
    expect(traceView).toMatchObject({ region: "frankfurt", packets: 1 });
    expect(traceView.lastDelayNs).toBeGreaterThanOrEqual(250e6);
    expect(JSON.parse(line).refused).toEqual({});
  });

  it("refuses options that do not fit together", async () => {
    const run = (...args: string[]) => new CommandRun(listen, ["--port", "0", ...args]).code;
    await expect(run("--record-mb", "5")).rejects.toThrow("--record-mb requires --record FILE");
    await expect(run("--verify")).rejects.toThrow("--verify requires --leaders FILE or --rpc URL");
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    await expect(run("--record", join(file, "x"))).rejects.toThrow("cannot write");
    await expect(run("--rpc", "nowhere")).rejects.toThrow("expected a URL");
  });
});
