// One-way delays of trace packets in `shredway race`, by feed and region.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { race } from "../../../src/tools/race/race.ts";
import type { RaceReport } from "../../../src/tools/race/race-report.ts";
import { raceLines, raceSummary } from "../../../src/tools/race/race-screen.ts";
import { TraceLags } from "../../../src/tools/race/trace-lags.ts";
import { paint } from "../../../src/tools/terminal/formatting.ts";
import { closing } from "../../support/closing.ts";
import { freeUdpPort } from "../../support/network/free-ports.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { CommandRun } from "../../support/processes/command-run.ts";
import { traceShred } from "../../support/shredstream/test-block-engine.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const noPicture = { cdf: [], coverage: [] };

/** A trace packet that was created this long ago. */
function traceFrom(region: string, agoMs: number): Uint8Array {
  const createdMs = Date.now() - agoMs;
  const seconds = Math.floor(createdMs / 1000);
  return traceShred(region, { seconds, nanos: (createdMs % 1000) * 1e6 });
}

async function started(output = ["--json"]) {
  const ports = { a: await freeUdpPort(), b: await freeUdpPort() };
  const feeds = Object.entries(ports).flatMap(([name, port]) => ["--feed", `${name}=${port}`]);
  const run = new CommandRun(race, [...feeds, ...output]);
  const close = async (): Promise<void> => {
    run.stop();
    await run.code;
  };
  closing({ close });
  await until(() => `${run.stdout}${run.stderr}`.includes("comparing"), "the ports to be open");
  const send = (packets: readonly Uint8Array[]) =>
    closing(PacedSender.open({ to: `127.0.0.1:${ports.b}` })).enqueue(
      packets,
      new BigUint64Array(packets.length),
    );
  return { run, send };
}

it("reports delays by feed and region, as JSON and in the summary", async () => {
  const { run, send } = await started();
  const packets = [traceFrom("frankfurt", 250), traceFrom("ny", -60_000)];
  send(packets);
  const feeds = () => run.objects<RaceReport>().at(-1)?.feeds ?? [];
  await until(() => feeds()[1]?.received === packets.length, "the trace packets");
  run.stop();
  await run.code; // 1: no slot was judged
  const [a, b] = feeds();
  expect(a?.traces).toEqual([]);
  expect(b?.traces.map(({ region, delayNs }) => [region, delayNs.count])).toEqual([
    ["frankfurt", 1],
    ["ny", 1],
  ]);
  expect(b?.traces[0]?.delayNs.p50).toBeGreaterThanOrEqual(250e6);
  expect(b?.traces[1]?.delayNs.p50).toBeLessThan(0); // this machine's clock is behind
  expect(b?.refused).toEqual({});

  const report = run.objects<RaceReport>().at(-1);
  if (!report) throw new Error("expected a report");
  const text = raceSummary(report, [], paint(false)).join("\n");
  expect(text).toContain("one-way delay of trace packets by region");
  expect(text).toMatch(/^FEED +REGION +PACKETS +min +p50 +p95 +p99 +max$/m);
  expect(text).toMatch(/^b +frankfurt +1 +[0-9.]+ m?s/m);
  const others = { ...report, feeds: report.feeds.map((feed) => ({ ...feed, traces: [] })) };
  expect(raceSummary(others, [], paint(false)).join()).not.toContain("trace packets");
});

it("shows them in the lines of a running race, and in the HTML report", async () => {
  const html = join(temporaryFolder(), "race.html");
  const { run, send } = await started(["--html", html]);
  send([traceFrom("frankfurt", 250), traceFrom("ny", -60_000)]);
  await until(
    () =>
      / b trace packets from frankfurt [0-9.]+ m?s {2}b trace packets from ny -/.test(run.stdout),
    "the delays",
  );
  run.stop();
  await run.code;
  const page = readFileSync(html, "utf8");
  expect(page).toContain("<h2>One-way delay of trace packets by region");
  expect(page).toMatch(/<td>b frankfurt<\/td><td>1<\/td><td>[0-9.]+ m?s</);
});

it("shows them on the live screen only if there are any", async () => {
  const { run, send } = await started();
  send([traceFrom("frankfurt", 250)]);
  const report = () => run.objects<RaceReport>().at(-1);
  await until(() => (report()?.feeds[1]?.traces.length ?? 0) > 0, "the trace packet");
  const last = report();
  if (!last) throw new Error("expected a report");
  const lines = raceLines(last, noPicture, paint(false)).join("\n");
  expect(lines).toContain("one-way delay of trace packets by region");
  expect(lines).toMatch(/^b +frankfurt +1 +[0-9.]+ m?s/m);
  const others = { ...last, feeds: last.feeds.map((feed) => ({ ...feed, traces: [] })) };
  expect(raceLines(others, noPicture, paint(false)).join()).not.toContain("trace packets");
});

it("bounds the regions of a feed", () => {
  const lags = new TraceLags();
  for (let i = 0; i < 100; i++) {
    const packet = traceShred(`region-${i}`, { seconds: 1, nanos: 0 });
    lags.add({ source: "a", receivedNs: 1_250_000_000n, packet });
  }
  expect(lags.of("a")).toHaveLength(32);
  expect(lags.of("b")).toEqual([]);
});
