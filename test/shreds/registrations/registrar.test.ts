// The registrar with native checks and a real database.

import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import type {
  InvalidEntry,
  Registration,
  RegistrationEntry,
  RegistrationResult,
} from "../../../src/shreds/registrations/registration-types.ts";
import { Files } from "../../platform/store/files.ts";
import { addressOf, alice, bob, transferOf, wallet } from "../../support/transactions/chain.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";
import {
  codec,
  entry,
  openHarness,
  otherShredWallet,
  presentSlot,
  shredWallet,
  signatureOf,
  signed,
  TestPendingRegistrations,
  tip,
  tipV0,
} from "./harness.ts";

const files = new Files();
afterEach(() => files.clean());

function reasonOf(result: RegistrationResult | undefined): string {
  if (!result) return "nothing";
  return result.accepted ? result.state : result.reason;
}

function changed(wire: Uint8Array, at: number): Uint8Array {
  const copy = Uint8Array.from(wire);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

/** The first signature of a legacy transaction set to zeros. */
function unsigned(wire: Uint8Array): Uint8Array {
  return Uint8Array.from(wire).fill(0, 1, 65);
}

function v1Tip(lamports: bigint): Uint8Array {
  const payer = new SandboxKeyPair(new Uint8Array(32).fill(1));
  const lifetime = { blockhash: new Uint8Array(32).fill(7) };
  return v1Transfer(payer, shredWallet.publicKey.toBytes(), lamports, lifetime);
}

const text = (transaction: string): RegistrationEntry => ({ transaction, slot: presentSlot });

describe("an entry", () => {
  it.each<[string, Uint8Array, bigint]>([
    ["legacy", tip(10_000n), 10_000n],
    ["v0", tipV0(7n), 7n],
    ["v1", v1Tip(9n), 9n],
    [
      "of several tips",
      signed([transferOf(alice, shredWallet, 4n), transferOf(alice, otherShredWallet, 5n)]),
      9n,
    ],
    ["the smallest", tip(1n), 1n],
  ])("is taken and counted at once without a node: %s", async (_, wire, lamports) => {
    const { registrar, store, accounting } = await openHarness(files);
    const results = await registrar.register("a_1", [entry(wire, 999_999n)], false);
    const signature = signatureOf(wire);
    expect(results).toEqual([{ accepted: true, signature, state: "counted" }]);
    expect(await store.ofAccount("a_1", null, 9)).toMatchObject([
      {
        signature,
        lamports,
        slot: 999_999n,
        registeredMs: accounting.ms,
        lifetime: new Uint8Array(32).fill(7),
        state: "counted",
        settledMs: accounting.ms,
        countedLamports: lamports,
        countedOrder: 1n,
      },
    ]);
    const counted = { registeredMs: accounting.ms, countedMs: accounting.ms };
    expect(accounting.tips).toEqual([{ order: 1n, accountId: "a_1", lamports, ...counted }]);
  });

  it("may be in base58", async () => {
    const { registrar } = await openHarness(files);
    const wire = tip(1n, 5n);
    const results = await registrar.register("a_1", [text(codec.encode(wire))], true);
    expect(results).toMatchObject([{ accepted: true, signature: signatureOf(wire) }]);
  });

  const twoSigners = signed(
    [transferOf(alice, shredWallet, 5n), transferOf(bob, shredWallet, 5n)],
    [alice, bob],
  );
  const selfPaid = signed([transferOf(shredWallet, otherShredWallet, 500n)], [shredWallet]);
  it.each<[string, RegistrationEntry | InvalidEntry, string, RegExp]>([
    ["no entry", { problem: "slot: missing" }, "entry_invalid", /^slot: missing$/],
    ["nothing", text(""), "transaction_invalid", /empty text; expected a transaction in base64/],
    ["no text of bytes", text("%%%"), "transaction_invalid", /invalid base64: character "%" at 0/],
    ["base64 with a fault", text("AAAA="), "transaction_invalid", /invalid base64: 5 characters/],
    ["too long base58", text("1".repeat(1684)), "transaction_invalid", /at most 1683 .* 1684/],
    ["too long base64", text("+".repeat(5468)), "transaction_invalid", /at most 5464 .* 5468/],
    ["garbage", entry(new Uint8Array(300).fill(3)), "transaction_invalid", /expected/],
    [
      "something behind it",
      entry(Buffer.concat([tip(), Uint8Array.of(0)])),
      "transaction_invalid",
      /expected/,
    ],
    [
      "an unknown version",
      entry(Uint8Array.from([0x82, ...tip().slice(1)])),
      "transaction_version",
      /version/,
    ],
    [
      "a forged signature",
      entry(changed(tip(), 5)),
      "signature_invalid",
      /signature verification failed/,
    ],
    ["none signed", entry(unsigned(tip())), "signature_invalid", /verification failed/],
    [
      "another amount",
      entry(changed(tip(), tip().length - 5)),
      "signature_invalid",
      /verification failed/,
    ],
    [
      "a second signature",
      entry(changed(twoSigners, 70)),
      "signature_invalid",
      /verification failed/,
    ],
    ["no tip", entry(signed([transferOf(alice, bob, 5n)])), "tip_missing", /got 0 lamports/],
    ["a tip of nothing", entry(tip(0n)), "tip_missing", /expected a transfer to one of \w{32}/],
    ["tips among tip addresses", entry(selfPaid), "tip_missing", /got 0 lamports/],
    [
      "a tip by a lookup table",
      entry(tipV0(5n, [shredWallet])),
      "tip_missing",
      new RegExp(addressOf(shredWallet)),
    ],
    [
      "more than there is",
      entry(tip(2n ** 53n)),
      "transaction_invalid",
      /at most 9007199254740991 lamports, got 9007199254740992/,
    ],
    [
      "a slot to come",
      entry(tip(), presentSlot + 33n),
      "slot_ahead",
      /at most 1000032, got 1000033/,
    ],
    ["a slot far away", entry(tip(), 2n ** 64n - 1n), "slot_ahead", /got 18446744073709551615/],
    [
      "an old slot",
      entry(tip(), presentSlot - 216_001n),
      "slot_too_old",
      /784000 or later, got 783999/,
    ],
  ])("is refused: %s", async (_, given, reason, message) => {
    const { registrar, store, accounting } = await openHarness(files);
    for (const isDryRun of [true, false]) {
      const [result] = await registrar.register("a_1", [given], isDryRun);
      expect(reasonOf(result)).toBe(reason);
      expect(result).toMatchObject({ accepted: false, message: expect.stringMatching(message) });
    }
    expect(await store.ofAccount("a_1", null, 9)).toEqual([]);
    expect(accounting.orders).toEqual([]);
  });

  it("has the age that follows from the measured slots", async () => {
    let present: { slot: bigint | null; slotNs: bigint | null } = { slot: 1_000n, slotNs: null };
    const { registrar } = await openHarness(files, () => ({ present: () => present }));
    const reasons = async (...slots: bigint[]) =>
      (
        await registrar.register(
          "a_1",
          slots.map((slot) => entry(tip(), slot)),
          true,
        )
      ).map(reasonOf);
    const repeated = "registered_before";
    expect(await reasons(0n, 1_032n, 1_033n)).toEqual(["counted", repeated, "slot_ahead"]);
    present = { slot: presentSlot, slotNs: 200_000_000n };
    expect(await reasons(568_000n, 567_999n)).toEqual(["counted", "slot_too_old"]);
    present = { slot: presentSlot, slotNs: 800_000_000n };
    expect(await reasons(892_000n, 891_999n)).toEqual(["counted", "slot_too_old"]);
    present = { slot: presentSlot, slotNs: null };
    expect(await reasons(784_000n, 783_999n)).toEqual(["counted", "slot_too_old"]);
    present = { slot: null, slotNs: 400_000_000n };
    expect(await reasons(0n, 2n ** 64n - 1n)).toEqual(["counted", repeated]);
    expect(
      reasonOf((await registrar.register("a_1", [entry(tip(), 2n ** 64n - 1n)], false))[0]),
    ).toBe("counted");
  });
});

describe("a signature", () => {
  it("is registered once, by one account, which is not disclosed", async () => {
    const { registrar, accounting } = await openHarness(files);
    const wire = tip();
    const [first] = await registrar.register("a_1", [entry(wire)], false);
    expect(first).toMatchObject({ accepted: true });
    const [own] = await registrar.register("a_1", [entry(wire)], false);
    const [foreign] = await registrar.register("a_2", [entry(wire)], false);
    const expected = "signature: already registered";
    const reason = "registered_before";
    const message = (who: string, repair = "") => `${expected} by ${who} account${repair}`;
    const repair = "; the payer of an unproven tip can claim it with a proof for this account";
    const signature = signatureOf(wire);
    expect(own).toEqual({ accepted: false, reason, message: message("this"), signature });
    expect(foreign).toEqual({
      accepted: false,
      reason,
      message: message("another", repair),
      signature,
    });
    expect(accounting.tips.length).toBe(1);
    expect(accounting.open).toEqual([]);
  });

  it("that occurs twice in a request counts once, the first time", async () => {
    const { registrar, accounting } = await openHarness(files);
    const [a, b] = [entry(tip(5n, 1n)), entry(tip(5n, 2n))];
    for (const isDryRun of [true, false]) {
      const results = await registrar.register("a_1", [a, b, a, a], isDryRun);
      expect(results.map(reasonOf)).toEqual([
        "counted",
        "counted",
        "registered_before",
        "registered_before",
      ]);
      expect(results[2]).toMatchObject({ message: expect.stringMatching(/this account/) });
    }
    expect(accounting.tips.length).toBe(2);
    expect(accounting.open).toEqual([]);
  });

  it("counts once if two accounts send it together", async () => {
    const { registrar, accounting } = await openHarness(files);
    const entries = Array.from({ length: 25 }, (_, i) => entry(tip(5n, BigInt(i))));
    const [one, two] = await Promise.all([
      registrar.register("a_1", entries, false),
      registrar.register("a_2", entries.toReversed(), false),
    ]);
    const accepted = [...one, ...two].flatMap((each) => (each.accepted ? [each.signature] : []));
    expect(accepted.length).toBe(25);
    expect(new Set(accepted).size).toBe(25);
    expect(accounting.tips.length).toBe(25);
    expect(accounting.open).toEqual([]);
  });

  it("cannot be claimed by an invalid transaction with the same signature", async () => {
    const { registrar } = await openHarness(files);
    const wire = tip();
    const [garbage] = await registrar.register("a_2", [entry(changed(wire, 120))], false);
    expect(garbage).toMatchObject({ accepted: false });
    expect((await registrar.register("a_1", [entry(wire)], false)).map(reasonOf)).toEqual([
      "counted",
    ]);
  });
});

describe("a request", () => {
  it("is acknowledged after all entries are durable, in one store batch", async () => {
    const requests: Registration[] = [];
    const waiting: (() => void)[] = [];
    const { registrar, accounting } = await openHarness(files, ({ store }) => ({
      store: {
        owners: (signatures) => store.owners(signatures),
        ofAccount: (...question) => store.ofAccount(...question),
        claim: (...question) => store.claim(...question),
        claimable: (...question) => store.claimable(...question),
        add: (registration) => store.add(registration),
        addCounted: async (registration, epoch) => {
          requests.push(registration);
          await new Promise<void>((resolve) => void waiting.push(resolve));
          return store.addCounted(registration, epoch);
        },
      },
    }));
    let isAnswered = false;
    const entries = [1n, 2n, 3n].map((amount) => entry(tip(5n, amount)));
    const answer = registrar.register("a_1", entries, false).then((results) => {
      isAnswered = true;
      return results;
    });
    await expect.poll(() => requests.length).toBe(3); // none of them has ended
    const signatures = entries.map(({ transaction }) =>
      signatureOf(Buffer.from(transaction, "base64")),
    );
    expect(requests.map(({ signature }) => signature)).toEqual(signatures);
    expect(requests.map(({ countedOrder }) => countedOrder)).toEqual([1n, 2n, 3n]);
    expect(new Set(requests.map(({ registeredMs }) => registeredMs)).size).toBe(1);
    waiting[0]?.();
    waiting[1]?.();
    await expect.poll(() => accounting.settled.size).toBe(2);
    expect(isAnswered).toBe(false);
    waiting[2]?.();
    expect((await answer).map(reasonOf)).toEqual(["counted", "counted", "counted"]);
  });

  it("whose entries cannot be stored reports that, and leaves no order number open", async () => {
    let failing = true;
    const warnings: unknown[] = [];
    const { registrar, accounting } = await openHarness(files, ({ store }) => ({
      log: { warn: (...words: unknown[]) => void warnings.push(...words) },
      store: {
        owners: () => Promise.reject(new ShredwayError("store_failed", "secret path")),
        ofAccount: (...question) => store.ofAccount(...question),
        claim: (...question) => store.claim(...question),
        claimable: (...question) => store.claimable(...question),
        add: (registration) => store.add(registration),
        addCounted: (registration, epoch) =>
          failing
            ? Promise.reject(new ShredwayError("store_failed", "secret path"))
            : store.addCounted(registration, epoch),
      },
    }));
    const given = [entry(tip(5n, 1n)), { problem: "no entry" }, entry(tip(5n, 2n))];
    const results = await registrar.register("a_1", given, false);
    expect(results.map(reasonOf)).toEqual(["store_failed", "entry_invalid", "store_failed"]);
    expect(JSON.stringify(results)).not.toContain("secret");
    expect(warnings).toEqual(["registrations: could not be stored: secret path"]); // once
    expect(accounting.tips).toEqual([]);
    expect(accounting.open).toEqual([]);
    expect((await registrar.register("a_1", given, true)).map(reasonOf)).toEqual(
      results.map(reasonOf),
    );
    failing = false;
    expect((await registrar.register("a_1", given, false)).map(reasonOf)).toEqual([
      "counted",
      "entry_invalid",
      "counted",
    ]);
    // The owner cannot be read; the known registrations are still reported.
    const [repeated] = await registrar.register("a_1", given, false);
    expect(repeated).toMatchObject({ reason: "registered_before", message: /already registered$/ });
  });

  it("stores nothing in a dry run", async () => {
    const { registrar, store, accounting } = await openHarness(files);
    const given = [entry(tip(5n, 1n)), entry(changed(tip(5n, 2n), 5)), entry(tip(5n, 3n))];
    await registrar.register("a_2", [entry(tip(5n, 3n))], false);
    const dry = await registrar.register("a_1", given, true);
    expect(dry.map(reasonOf)).toEqual(["counted", "signature_invalid", "registered_before"]);
    expect(dry[2]).toMatchObject({ message: expect.stringMatching(/another account/) });
    expect(await store.ofAccount("a_1", null, 9)).toEqual([]);
    expect(accounting.orders.length).toBe(1);
    expect(await registrar.register("a_1", given, false)).toEqual(dry);
  });

  it("that exceeds the verifier's queue is accepted up to its capacity", async () => {
    let room = 2;
    const { registrar } = await openHarness(files, ({ verifier }) => ({
      verifier: { verify: (wire) => (room-- > 0 ? verifier.verify(wire) : null) },
    }));
    const given = [1n, 2n, 3n].map((amount) => entry(tip(5n, amount)));
    const results = await registrar.register("a_1", given, false);
    expect(results.map(reasonOf)).toEqual(["counted", "counted", "overloaded"]);
    expect(results[2]).toMatchObject({ message: expect.stringMatching(/limit .* retry later/) });
  });
});

describe("the registrar with a node", () => {
  it("registers entries as pending within the capacity, and releases it if they are not stored", async () => {
    const places = new TestPendingRegistrations();
    places.free = 3;
    let failing = true;
    const { registrar, store, accounting } = await openHarness(files, (parts) => ({
      pending: places,
      store: {
        owners: (signatures) => parts.store.owners(signatures),
        ofAccount: (...question) => parts.store.ofAccount(...question),
        claim: (...question) => parts.store.claim(...question),
        claimable: (...question) => parts.store.claimable(...question),
        addCounted: (...question) => parts.store.addCounted(...question),
        add: (registration) =>
          failing
            ? Promise.reject(new ShredwayError("store_failed", "full"))
            : parts.store.add(registration),
      },
    }));
    const given = [1n, 2n, 3n, 4n].map((amount) => entry(tip(5n, amount)));
    const reasons = async (isDryRun = false) =>
      (await registrar.register("a_1", given, isDryRun)).map(reasonOf);
    expect(await reasons()).toEqual(["store_failed", "store_failed", "store_failed", "overloaded"]);
    expect(places).toMatchObject({ free: 3, added: [] });
    failing = false;
    expect(await reasons(true)).toEqual(["pending", "pending", "pending", "pending"]);
    expect(places).toMatchObject({ free: 3, added: [] });
    expect(await reasons()).toEqual(["pending", "pending", "pending", "overloaded"]);
    expect(places.added).toEqual((await store.pending(null, 9)).toSorted(inOrderOf(places.added)));
    expect(places.added).toMatchObject(
      given.slice(0, 3).map(() => ({ state: "pending", settledMs: null, countedOrder: null })),
    );
    places.free = 2;
    const repeated = "registered_before";
    expect(await reasons()).toEqual([repeated, repeated, "overloaded", "overloaded"]);
    expect(places.free).toBe(2);
    expect(accounting.orders).toEqual([]);
  });
});

function inOrderOf(all: readonly Registration[]) {
  const placeOf = (one: Registration) =>
    all.findIndex(({ signature }) => signature === one.signature);
  return (a: Registration, b: Registration) => placeOf(a) - placeOf(b);
}

describe("for any mix of entries", () => {
  /** Kinds by number: valid, forged, without a tip, garbage, empty. */
  const created = Array.from({ length: 8 }, (_, i) => tip(5n, BigInt(i), wallet(1 + (i % 3))));
  const validKind = (i: number) => entry(created[i % 8] ?? tip());
  const kinds: ((i: number) => RegistrationEntry | InvalidEntry)[] = [
    validKind,
    (i) => entry(changed(created[i % 8] ?? tip(), 9)),
    (i) => entry(created[i % 8] ?? tip(), presentSlot + 100n),
    () => entry(signed([transferOf(alice, bob, 5n)])),
    () => text("garbage"),
    () => ({ problem: "no entry" }),
  ];
  const anyEntry = fc.tuple(fc.integer({ min: 0, max: 7 }), fc.nat({ max: 9 }));
  const anyRequest = fc.record({
    accountId: fc.constantFrom("a_1", "a_2", "a_3"),
    isDryRun: fc.boolean(),
    entries: fc.array(anyEntry, { minLength: 1, maxLength: 25 }),
  });

  it("returns results in order and accepts no entry twice", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(anyRequest, { minLength: 1, maxLength: 4 }), { maxLength: 4 }),
        async (rounds) => {
          const { registrar, accounting, store } = await openHarness(files);
          const owners = new Map<string, string>();
          for (const requests of rounds) {
            accounting.ms += 1;
            const given = requests.map(({ entries }) =>
              // Every second one is valid.
              entries.map(([i, kind]) => (kinds[kind < 5 ? 0 : kind - 4] ?? validKind)(i)),
            );
            const answers = await Promise.all(
              requests.map(({ accountId, isDryRun }, at) =>
                registrar.register(accountId, given[at] ?? [], isDryRun),
              ),
            );
            for (const [at, results] of answers.entries()) {
              const { accountId = "", isDryRun = false } = requests[at] ?? {};
              expect(results.length).toBe(given[at]?.length);
              for (const [place, result] of results.entries()) {
                const submitted = given[at]?.[place];
                const valid = submitted && "slot" in submitted ? submitted : null;
                const wire = Buffer.from(valid?.transaction ?? "", "base64");
                const isGood =
                  created.some((one) => wire.equals(one)) && valid?.slot === presentSlot;
                if (!result.accepted) {
                  expect(result.reason === "registered_before").toBe(isGood);
                  continue;
                }
                expect(isGood).toBe(true);
                expect(signatureOf(wire)).toBe(result.signature);
                if (isDryRun) continue;
                expect(owners.has(result.signature)).toBe(false);
                owners.set(result.signature, accountId);
              }
            }
            expect(accounting.open).toEqual([]);
            expect(accounting.tips.length).toBe(owners.size);
          }
          expect(await store.owners(created.map(signatureOf))).toEqual(owners);
          const times = accounting.tips
            .toSorted((a, b) => Number(a.order - b.order))
            .map(({ registeredMs }) => registeredMs);
          expect(times).toEqual(times.toSorted((a, b) => a - b));
          await files.clean();
        },
      ),
      { numRuns: 12 },
    );
  });
});
