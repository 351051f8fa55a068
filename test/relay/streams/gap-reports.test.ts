// Streams that drop messages and report the gaps, with clients that stop reading.

import { status } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import { until } from "../../support/network/udp-receiver.ts";
import {
  metadataOf,
  type RunningStreams,
  runningStreams,
  subscribeDeshred,
  subscribeEntries,
} from "../../support/streams/stream-clients.ts";
import { batchOf, slotOf, transactionOf } from "../../support/streams/stream-relay.ts";

const all = { deshred_transactions: { all: {} } };
const dropping = metadataOf({ "x-token": "alice", "x-on-lag": "drop" });
const perSlot = 1500;

async function inForce({ service }: RunningStreams, streams: number): Promise<void> {
  await until(() => {
    const { accounts, filters } = service.status();
    return accounts.reduce((sum, { open }) => sum + open, 0) === streams && filters.isCurrent;
  }, "the filters to be in force");
}

const droppedIn = ({ service }: RunningStreams) =>
  service.status().accounts.reduce((sum, { dropped }) => sum + dropped, 0);

/** Sends slots until the service has dropped messages, and returns the slot after them. */
async function sendUntilDropped(running: RunningStreams, isSent: () => number): Promise<bigint> {
  const large = batchOf(Array.from({ length: perSlot }, () => transactionOf()));
  let slot = 110n;
  for (; droppedIn(running) === 0; slot++) {
    if (slot === 190n) expect.fail("expected dropped messages");
    const before = isSent();
    running.send(slotOf(slot, [large]));
    await until(() => isSent() > before, "the slot");
  }
  return slot;
}

it("reports a gap of SubscribeEntries in an empty batch, and continues", async () => {
  const running = await runningStreams("queueBytes: 65536");
  const slow = subscribeEntries(running.service.address, dropping);
  const fast = subscribeEntries(running.service.address);
  await inForce(running, 2);
  slow.pause();
  const end = await sendUntilDropped(running, () => fast.messages.length);
  slow.resume();
  const dropped = droppedIn(running);
  const gaps = () => slow.messages.flatMap((one) => one.dropped ?? []);
  for (let slot = end; gaps().length === 0; slot++) {
    if (slot === 290n) expect.fail("expected the report of the gap");
    const before = fast.messages.length;
    running.send(slotOf(slot, [batchOf([transactionOf()])]));
    await until(() => fast.messages.length > before, "the slot");
  }
  const total = gaps().reduce((sum, { count }) => sum + count, 0);
  expect(total).toBe(droppedIn(running));
  expect(total).toBeGreaterThanOrEqual(dropped);
  const report = slow.messages.find((one) => one.dropped);
  expect(report?.entries).toEqual(Buffer.alloc(8));
  // Exactly the messages of the reported slots are missing.
  await until(
    () => slow.messages.length - gaps().length + total === fast.messages.length,
    "the rest",
  );
  const received = new Set(slow.messages.filter((one) => !one.dropped).map(({ slot }) => slot));
  const missing = fast.messages.map(({ slot }) => slot).filter((slot) => !received.has(slot));
  const [gap] = gaps();
  expect([Math.min(...missing), Math.max(...missing)]).toEqual([gap?.first_slot, gap?.last_slot]);
  expect(slow.end).toBeUndefined();
  expect(running.service.status().ends.get("lagged")).toBe(0);
});

it("reports a gap as soon as the client reads, even if no message follows", async () => {
  const running = await runningStreams("queueBytes: 65536");
  const slow = subscribeEntries(running.service.address, dropping);
  const fast = subscribeEntries(running.service.address);
  await inForce(running, 2);
  slow.pause();
  await sendUntilDropped(running, () => fast.messages.length);
  slow.resume();
  const reported = () => slow.messages.reduce((sum, one) => sum + (one.dropped?.count ?? 0), 0);
  await until(() => reported() === droppedIn(running), "the report of the gap");
});

it("reports a gap of SubscribeDeshred as a ping with a name", async () => {
  const running = await runningStreams("queueBytes: 65536");
  const slow = subscribeDeshred(running.service.address, all, { metadata: dropping });
  const fast = subscribeEntries(running.service.address);
  await inForce(running, 2);
  slow.pause();
  await sendUntilDropped(running, () => fast.messages.length);
  slow.resume();
  const reports = () =>
    slow.messages.filter(({ filters }) => filters?.[0]?.startsWith("shredway."));
  // A ping of the service suffices, if no transaction follows.
  await until(() => {
    running.clock.move(10_000);
    return reports().length > 0;
  }, "the report of the gap");
  expect(reports()[0]).toMatchObject({
    update: "ping",
    filters: [
      expect.stringMatching(/^shredway\.dropped count=\d+ first_slot=1\d\d last_slot=1\d\d$/),
    ],
  });
  const count = (text = "") => Number(/count=(\d+)/.exec(text)?.[1]);
  const total = () => reports().reduce((sum, { filters }) => sum + count(filters[0]), 0);
  const transactions = () => slow.messages.filter((one) => one.deshred_transaction).length;
  await until(
    () => transactions() + total() === fast.messages.length * perSlot,
    "every transaction, received or reported",
  );
  expect(total()).toBe(droppedIn(running));
});

it("refuses other values, other calls, and filters with a reserved name", async () => {
  const { service } = await runningStreams();
  const other = metadataOf({ "x-token": "alice", "x-on-lag": "skip" });
  const client = subscribeEntries(service.address, other);
  const named = subscribeDeshred(service.address, { deshred_transactions: { "shredway.a": {} } });
  await until(() => !!client.end && !!named.end, "both ends");
  expect(client.end).toEqual({
    code: status.INVALID_ARGUMENT,
    details: 'metadata x-on-lag: expected end or drop, got "skip"',
  });
  expect(named.end).toEqual({
    code: status.INVALID_ARGUMENT,
    details:
      'deshred_transactions: expected names that do not begin with "shredway.", got "shredway.a"',
  });
});
