// The sequence and the counters of a push, for every order of sends, drops, failures and waiting datagrams.

import { expect, it } from "vitest";
import { readPushDatagram } from "../../../src/client/push-datagram.ts";
import { DurationHistogram } from "../../../src/core/duration-histogram.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { gapDatagram, heartbeatDatagram } from "../../../src/relay/streams/push-datagrams.ts";
import { PushTransport } from "../../../src/relay/streams/push-transport.ts";
import { Subscription } from "../../../src/relay/streams/subscription.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

/** A kernel whose results a test chooses. */
class Target {
  readonly sent: Uint8Array[] = [];
  readonly waiting: ((error: Error | null) => void)[] = [];
  isFull = false;
  failsNext = false;

  send(datagram: Uint8Array, done: (error: Error | null) => void): boolean {
    if (this.isFull) {
      this.waiting.push(done);
      this.sent.push(datagram);
      return false;
    }
    if (this.failsNext) done(new Error("EPERM"));
    else {
      this.sent.push(datagram);
      done(null);
    }
    this.failsNext = false;
    return true;
  }
}

function opened(queueBytes: number) {
  const clock = new ManualClock();
  const target = new Target();
  const streamId = new Uint8Array(8).fill(7);
  const transport = new PushTransport({ target, streamId, nowNs: () => clock.nowNs() });
  const ends: string[] = [];
  const subscription = new Subscription({
    call: transport,
    dialect: "push",
    holder: { keyId: "k", accountId: "a", accountName: "ann" },
    tier: "tier-1",
    queueBytesMax: () => queueBytes,
    encodeGap: (gap) => gapDatagram(gap, clock.nowNs()),
    delays: new DurationHistogram([1]),
    clock,
    onEnd: (reason) => ends.push(reason),
  });
  transport.report(subscription);
  return { target, transport, subscription, ends };
}

it("numbers every message once, whether it was sent, dropped or refused", () => {
  const random = new SeededRandom(5);
  for (let round = 0; round < 200; round++) {
    const { target, transport, subscription } = opened(300);
    let messages = 0;
    for (let step = 0; step < 60; step++) {
      target.isFull = random.below(3) === 0;
      if (random.below(8) === 0) target.failsNext = true;
      if (random.below(8) === 0) {
        subscription.drop(1 + random.below(5), 120n);
      } else {
        subscription.send(heartbeatDatagram(1n, 2n, 3n), 1n, 120n);
        messages++;
      }
      if (random.below(3) === 0) for (const done of target.waiting.splice(0)) done(null);
    }
    target.isFull = false;
    target.failsNext = false;
    for (const done of target.waiting.splice(0)) done(null);
    subscription.flush();
    subscription.send(heartbeatDatagram(1n, 2n, 3n), null);
    const read = target.sent.map((datagram) => readPushDatagram(datagram));
    const numbers = read.map((one) => one?.sequence ?? -1n);
    expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => Number(a - b)));
    const last = read.at(-1);
    const missing = (last?.sequence ?? 0n) + 1n - BigInt(read.length);
    expect(BigInt(last?.dropped ?? 0)).toBe(missing);
    expect(missing).toBe(BigInt(subscription.dropped + subscription.failed));
    expect(transport.sequence).toBe((last?.sequence ?? 0n) + 1n);
    expect(transport.waitingBytes).toBe(0);
    expect(messages).toBeGreaterThan(0);
  }
});

it("counts what waits for the kernel, and drops above the limit until half is free", () => {
  const { target, transport, subscription } = opened(144);
  target.isFull = true;
  for (let i = 0; i < 5; i++) subscription.send(heartbeatDatagram(1n, 2n, 3n), 1n, 120n);
  expect([transport.waitingMessages, transport.waitingBytes]).toEqual([3, 216]);
  expect(subscription.dropped).toBe(2);
  target.isFull = false;
  target.waiting.shift()?.(null);
  subscription.send(heartbeatDatagram(1n, 2n, 3n), 1n, 121n);
  expect(subscription.dropped).toBe(3);
  for (const done of target.waiting.splice(0)) done(null);
  subscription.flush();
  expect(target.sent).toHaveLength(4);
  expect(readPushDatagram(target.sent[3] ?? new Uint8Array())).toMatchObject({
    kind: "gap",
    sequence: 6n,
    dropped: 3,
    count: 3n,
    firstSlot: 120n,
    lastSlot: 121n,
  });
});

it("sends nothing after its end, and no end to a destination that is not active", () => {
  for (const [reason, count] of [
    ["lease_expired", 1],
    ["destination_inactive", 0],
  ] as const) {
    const { target, subscription, ends } = opened(1000);
    subscription.end(reason, "OK", `${reason}: why`);
    subscription.end("closing", "UNAVAILABLE", "closing: later");
    subscription.send(heartbeatDatagram(1n, 2n, 3n), 1n, 120n);
    expect(ends).toEqual([reason]);
    expect(target.sent).toHaveLength(count);
  }
});
