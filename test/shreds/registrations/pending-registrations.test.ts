// A change of role: pending registrations of a follower that becomes the leader.

import { expect, it } from "vitest";
import { PendingRegistrations } from "../../../src/shreds/registrations/pending-registrations.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { Rows, registrationOf } from "./confirmation-harness.ts";
import { silent, TestAccounting, tip } from "./harness.ts";

it("asks for the landing of a tip of another node at once, without a turn of the clock", async () => {
  const asked: string[] = [];
  const listeners: ((signatures: readonly string[] | null) => void)[] = [];
  class SharedRows extends Rows {
    override onNews(listener?: (signatures: readonly string[] | null) => void) {
      if (listener) listeners.push(listener);
      return super.onNews();
    }
  }
  const [clock, store] = [new ManualClock(), new SharedRows()];
  const sources = {
    landed: {
      landingStates: async (signatures: readonly string[]) => {
        asked.push(...signatures);
        return { slot: 1n, states: signatures.map(() => "absent" as const) };
      },
      landedTransaction: () => Promise.resolve(null),
    },
    outcomes: {
      blockhashState: async () => ({ isValid: true, slot: 1n }),
      nonceValue: () => Promise.resolve(null),
    },
    observations: null,
    decode: () => null,
    addresses: () => new Set<string>(),
  };
  const registrations = new PendingRegistrations({ clock, log: silent, store, sources });
  await registrations.lead(new TestAccounting());
  const registration = registrationOf(tip());
  await store.add(registration);
  for (const tell of listeners) tell([registration.signature]);
  await clock.advance(0);
  expect(asked).toEqual([registration.signature]);
  await registrations.close();
});

it("counts a registration once as leader, as follower, and during a change of roles", async () => {
  const places: number[] = [];
  class ObservedRows extends Rows {
    override pending(...question: Parameters<Rows["pending"]>) {
      places.push(registrations.counts.places);
      return super.pending(...question);
    }
  }
  const [clock, store, accounting] = [new ManualClock(), new ObservedRows(), new TestAccounting()];
  const options = { clock, log: silent, store, sources: null };
  const registrations: PendingRegistrations = new PendingRegistrations(options);
  const registration = registrationOf(tip());
  expect(registrations.reserve(registration.accountId)).toBe(true);
  await store.add(registration);
  registrations.add(registration);
  expect(registrations.counts).toMatchObject({ pending: 1, places: 1 });
  store.fails = "before"; // it stays pending while the role changes
  await registrations.lead(accounting);
  expect(places).toEqual([1, 1]);
  await registrations.follow();
  expect(registrations.counts).toMatchObject({ pending: 1, places: 1 });
  store.fails = null;
  await registrations.lead(accounting);
  await clock.advance(0);
  expect(registrations.counts).toMatchObject({ pending: 0, places: 0 });
  await registrations.close();
  expect(clock.pending).toBe(0);
});
