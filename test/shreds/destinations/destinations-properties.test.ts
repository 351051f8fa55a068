// Invariants under any actions of accounts, operator, network and clock: no active destination without a
// valid proof, at most three datagrams per round, one owner per address, and the stored state equals the
// state in memory.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseAddressRange } from "../../../src/core/addresses/addresses.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import { Harness, hour, minute, second, settings } from "./harness.ts";

const accounts = [0, 1, 2].map((i) => ({ id: `a_${i}`, name: `${i}` }));
/** Four addresses, some of them in several notations. */
const texts = [
  "5.6.7.8:9001",
  "[::ffff:5.6.7.8]:9001",
  "5.6.7.8:9002",
  "[2606::1]:9001",
  "[2606:0::1]:9001",
  "5.6.7.9:9001",
];
const canonical = ["5.6.7.8:9001", "5.6.7.8:9002", "[2606::1]:9001", "5.6.7.9:9001"];
const actions = [
  "add",
  "remove",
  "challenge",
  "prove",
  "echo",
  "unreachable",
  "approve",
  "pause",
  "resume",
  "deny",
  "allow",
  "foreign",
  "down",
  "up",
  "restart",
  "wait",
] as const;
const step = fc.record({
  action: fc.constantFrom(...actions),
  account: fc.nat(2),
  endpoint: fc.nat(texts.length - 1),
  which: fc.nat(20),
  waitMs: fc.constantFrom(0, second, 4 * second, 10 * second, minute, 11 * minute, hour, 13 * hour),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Possible mistakes of users, and failures of the store. */
async function allowed(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof ShredwayError)) throw error;
    expect([
      "destination_refused",
      "destination_unknown",
      "proof_refused",
      "rate_limited",
      "address_invalid",
      "store_failed",
    ]).toContain(error.reason);
  }
}

async function take(
  harness: Harness,
  { action, account, endpoint, which, waitMs }: Step,
): Promise<void> {
  const { destinations, store } = harness;
  const who = accounts[account] ?? { id: "", name: "" };
  const all = destinations.list();
  const id = all[which % Math.max(1, all.length)]?.id ?? "d_none";
  const sent = harness.sent.at(-1 - (which % 5));
  const text = texts[endpoint] ?? "";
  const address = canonical[endpoint % canonical.length] ?? "";
  switch (action) {
    case "add":
      return allowed(destinations.add(who, which % 2 ? "here" : "there", text));
    case "remove":
      return allowed(destinations.remove(who.id, id));
    case "challenge":
      return allowed(destinations.challenge(who.id, id));
    case "prove":
      return allowed(destinations.prove(who.id, id, sent?.token ?? ""));
    case "echo":
      return destinations.answer(
        which % 3 ? (sent?.address ?? "") : address,
        sent?.datagram ?? new Uint8Array(),
      );
    case "unreachable":
      for (let i = 0; i < 6; i++) {
        destinations.unreachable(address, harness.nowMs);
        await harness.clock.advance(2 * second);
      }
      return;
    case "approve":
      return allowed(destinations.approve(id));
    case "pause":
      return allowed(destinations.pause(id));
    case "resume":
      return allowed(destinations.resume(id));
    case "deny":
      return destinations.apply({ ...settings, denied: [parseAddressRange("5.6.7.8")] });
    case "allow":
      return destinations.apply(settings);
    case "foreign":
      return store.foreign((rows) => {
        const row = rows.get(id);
        if (row && which % 2) rows.delete(id);
        else if (row)
          rows.set(id, { ...row, state: "paused", pausedMs: 1, pauseReason: "operator" });
      });
    case "down":
      store.isDown = true;
      return;
    case "up":
      store.isDown = false;
      return;
    case "restart":
      store.isDown = false;
      await harness.settle(); // writes of the previous process exist now, or never will
      return harness.start();
    case "wait":
      return harness.clock.advance(waitMs);
  }
}

/** Must be true after every step, even while changes are in progress. */
function check(harness: Harness): void {
  const { nowMs } = harness;
  const all = harness.destinations.list();
  const active = [...harness.destinations.active("here"), ...harness.destinations.active("there")];
  expect(new Set(all.map(({ address }) => address)).size).toBe(all.length);
  for (const { address } of all) expect(canonical).toContain(address);
  for (const { address, accountId } of active) {
    const its = all.find((each) => each.address === address);
    expect(its).toMatchObject({ accountId, state: "active" });
    expect(its?.provedMs).not.toBeNull();
    expect(its?.proofEndsMs ?? Number.POSITIVE_INFINITY).toBeGreaterThan(nowMs);
  }
  for (const { id } of accounts) {
    expect(harness.destinations.ofAccount(id).length).toBeLessThanOrEqual(settings.perAccountMax);
  }
  for (const { state, pausedMs, pauseReason, provedMs, provedBy } of all) {
    expect(state === "paused").toBe(pauseReason !== null);
    expect(pausedMs === null).toBe(pauseReason === null);
    expect(provedMs === null).toBe(provedBy === null);
    if (state === "unproved") expect(provedMs).toBeNull();
  }
  const rounds = new Map<string, number>();
  for (const { token } of harness.sent) rounds.set(token, (rounds.get(token) ?? 0) + 1);
  expect(Math.max(0, ...rounds.values())).toBeLessThanOrEqual(3);
  // The next due time, a read of the store after a failure, and one retry of a proof for each address.
  expect(harness.clock.pending).toBeLessThanOrEqual(2 + canonical.length);
}

describe("destinations", () => {
  it("keep their invariants under any sequence of events", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const harness = await Harness.open();
        for (const each of steps) {
          const notificationsBefore = harness.notifications;
          const before = harness.active().join();
          await take(harness, each);
          check(harness);
          if (before !== harness.active().join() && each.action !== "restart") {
            expect(harness.notifications).toBeGreaterThan(notificationsBefore);
          }
        }
        harness.store.isDown = false;
        await harness.clock.advance(minute);
        await harness.settle();
        check(harness);
        const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
        expect(harness.destinations.list().toSorted(byId)).toEqual(
          [...harness.store.rows.values()].toSorted(byId),
        );
      }),
      { numRuns: 300 },
    );
  });

  it("become active only by their own token, from its address or by their own account", async () => {
    const attack = fc.record({
      from: fc.constantFrom(...canonical, "1.1.1.1:9001"),
      token: fc.nat(3),
      account: fc.nat(2),
      which: fc.nat(2),
      byCall: fc.boolean(),
      cut: fc.constantFrom(23, 24, 25, 52),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(attack, { maxLength: 20 }), async (attacks) => {
        const harness = await Harness.open();
        const added = [];
        for (const [i, account] of accounts.entries()) {
          added.push(await harness.destinations.add(account, "here", canonical[i] ?? ""));
        }
        const challenges = harness.sent.slice();
        const entitled = new Set<string>();
        for (const { from, token, account, which, byCall, cut } of attacks) {
          const sent = challenges[token];
          const destination = added[which];
          const bytes = sent?.datagram ?? new Uint8Array(52);
          if (byCall && destination) {
            const { id, address, accountId } = destination;
            const caller = accounts[account]?.id ?? "";
            if (caller === accountId && sent?.address === address) entitled.add(address);
            await allowed(harness.destinations.prove(caller, id, sent?.token ?? "f".repeat(32)));
          } else {
            harness.destinations.answer(from, bytes.subarray(0, cut));
            if (sent?.address === from && (cut === 24 || cut === 52)) entitled.add(from);
          }
          await harness.settle();
          expect(new Set(harness.active())).toEqual(entitled);
        }
      }),
    );
  });
});
