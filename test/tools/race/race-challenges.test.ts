// `shredway race` with a feed that brings ownership challenges: its destination is paused or not verified.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { writePcap } from "../../../src/relay/captures/pcap-writer.ts";
import { race } from "../../../src/tools/race/race.ts";
import type { RaceReport } from "../../../src/tools/race/race-report.ts";
import { closing } from "../../support/closing.ts";
import { freeUdpPort } from "../../support/network/free-ports.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { CommandRun } from "../../support/processes/command-run.ts";
import { ShredTraffic } from "../../support/shreds/shred-traffic.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

type Printed = RaceReport & { verdict?: string[] };

/** 52 bytes, as a service sends them. */
function challenge(token: number): Buffer {
  const packet = Buffer.alloc(52, token);
  packet.write("SWPROOF1", "latin1");
  return packet;
}

/** 23 bytes: without a complete token. */
const almost = challenge(1).subarray(0, 23);

function shreds(): Uint8Array[] {
  const traffic = new ShredTraffic({
    seed: 4,
    leaders: 2,
    firstSlot: 7000n,
    shredVersion: 99,
    fecSetsPerSlot: 2,
    slotNs: 100_000_000,
  });
  return traffic.completeSlot().packets.map(({ packet }) => packet);
}

const verdictFor = (challenges: string): string =>
  `paused received ${challenges} and no shreds: the destination is not verified or is paused. Run shredway ` +
  "race or shredway listen with --prove, which answers challenges, until its shreds arrive.";

function lastOf(run: CommandRun): Printed | undefined {
  return run.objects<Printed>().at(-1);
}

it("names the challenges of a capture", async () => {
  const folder = temporaryFolder();
  const endpoint = parseEndpoint("127.0.0.1:9000");
  const capture = (name: string, packets: readonly Uint8Array[]): string => {
    const file = join(folder, name);
    const times = { source: endpoint, destination: endpoint };
    const timed = packets.map((packet, i) => ({ ...times, packet, timestampNs: BigInt(i * 1000) }));
    writeFileSync(file, writePcap(timed));
    return file;
  };
  const paused = [almost, challenge(1), challenge(2), challenge(3)];
  const run = new CommandRun(race, [
    "--capture",
    `feed=${capture("feed.pcap", shreds())}`,
    "--capture",
    `paused=${capture("paused.pcap", paused)}`,
    "--json",
  ]);
  await run.code; // 1: no slot was judged
  expect(lastOf(run)?.feeds[1]?.refused).toEqual({ too_short: 1, challenge: 3 });
  expect(lastOf(run)?.verdict).toContain(verdictFor("3 ownership challenges"));
});

it.each([
  { proves: false, from: "" },
  { proves: false, from: "@127.0.0.0/8" },
  { proves: true, from: "" },
])("names the challenges of a live feed, and answers with --prove only: %j", async (tried) => {
  const ports = [await freeUdpPort(), await freeUdpPort()] as const;
  const run = new CommandRun(race, [
    "--feed",
    `feed=127.0.0.1:${ports[0]}`,
    "--feed",
    `paused=127.0.0.1:${ports[1]}${tried.from}`,
    "--json",
    ...(tried.proves ? ["--prove"] : []),
  ]);
  closing({
    close: async () => {
      run.stop();
      await run.code;
    },
  });
  await until(() => run.stderr.includes("comparing"), "the ports to be open");
  const service = createSocket("udp4").bind(0, "127.0.0.1");
  closing({ close: () => void service.close() });
  await once(service, "listening");
  const answers: Buffer[] = [];
  service.on("message", (answer) => answers.push(answer));
  service.send(almost, ports[1], "127.0.0.1");
  service.send(challenge(7), ports[1], "127.0.0.1");
  for (const packet of shreds()) service.send(packet, ports[0], "127.0.0.1");
  const refused = () => lastOf(run)?.feeds[1]?.refused;
  await until(() => refused()?.["challenge"] === 1 && refused()?.["too_short"] === 1, "both");
  if (tried.proves) await until(() => answers.length > 0, "the answer");
  run.stop();
  await run.code;
  expect(answers).toEqual(tried.proves ? [challenge(7)] : []);
  expect(refused()).toEqual({ too_short: 1, challenge: 1 });
  expect(lastOf(run)?.verdict).toContain(verdictFor("1 ownership challenge"));
});

it("refuses --prove for captures", async () => {
  const args = ["--capture", "a=a.pcap", "--capture", "b=b.pcap", "--prove"];
  await expect(new CommandRun(race, args).code).rejects.toThrow(
    "--capture and --prove exclude each other",
  );
});
