import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import {
  endStates,
  type SubmissionRecord,
  type TimelineEvent,
} from "../../src/submission/types.ts";
import { Files, recordOf } from "./files.ts";

const files = new Files();
afterEach(() => files.clean());

const ns = fc.bigInt(0n, 2n ** 63n - 1n);
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });
const err = orNull(
  fc.oneof(
    fc.record({ InstructionError: fc.tuple(fc.nat(), fc.record({ Custom: fc.nat() })) }),
    fc.record({ big: fc.bigInt(2n ** 60n, 2n ** 63n) }),
    text,
  ),
);
const method = fc.constantFrom(
  ...(["sendTransaction", "sendBundle", "sendBatch", "sendIdeal", "sendAlt"] as const),
);
const attempt = fc.nat(1000);
const event: fc.Arbitrary<TimelineEvent> = fc.oneof(
  fc.record({ kind: fc.constant("received" as const), atNs: ns, method }),
  fc.record({ kind: fc.constant("held" as const), atNs: ns, reason: text }),
  fc.record({
    kind: fc.constantFrom("queued" as const, "acknowledged" as const),
    atNs: ns,
    route: text,
    attempt,
  }),
  fc.record({
    kind: fc.constant("sent" as const),
    atNs: ns,
    route: text,
    attempt,
    bytes: fc.nat(),
    slot: orNull(ns),
    leader: orNull(text),
  }),
  fc.record({
    kind: fc.constantFrom("refused" as const, "failed" as const, "dropped" as const),
    atNs: ns,
    route: text,
    attempt,
    reason: text,
  }),
  fc.record({ kind: fc.constant("seen" as const), atNs: ns, slot: ns }),
  fc.record({
    kind: fc.constantFrom(...endStates),
    atNs: ns,
    reason: text,
    slot: orNull(ns),
    err,
  }),
);
const record: fc.Arbitrary<SubmissionRecord> = fc.record({
  signature: fc.constantFrom("s1", "s2", "s3", "s4"),
  accountId: fc.constantFrom("a_1", "a_2"),
  method,
  bundleId: orNull(fc.constantFrom("b1", "b2")),
  bundleIndex: fc.nat(3),
  options: fc.record({
    swqosOnly: fc.boolean(),
    mevProtect: fc.boolean(),
    revertProtection: fc.boolean(),
    resendsMax: orNull(fc.nat()),
  }),
  receivedNs: ns,
  state: fc.constantFrom("open" as const, ...endStates),
  endedNs: orNull(ns),
  slot: orNull(ns),
  reason: orNull(text),
  err,
  events: fc.array(event, { maxLength: 8 }),
  wire: orNull(fc.uint8Array({ maxLength: 50 })),
});

/** As it must come back: the end drops the bytes. */
function kept(given: SubmissionRecord): SubmissionRecord {
  return given.state === "open" ? given : { ...given, wire: null };
}

const nameOf = ({ accountId, signature }: SubmissionRecord) => `${accountId} ${signature}`;
const sorted = (records: readonly SubmissionRecord[]) =>
  records.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));

describe("submissions", () => {
  it("come back as they were put, the last put holds but never over an end", async () => {
    const driver = await files.store();
    const model = new Map<string, SubmissionRecord>();
    await fc.assert(
      fc.asyncProperty(fc.array(record, { maxLength: 6 }), async (records) => {
        await driver.submissions.put(records);
        for (const given of records) {
          const before = model.get(nameOf(given))?.state ?? "open";
          const isOver = before !== "open" && before !== "rejected";
          if (!isOver || given.state === before) model.set(nameOf(given), kept(given));
        }
        const all = [...model.values()];
        const signatures = ["s1", "s2", "s3", "s4", "s5"];
        const found = [
          ...(await driver.submissions.find("a_1", signatures)),
          ...(await driver.submissions.find("a_2", signatures)),
        ];
        expect(sorted(found)).toEqual(sorted(all));
        const open = await driver.submissions.open();
        expect(sorted(open)).toEqual(sorted(all.filter(({ state }) => state === "open")));
        const bundles = await driver.submissions.findBundles("a_2", ["b2", "b3"]);
        const own = all.filter((one) => one.accountId === "a_2" && one.bundleId === "b2");
        expect(sorted(bundles)).toEqual(sorted(own));
      }),
      { numRuns: 60 },
    );
  });

  it("are found by many signatures at once, each once", async () => {
    const { submissions } = await files.store();
    const names = Array.from({ length: 300 }, (_, i) => `s${i}`);
    await submissions.put(names.map((name) => recordOf(name)));
    await submissions.put([recordOf("s5", { accountId: "a_2" })]);
    for (const count of [0, 1, 2, 8, 9, 64, 65, 256, 300]) {
      const wanted = names.slice(0, count);
      const found = await submissions.find("a_1", [...wanted, ...wanted, "unknown"]);
      expect(found.map(({ signature }) => signature).toSorted()).toEqual(wanted.toSorted());
      expect(found.every(({ accountId }) => accountId === "a_1")).toBe(true);
    }
  });

  it("are forgotten once they ended long ago, the open ones never", async () => {
    const { submissions } = await files.store();
    const ended = (i: number) =>
      recordOf(`s${i}`, { state: "landed", endedNs: BigInt(i), reason: "landed" });
    await submissions.put(Array.from({ length: 1700 }, (_, i) => ended(i)));
    await submissions.put([recordOf("open", { receivedNs: 0n })]);
    expect(await submissions.forgetEndedBefore(1600n)).toBe(1600);
    expect(await submissions.forgetEndedBefore(1600n)).toBe(0);
    expect((await submissions.find("a_1", ["s1599", "s1600", "open"])).length).toBe(2);
    expect((await submissions.open()).map(({ signature }) => signature)).toEqual(["open"]);
  });

  it("are all put or none", async () => {
    const { submissions } = await files.store();
    const broken = recordOf("s2", { receivedNs: 2n ** 64n }); // no database has such an integer
    await expect(submissions.put([recordOf("s1"), broken])).rejects.toMatchObject({
      reason: "store_failed",
    });
    expect(await submissions.open()).toEqual([]);
    await submissions.put([recordOf("s1")]);
    expect((await submissions.open()).length).toBe(1);
  });
});
