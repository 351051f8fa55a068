// Write locks, counted from real shreds by a real relay.

import { expect, it } from "vitest";
import { decodeBase58, encodeBase58 } from "../../../src/core/base58.ts";
import { RelayStreams } from "../../../src/relay/data-plane/relay-streams.ts";
import { StreamHub } from "../../../src/relay/streams/stream-hub.ts";
import { WriteLocks } from "../../../src/relay/streams/write-locks.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  accountOf,
  batchOf,
  type MadeTransaction,
  openStreamRelay,
  slotOf,
  transactionOf,
} from "../../support/streams/stream-relay.ts";

const [one = "", two = "", three = ""] = [1, 2, 3].map((number) => encodeBase58(accountOf(number)));
const all = [one, two, three];

/** Its last two accounts are read-only. */
function readingOf(accounts: readonly Uint8Array[]): MadeTransaction {
  const { signature, wire } = transactionOf(accounts);
  const changed = Uint8Array.from(wire);
  changed[1 + 64 + 2] = 2;
  return { signature, wire: changed };
}

function opened() {
  const clock = new ManualClock();
  const { relay, send } = openStreamRelay();
  const limits = RelayStreams.limits();
  const log = { error: () => undefined };
  const hub = closing(
    new StreamHub({ streams: relay.streams, limits, hasHistory: false, clock, log }),
  );
  const locks = closing(new WriteLocks({ hub, tier: "tier-2", decode: decodeBase58, clock }));
  return { clock, hub, locks, send };
}

function failureOf(ask: () => unknown): unknown {
  try {
    return ask();
  } catch (error) {
    return error;
  }
}

it("are counted per account over a minute, from sources of every tier", async () => {
  const { clock, locks, send } = opened();
  const early = failureOf(() => locks.locksOf(all, all));
  expect(early).toMatchObject({ reason: "contention_unknown", details: { retryAfterSeconds: 10 } });
  await clock.advance(20); // the filters are in force
  const payer = accountOf(99);
  const program = accountOf(98);
  const paying = (number: number) => transactionOf([payer, accountOf(number), program]);
  send(slotOf(120n, [batchOf([paying(1), paying(1), paying(2)])]));
  send(slotOf(121n, [batchOf([paying(1), readingOf([payer, accountOf(3), program])])]), "tier-2");
  await clock.advance(9_980);
  // A slot that begins now: the source is not silent.
  const asked = () => failureOf(() => locks.locksOf([three, one, two], all));
  let slot = 122n;
  await until(() => {
    send(slotOf(slot++, [batchOf([])]));
    return JSON.stringify(asked()) === "[0,3,1]";
  }, "all locks to be counted");
  // The buckets of that time leave the window.
  await clock.advance(40_000);
  expect(asked()).toMatchObject({
    reason: "contention_unknown",
    message: expect.stringContaining("no shreds of a new slot for 4"),
  });
  await clock.advance(21_000);
  await until(() => {
    send(slotOf(slot++, [batchOf([])]));
    return JSON.stringify(asked()) === "[0,0,0]";
  }, "the window to be empty");
});

it("begin again for other addresses, and end an hour after the last question", async () => {
  const { clock, hub, locks } = opened();
  failureOf(() => locks.locksOf(all, all));
  await clock.advance(11_000);
  expect(failureOf(() => locks.locksOf(all, all))).toMatchObject({
    message: expect.stringContaining("no shreds"),
  });
  expect(hub.used()).toMatchObject({ filters: 1, accounts: 3 });
  expect(failureOf(() => locks.locksOf([one], [one, two]))).toMatchObject({
    message: expect.stringContaining("began 0 s ago"),
  });
  expect(hub.used()).toMatchObject({ filters: 1, accounts: 2 });
  await clock.advance(3_620_000);
  expect(hub.used()).toMatchObject({ filters: 0, accounts: 0 });
});

it("are refused if the filters of other streams leave no room", () => {
  const clock = new ManualClock();
  const full = {
    room: () => ({ filters: 0, accounts: 0 }),
    attach: (): never => expect.unreachable(),
  };
  const locks = new WriteLocks({ hub: full, tier: "tier-1", decode: decodeBase58, clock });
  expect(failureOf(() => locks.locksOf(all, all))).toMatchObject({
    reason: "contention_unknown",
    message: expect.stringContaining("leave room for 0 accounts"),
  });
});
