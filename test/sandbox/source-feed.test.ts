import { describe, expect, it } from "vitest";
import { Delivery } from "../../src/sandbox/delivery.ts";
import { type Player, SourceFeed } from "../../src/sandbox/source-feed.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

class Recorder implements Player {
  /** Numbers of the packets and their due times. */
  readonly played: [number, bigint][] = [];
  closed = false;
  readonly #clock: ManualClock;
  constructor(clock: ManualClock) {
    this.#clock = clock;
  }
  enqueue(packets: readonly Uint8Array[], timesNs: BigUint64Array): void {
    packets.forEach((packet, i) => {
      this.played.push([packet[0] ?? -1, this.#clock.monotonicNs() + (timesNs[i] ?? 0n)]);
    });
  }
  close(): void {
    this.closed = true;
  }
}

function openFeed(profile = { delayNs: 1_000_000, jitterNs: 0, loss: 0, forged: 0 }) {
  const clock = new ManualClock();
  const player = new Recorder(clock);
  const feed = new SourceFeed({ delivery: new Delivery(profile, 1), player, clock });
  return { clock, player, feed };
}

function packetsFrom(first: number, count: number, gapNs: number) {
  return Array.from({ length: count }, (_, i) => ({
    packet: Uint8Array.of(first + i),
    timeNs: i * gapNs,
  }));
}

describe("SourceFeed", () => {
  it("sends each packet at its time, for any interval of calls", async () => {
    const { clock, player, feed } = openFeed();
    const startNs = clock.monotonicNs();
    feed.add(packetsFrom(0, 30, 700_000), startNs);
    for (let i = 0; i < 8; i++) {
      feed.tick(10_000_000n);
      await clock.advance(5);
    }
    expect(player.played).toEqual(
      Array.from({ length: 30 }, (_, i) => [i, startNs + 1_000_000n + BigInt(i) * 700_000n]),
    );
    expect(feed.waiting).toBe(0);
  });

  it("may send late packets of one batch after early packets of the next", () => {
    const { clock, player, feed } = openFeed();
    const startNs = clock.monotonicNs();
    feed.add(packetsFrom(0, 3, 2_000_000), startNs);
    feed.add(packetsFrom(100, 3, 2_000_000), startNs + 1_000_000n);
    feed.tick(1_000_000_000n);
    expect(player.played.map(([number]) => number)).toEqual([0, 100, 1, 101, 2, 102]);
  });

  it("sends no burst after a pause", async () => {
    const { clock, player, feed } = openFeed();
    feed.add(packetsFrom(0, 5, 1_000_000), clock.monotonicNs());
    await clock.advance(3000);
    feed.add(packetsFrom(50, 2, 0), clock.monotonicNs());
    feed.tick(10_000_000n);
    expect(player.played.map(([number]) => number)).toEqual([50, 51]);
    feed.close();
    expect(player.closed).toBe(true);
  });
});
