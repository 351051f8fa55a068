import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../src/core/errors.ts";
import { createLogger } from "../../src/core/log.ts";
import type { LandingReport } from "../../src/relay/data-plane/landings.ts";
import { LandingWatchList } from "../../src/relay/landing-watch-list.ts";

/**
 * A model of the relay's guarantee: it reports every observation of watched signatures, retained ones
 * immediately.
 */
class Relay {
  readonly watched = new Set<string>();
  readonly seen: LandingReport[] = [];
  room = 1000;
  isClosed = false;
  #waiting: LandingReport[] = [];
  #ring: () => void = () => {};
  onLandings(listener: () => void): void {
    this.#ring = listener;
  }
  drainLandings(): LandingReport[] {
    return this.#waiting.splice(0);
  }
  watchSignatures(signatures: readonly Uint8Array[]): void {
    for (const signature of signatures) {
      const name = String(signature);
      if (this.isClosed) throw new ShredwayError("relay_closed", "closed");
      if (this.watched.size >= this.room) throw new ShredwayError("watch_refused", "full");
      this.watched.add(name);
      this.#notify(
        this.seen.filter((one) => one.kind === "landing" && String(one.signature) === name),
      );
    }
  }
  unwatchSignatures(signatures: readonly Uint8Array[]): void {
    if (this.isClosed) throw new ShredwayError("relay_closed", "closed");
    for (const signature of signatures) this.watched.delete(String(signature));
  }
  land(signature: Uint8Array, slot: bigint, batchIndex = 0): void {
    const landing = {
      kind: "landing" as const,
      signature,
      slot,
      seenNs: slot,
      batchIndex,
      ordinal: 0,
      shredIndex: 0,
      remembered: false,
      mayRestart: true,
    };
    this.seen.push(landing);
    if (this.watched.has(String(signature))) this.#notify([landing]);
  }
  restart(slot: bigint, batchIndex: number): void {
    this.#notify([{ kind: "restart", slot, seenNs: slot, batchIndex }]);
  }
  #notify(landings: readonly LandingReport[]): void {
    this.#waiting.push(...landings);
    if (landings.length > 0) this.#ring();
  }
}

function openWatch() {
  const relay = new Relay();
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  return { relay, lines, watch: new LandingWatchList(relay, log) };
}

const [a, b] = [new Uint8Array(64).fill(1), new Uint8Array(64).fill(2)];

describe("LandingWatchList", () => {
  it("notifies each listener of every observation of its signature", () => {
    const { relay, watch } = openWatch();
    const notifications: string[] = [];
    watch.watch(a, ({ slot }) => notifications.push(`a ${slot}`));
    watch.watch(b, ({ slot }) => notifications.push(`b ${slot}`));
    relay.land(a, 5n);
    relay.land(b, 6n);
    relay.land(a, 7n); // on another fork
    expect(notifications).toEqual(["a 5", "b 6", "a 7"]);
  });

  it("watches a signature while at least one listener waits for it", () => {
    const { relay, watch } = openWatch();
    const ends = [watch.watch(a, () => {}), watch.watch(a, () => {})];
    expect(watch.watched).toBe(1);
    ends[0]?.();
    ends[0]?.();
    expect(relay.watched.size).toBe(1);
    ends[1]?.();
    expect(relay.watched.size).toBe(0);
    expect(watch.watched).toBe(0);
  });

  it("reports earlier landings to later listeners, and no observation twice", () => {
    const { relay, watch } = openWatch();
    const early: bigint[] = [];
    const late: bigint[] = [];
    watch.watch(a, ({ slot }) => early.push(slot));
    relay.land(a, 5n);
    watch.watch(a, ({ slot }) => late.push(slot));
    relay.land(a, 6n);
    expect(late).toEqual([5n, 6n]);
    expect(early).toEqual([5n, 6n]);
  });

  it("withdraws a slot that contains the transaction only before a restart", () => {
    const { relay, watch } = openWatch();
    const reports: string[] = [];
    const stop = watch.watch(
      a,
      ({ slot, batchIndex }) => reports.push(`a ${slot} ${batchIndex}`),
      ({ slot, batchIndex }) => reports.push(`a not in ${slot} before ${batchIndex}`),
    );
    watch.watch(b, ({ slot }) => reports.push(`b ${slot}`));
    relay.land(a, 5n, 32);
    relay.land(a, 6n, 32);
    relay.land(b, 5n, 32);
    relay.restart(5n, 32); // the marker's own batch and later ones stay
    relay.restart(7n, 64);
    expect(reports.splice(0)).toEqual(["a 5 32", "a 6 32", "b 5"]);
    relay.restart(5n, 64);
    relay.restart(5n, 96);
    expect(reports.splice(0)).toEqual(["a not in 5 before 64"]);
    relay.land(a, 5n, 96);
    relay.land(a, 6n, 64);
    relay.restart(6n, 64); // it is in the slot twice
    expect(reports.splice(0)).toEqual(["a 5 96", "a 6 64"]);
    stop();
    relay.restart(5n, 128);
    relay.restart(6n, 128);
    expect(reports).toEqual([]);
  });

  it("continues after a listener throws", () => {
    const { relay, watch, lines } = openWatch();
    const notifications: bigint[] = [];
    watch.watch(a, () => {
      throw new Error("no ears");
    });
    watch.watch(a, ({ slot }) => notifications.push(slot));
    relay.land(a, 5n);
    expect(notifications).toEqual([5n]);
    expect(lines.join()).toContain("no ears");
  });

  it("rejects a new signature when the list is full, and removes none", () => {
    const { relay, watch } = openWatch();
    const notifications: string[] = [];
    watch.watch(a, ({ slot }) => notifications.push(`first ${slot}`));
    relay.room = 1;
    expect(() => watch.watch(b, () => {})).toThrow("full");
    watch.watch(a, ({ slot }) => notifications.push(`second ${slot}`));
    relay.land(a, 5n);
    expect(notifications).toEqual(["first 5", "second 5"]);
    expect(watch.watched).toBe(1);
  });

  it("accepts changes from listeners during a notification", () => {
    const { relay, watch } = openWatch();
    let calls = 0;
    const repeated = (): void => {
      if (++calls < 10) watch.watch(a, repeated);
    };
    watch.watch(a, repeated);
    const stop = watch.watch(a, () => stop());
    relay.land(a, 5n);
    expect(calls).toBeLessThanOrEqual(10);
    relay.isClosed = true;
    expect(watch.watched).toBe(1);
  });

  it("may be stopped after the relay was closed", () => {
    const { relay, watch } = openWatch();
    const stop = watch.watch(a, () => {});
    relay.isClosed = true;
    expect(stop).not.toThrow();
  });
});
