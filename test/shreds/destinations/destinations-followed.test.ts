// Destinations that another node changed: read individually if known, and never replaced by older data.

import { describe, expect, it } from "vitest";
import type { AccountDestination } from "../../../src/shreds/destinations/destination-types.ts";
import { Harness, minute, one, place, second } from "./harness.ts";

async function provedRow(desk: Harness): Promise<AccountDestination> {
  const { id } = await desk.proved();
  const row = desk.store.rows.get(id);
  if (!row) throw new Error("expected a row");
  desk.store.readings.length = 0;
  return row;
}

/** Reads wait until this function is called. */
function hold(desk: Harness): () => void {
  let open = () => {};
  desk.store.gate = new Promise((resolve) => {
    open = resolve;
  });
  return open;
}

const paused = { state: "paused", pausedMs: 5, pauseReason: "operator" } as const;

describe("a destination that another node changed", () => {
  it("is read individually, immediately, and applied", async () => {
    const desk = await Harness.open();
    const row = await provedRow(desk);
    desk.store.foreign((rows) => rows.set(row.id, { ...row, ...paused }), [row.id]);
    await desk.settle();
    expect(desk.active()).toEqual([]);
    expect(desk.state(row.id)?.pauseReason).toBe("operator");
    const added = { ...row, id: "d_2", address: "5.6.7.9:9001" };
    desk.store.foreign((rows) => rows.set("d_2", added), ["d_2"]);
    await desk.settle();
    expect(desk.active()).toEqual(["5.6.7.9:9001"]);
    desk.store.foreign((rows) => rows.delete("d_2"), ["d_2"]);
    await desk.settle();
    expect(desk.active()).toEqual([]);
    expect(desk.store.readings).toEqual([row.id, "d_2", "d_2"]);
  });

  it("may release its address to another one at the same time", async () => {
    const desk = await Harness.open();
    const row = await provedRow(desk);
    const change = (rows: Map<string, AccountDestination>) => {
      rows.delete(row.id);
      rows.set("d_2", { ...row, id: "d_2", accountId: "a_2" });
    };
    desk.store.foreign(change, ["d_2", row.id]);
    await desk.settle();
    expect(desk.active()).toEqual([place]);
    expect(desk.destinations.list().map(({ id }) => id)).toEqual(["d_2"]);
  });

  it("is challenged here only if this is its region", async () => {
    const desk = await Harness.open();
    const row = await provedRow(desk);
    const fresh = { ...row, state: "unproved", provedMs: null, proofEndsMs: null } as const;
    const { length } = desk.sent;
    const add = (id: string, region: string, address: string) =>
      desk.store.foreign((rows) => rows.set(id, { ...fresh, id, region, address }), [id]);
    add("d_2", "there", "5.6.7.8:9002");
    add("d_3", "here", "5.6.7.8:9003");
    await desk.settle();
    expect(desk.sent.slice(length).map(({ address }) => address)).toEqual(["5.6.7.8:9003"]);
  });

  it("is read again after a gap, like all others", async () => {
    const desk = await Harness.open();
    const row = await provedRow(desk);
    const open = hold(desk);
    desk.store.foreign((rows) => rows.set(row.id, { ...row, ...paused }), [row.id]);
    desk.store.foreign(() => {}, ["d_7"]);
    desk.store.foreign(() => {}, null);
    desk.store.foreign(() => {}, ["d_8"]);
    open();
    await desk.settle();
    expect(desk.store.readings).toEqual([row.id, "all"]);
    expect(desk.active()).toEqual([]);
  });

  it("among very many is not read individually", async () => {
    const desk = await Harness.open();
    await provedRow(desk);
    desk.store.foreign(
      () => {},
      Array.from({ length: 65 }, (_, i) => `d_${i}`),
    );
    await desk.settle();
    expect(desk.store.readings).toEqual(["all"]);
  });
});

describe("a read", () => {
  it("that is older than a local change does not revert it, and is repeated", async () => {
    const desk = await Harness.open();
    const { id } = await desk.destinations.add(one, "here", place);
    desk.store.readings.length = 0;
    const open = hold(desk);
    desk.store.foreign(() => {}, [id]); // reads it as unverified, and arrives late
    desk.store.gate = Promise.resolve();
    await desk.destinations.prove("a_1", id, desk.lastToken);
    const { told } = desk;
    open();
    await desk.settle();
    expect(desk.active()).toEqual([place]);
    expect(desk.told).toBe(told); // not even for one check
    expect(desk.store.readings).toEqual([id, id]);
  });

  it("that is older than a local removal does not restore the destination", async () => {
    const desk = await Harness.open();
    const { id } = await provedRow(desk);
    const open = hold(desk);
    desk.store.foreign(() => {}, [id]);
    desk.store.gate = Promise.resolve();
    await desk.destinations.removeAny(id);
    open();
    await desk.settle();
    expect(desk.state(id)).toBeUndefined();
  });

  it("that failed is repeated with all changes reported meanwhile", async () => {
    const desk = await Harness.open();
    const row = await provedRow(desk);
    desk.store.isDown = true;
    desk.store.foreign((rows) => rows.set(row.id, { ...row, ...paused }), [row.id]);
    await desk.settle();
    const added = { ...row, id: "d_2", address: "5.6.7.9:9001" };
    desk.store.foreign((rows) => rows.set("d_2", added), ["d_2"]);
    await desk.clock.advance(minute);
    expect(desk.active()).toEqual([place]); // known destinations stay
    desk.store.isDown = false;
    await desk.clock.advance(second);
    expect(desk.active()).toEqual(["5.6.7.9:9001"]);
    expect(desk.store.readings).not.toContain("all");
  });

  it("at startup includes changes reported meanwhile", async () => {
    const desk = await Harness.open();
    const row = await provedRow(desk);
    const open = hold(desk);
    const starting = desk.start(); // reads it as active
    desk.store.gate = Promise.resolve();
    desk.store.foreign((rows) => rows.set(row.id, { ...row, ...paused }), [row.id]);
    await desk.settle();
    open();
    await starting;
    await desk.settle();
    expect(desk.active()).toEqual([]);
  });
});
