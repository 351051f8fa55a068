// Two regions with 90 ms between them, one database: from a tip's acknowledgement to its shreds.
//
// Nodes, database and link are those of the integration tests (test/support/gateway/regions.ts), so
// it needs network namespaces and PostgreSQL. It measures on the customer's side: the response to
// the tip, and the first shred at the receivers.

import { systemClock } from "../../src/core/clock.ts";
import {
  eventually,
  hasRegions,
  type Region,
  Regions,
  shredTip,
  tier1Lamports,
} from "../../test/support/gateway/regions.ts";
import { type Summary, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { finding, type Section } from "./section.ts";

const title = "Two regions, 90 ms apart";
const oneWayMs = 45;
/** Interval between two shreds, which is the resolution of the measurement. */
const gapNs = 500_000n;
const feedBytes = 600_000;
const feedTargetMs = 50;

interface Moments {
  /** Time from the request to its response. */
  readonly answerMs: number;
  /**
   * Time from the response to the first shred in the region that received the tip, and in the other
   * one.
   */
  readonly hereMs: number;
  readonly thereMs: number;
}

async function measure(regions: Regions, taking: Region, name: string): Promise<Moments> {
  const key = await regions.customer(name);
  const other = regions.all.find((region) => region !== taking) ?? taking;
  const here = await taking.receiver(key);
  const there = await other.receiver(key);
  const packets = regions.nextShreds(feedBytes);
  for (const region of regions.all) region.send(packets, gapNs);
  await systemClock.sleep(20);
  const beginMs = performance.now();
  const answer = await taking.register(key, shredTip(tier1Lamports));
  const answeredMs = performance.now();
  if (!Array.isArray(answer["accepted"]) || answer["accepted"].length !== 1) {
    throw new Error(`expected an accepted tip, got ${JSON.stringify(answer)}`);
  }
  return eventually(() => {
    const { firstMs: hereMs } = here;
    const { firstMs: thereMs } = there;
    if (hereMs === null || thereMs === null) {
      return Promise.reject(new Error("expected a shred at both receivers, got none"));
    }
    return Promise.resolve({
      answerMs: answeredMs - beginMs,
      hereMs: hereMs - answeredMs,
      thereMs: thereMs - answeredMs,
    });
  });
}

function skipped(): Section {
  const notes = ["Skipped: no network namespaces, or PostgreSQL is not installed."];
  return { name: "regions", title, notes, tables: [], findings: [], values: {} };
}

export async function regionsSection(options: {
  readonly rounds: number;
  readonly small: boolean;
}): Promise<Section> {
  if (!hasRegions) return skipped();
  const regions = await Regions.open();
  const keeping: Moments[] = [];
  const following: Moments[] = [];
  try {
    const rounds = options.small ? 1 : options.rounds;
    for (let round = 0; round < rounds; round++) {
      keeping.push(await measure(regions, regions.first, `near-${round}`));
      following.push(await measure(regions, regions.second, `far-${round}`));
    }
  } finally {
    await regions.close();
  }
  const of = (list: readonly Moments[], name: keyof Moments): Summary =>
    summarise(list.map((moments) => moments[name]));
  const row = (what: string, list: readonly Moments[]) => [
    what,
    ...(["answerMs", "hereMs", "thereMs"] as const).map((name) => number(of(list, name).median)),
  ];
  return {
    name: "regions",
    title,
    notes: [
      `Every packet between the regions takes ${oneWayMs} ms each way; the database is in the first one, whose ` +
        "node is the leader of the tiers. A shred comes every 0.5 ms in both. Below 0: the first shred was faster " +
        "than the answer.",
    ],
    tables: [
      {
        title: "Milliseconds (medians)",
        columns: ["tip given to", "answer", "first shred there, after it", "in the other region"],
        rows: [row("the first region", keeping), row("the second region", following)],
      },
    ],
    findings: [
      finding(
        "first shred in the other region, after the answer, less the way there",
        summarise(keeping.map(({ thereMs }) => thereMs - oneWayMs)),
        { target: feedTargetMs, unit: "ms" },
      ),
    ],
    values: {
      keeping_answer_ms: of(keeping, "answerMs"),
      keeping_here_ms: of(keeping, "hereMs"),
      keeping_there_ms: of(keeping, "thereMs"),
      following_answer_ms: of(following, "answerMs"),
      following_here_ms: of(following, "hereMs"),
      following_there_ms: of(following, "thereMs"),
    },
  };
}
