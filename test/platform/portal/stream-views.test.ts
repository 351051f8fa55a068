// Views of decoded streams: rates, delays, order, and what an account sees.

import { expect, it } from "vitest";
import { StreamViews } from "../../../src/platform/portal/stream-views.ts";
import type { EndedStream, StreamRecord } from "../../../src/relay/streams/stream-records.ts";

const secondNs = 1_000_000_000n;

function facts(id: number, account: string) {
  const owner = { keyId: `k_${account}`, accountId: `a_${account}`, accountName: account };
  const stream = { dialect: "deshred", tier: "tier-1", address: "192.0.2.7" } as const;
  return { id, ...owner, ...stream, openedNs: 0n, matched: 0, sent: 0 };
}

function open(id: number, account: string, counts: Partial<StreamRecord>): StreamRecord {
  return {
    ...facts(id, account),
    filters: 1,
    waitingBytes: 0,
    leftOut: 0,
    delaySumNs: 0,
    ...counts,
  };
}

function ended(id: number, account: string): EndedStream {
  const text = "lagged: 7 messages";
  return { ...facts(id, account), endedNs: secondNs, reason: "lagged", text };
}

it("shows rate and delay of the last ten seconds, and an account only its own", () => {
  const views = new StreamViews();
  for (let second = 0; second <= 20; second++) {
    // Delays of 9 ms before the last ten seconds, then of 2 ms.
    const recent = Math.max(0, second - 10) * 5;
    const counts = { matched: 100 + recent, sent: 90, delaySumNs: 900e6 + recent * 2e6 };
    views.look(
      {
        open: [open(1, "ann", counts), open(2, "bob", { waitingBytes: 5000, filters: 3 })],
        ended: [ended(4, "bob"), ended(3, "ann")],
      },
      BigInt(second) * secondNs,
    );
  }
  const shared = { dialect: "deshred", tier: "tier-1", address: "192.0.2.7" };
  const openedAt = "1970-01-01T00:00:00.000Z";
  const ofAnn = { key: "k_ann", account: "ann", ...shared, openedAt };
  expect(views.ofAccount("a_ann")).toEqual({
    streams: [
      {
        name: "1",
        ...ofAnn,
        filters: 1,
        matched: 150,
        sent: 90,
        messagesPerSecond: 5,
        waitingBytes: 0,
        leftOut: 0,
        delayNs: 2e6,
      },
    ],
    ended: [
      {
        name: "3",
        ...ofAnn,
        matched: 0,
        sent: 0,
        endedAt: "1970-01-01T00:00:01.000Z",
        reason: "lagged",
        text: "lagged: 7 messages",
      },
    ],
  });
  const { streams, ended: ends } = views.all();
  expect(streams.map(({ name, delayNs }) => [name, delayNs])).toEqual([
    ["2", null],
    ["1", 2e6],
  ]);
  expect(ends.map(({ name }) => name)).toEqual(["4", "3"]);
  views.forget();
  expect(views.all()).toEqual({ streams: [], ended: [] });
});
