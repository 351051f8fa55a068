import { base58 } from "@scure/base";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { SqlDriver } from "../../src/store/driver.ts";
import { migrate } from "../../src/store/migrations.ts";
import { SqlRegistrationStore } from "../../src/store/registration-store.ts";
import {
  type Registration,
  registrationReasons,
  registrationStates,
  type Settlement,
} from "../../src/tips/registration-types.ts";
import { Files } from "./files.ts";

const files = new Files();
afterEach(() => files.clean());

const codec = {
  encode: (bytes: Uint8Array) => base58.encode(bytes),
  decode: (text: string) => base58.decode(text),
};

async function openStore(): Promise<{ driver: SqlDriver; store: SqlRegistrationStore }> {
  const driver = await files.driver();
  await migrate(driver, "blob");
  return { driver, store: new SqlRegistrationStore(driver, codec) };
}

function signatureOf(number: number): string {
  const bytes = new Uint8Array(64).fill(3);
  new DataView(bytes.buffer).setUint32(0, number);
  return base58.encode(bytes);
}

function registrationOf(number: number, changes: Partial<Registration> = {}): Registration {
  return {
    signature: signatureOf(number),
    accountId: "a_1",
    lamports: 5n,
    slot: 7n,
    registeredMs: 1_767_225_600_000 + number,
    lifetime: new Uint8Array(32).fill(9),
    nonceAccount: null,
    state: "pending",
    settledMs: null,
    countedLamports: null,
    countedOrder: null,
    reason: null,
    ...changes,
  };
}

function countedAs(order: bigint, lamports = 5n): Settlement {
  return {
    state: "counted",
    settledMs: 1_767_225_700_000,
    countedLamports: lamports,
    countedOrder: order,
    reason: null,
  };
}

const dropped: Settlement = {
  state: "dropped",
  settledMs: 1,
  countedLamports: null,
  countedOrder: null,
  reason: "expired",
};

const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });
const i63 = fc.bigInt(0n, 2n ** 63n - 1n);
const ms = fc.integer({ min: 0, max: 2 ** 50 });
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
const anyRegistration: fc.Arbitrary<Registration> = fc.record({
  signature: fc.uint8Array({ minLength: 64, maxLength: 64 }).map((bytes) => base58.encode(bytes)),
  accountId: fc.constantFrom("a_1", "a_2"),
  lamports: i63,
  slot: fc.bigInt(0n, 2n ** 64n - 1n),
  registeredMs: ms,
  lifetime: bytes32,
  nonceAccount: orNull(bytes32),
  state: fc.constantFrom(...registrationStates),
  settledMs: orNull(ms),
  countedLamports: orNull(i63),
  countedOrder: fc.constant(null),
  reason: orNull(fc.constantFrom(...registrationReasons)),
});

const newestFirst = (all: readonly Registration[]) =>
  all.toSorted(
    (a, b) =>
      b.registeredMs - a.registeredMs ||
      Buffer.compare(base58.decode(a.signature), base58.decode(b.signature)),
  );

describe("registrations", () => {
  it("come back as they were added, also at the ends of their ranges", async () => {
    const { store } = await openStore();
    const model: Registration[] = [];
    await fc.assert(
      fc.asyncProperty(fc.array(anyRegistration, { maxLength: 5 }), async (added) => {
        const taken = await Promise.all(added.map((one) => store.add(one)));
        model.push(...added.filter((_, i) => taken[i]));
        for (const account of ["a_1", "a_2"]) {
          const own = newestFirst(model.filter(({ accountId }) => accountId === account));
          expect(await store.ofAccount(account, null, 10_000)).toEqual(own);
        }
        const pending = newestFirst(model.filter(({ state }) => state === "pending"));
        const found = await store.pending(null, 10_000);
        expect(newestFirst(found)).toEqual(pending);
      }),
      { numRuns: 40 },
    );
  });

  it("belong to whoever was first, of many at once, too", async () => {
    const { store } = await openStore();
    const tries = Array.from({ length: 60 }, (_, i) =>
      store.add(registrationOf(i % 3, { accountId: `a_${i}`, lamports: BigInt(i) })),
    );
    const taken = await Promise.all(tries);
    expect(taken.flatMap((isTaken, i) => (isTaken ? [i] : []))).toEqual([0, 1, 2]);
    expect(await store.add(registrationOf(1, { accountId: "a_9", lamports: 99n }))).toBe(false);
    const owners = await store.owners([0, 1, 2, 3].map(signatureOf));
    expect(Object.fromEntries(owners)).toEqual({
      [signatureOf(0)]: "a_0",
      [signatureOf(1)]: "a_1",
      [signatureOf(2)]: "a_2",
    });
    expect(await store.ofAccount("a_1", null, 9)).toMatchObject([{ lamports: 1n }]);
  });

  it("of one turn share a commit; one that fails takes no other with it", async () => {
    const { driver, store } = await openStore();
    const sent: number[] = [];
    const counting = new SqlRegistrationStore(
      {
        ...driver,
        query: (sql, params) => driver.query(sql, params),
        transaction: (statements, durability) => {
          sent.push(statements.length);
          expect(durability).toBe("durable");
          return driver.transaction(statements, durability);
        },
        onForeignChange: (listener) => driver.onForeignChange(listener),
        close: () => driver.close(),
      },
      codec,
    );
    const added = [
      counting.add(registrationOf(1)),
      counting.add(registrationOf(2, { lamports: 2n ** 63n })), // no database has such an integer
      counting.add(registrationOf(3)),
    ];
    expect(sent).toEqual([1, 1, 1]); // before anything was awaited: they go together
    const ends = await Promise.allSettled(added);
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    await expect(added[1]).rejects.toMatchObject({ reason: "store_failed" });
    expect((await store.pending(null, 9)).map(({ signature }) => signature)).toEqual([
      signatureOf(1),
      signatureOf(3),
    ]);
  });

  it("are settled once, and only while they are pending", async () => {
    const { store } = await openStore();
    await Promise.all([1, 2, 3].map((number) => store.add(registrationOf(number))));
    await store.add(registrationOf(4, { ...countedAs(4n) }));
    const signature = signatureOf(1);
    const tries = [store.settle(signature, countedAs(1n)), store.settle(signature, dropped)];
    expect(await Promise.all(tries)).toEqual([true, false]);
    expect(await store.settle(signatureOf(2), dropped)).toBe(true);
    expect(await store.settle(signatureOf(4), dropped)).toBe(false);
    expect(await store.settle(signatureOf(5), dropped)).toBe(false);
    expect(await store.ofAccount("a_1", null, 9)).toMatchObject([
      { signature: signatureOf(4), state: "counted", countedOrder: 4n },
      { signature: signatureOf(3), state: "pending", settledMs: null },
      { signature: signatureOf(2), state: "dropped", reason: "expired", settledMs: 1 },
      { signature, state: "counted", countedOrder: 1n, countedLamports: 5n },
    ]);
    expect((await store.pending(null, 9)).length).toBe(1);
  });

  it("never have one order twice", async () => {
    const { store } = await openStore();
    await store.add(registrationOf(1, countedAs(5n)));
    await store.add(registrationOf(2));
    await expect(store.add(registrationOf(3, countedAs(5n)))).rejects.toMatchObject({
      reason: "store_failed",
    });
    await expect(store.settle(signatureOf(2), countedAs(5n))).rejects.toMatchObject({
      reason: "store_failed",
    });
    expect(await store.settle(signatureOf(2), countedAs(6n))).toBe(true);
  });

  it("tell the largest order", async () => {
    const { store } = await openStore();
    expect(await store.lastOrder()).toBe(0n);
    await store.add(registrationOf(1));
    expect(await store.lastOrder()).toBe(0n);
    for (const order of [3n, 2n ** 62n, 9n])
      await store.add(registrationOf(Number(order % 1000n), countedAs(order)));
    expect(await store.lastOrder()).toBe(2n ** 62n);
  });

  it("are read page by page, none missed and none twice, of one millisecond neither", async () => {
    const { store } = await openStore();
    const all = Array.from({ length: 100 }, (_, i) =>
      registrationOf(i * 7919, { registeredMs: 1000 + Math.floor(i / 30) }),
    );
    await Promise.all(all.map((one) => store.add(one)));
    const found: Registration[] = [];
    for (;;) {
      const page = await store.pending(found.at(-1) ?? null, 7);
      if (page.length === 0) break;
      expect(page.length).toBeLessThanOrEqual(7);
      found.push(...page);
    }
    expect(found.map(({ signature }) => signature)).toEqual(all.map(({ signature }) => signature));
    const told: Registration[] = [];
    for (;;) {
      const page = await store.ofAccount("a_1", told.at(-1)?.registeredMs ?? null, 7);
      if (page.length === 0) break;
      told.push(...page);
    }
    expect(told).toEqual(newestFirst(all));
  });

  it("that a tool has spoilt prevent no start", async () => {
    const { driver, store } = await openStore();
    await Promise.all([1, 2].map((number) => store.add(registrationOf(number))));
    const spoil = "UPDATE registrations SET lifetime = 'text' WHERE signature = $1";
    const params = [base58.decode(signatureOf(1))];
    await driver.transaction([{ sql: spoil, params }], "durable");
    expect((await store.pending(null, 9)).map(({ signature }) => signature)).toEqual([
      signatureOf(2),
    ]);
    await expect(store.ofAccount("a_1", null, 9)).rejects.toMatchObject({ reason: "store_failed" });
  });

  it("have signatures of 64 bytes and no others", async () => {
    const { store } = await openStore();
    const short = registrationOf(1, { signature: base58.encode(new Uint8Array(63)) });
    await expect(store.add(short)).rejects.toMatchObject({ reason: "store_failed" });
    await expect(store.settle("", dropped)).rejects.toMatchObject({ reason: "store_failed" });
  });
});
