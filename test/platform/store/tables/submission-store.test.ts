import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  endStates,
  type SubmissionRecord,
  type TimelineEvent,
  withdrawalReasons,
} from "../../../../src/gateway/submission/types.ts";
import { SqlLandedTipStore } from "../../../../src/platform/store/tables/landed-tip-store.ts";
import { SqlSubmissionStore } from "../../../../src/platform/store/tables/submission-store.ts";
import { onEachDatabase } from "../databases.ts";
import { recordOf, signatureCodec } from "../files.ts";

const ns = fc.bigInt(0n, 2n ** 63n - 1n);
const u64 = fc.bigInt(0n, 2n ** 64n - 1n);
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
  fc.record(
    {
      kind: fc.constant("received" as const),
      atNs: ns,
      method,
      tipLamports: u64,
      priorityFeeLamports: u64,
    },
    { requiredKeys: ["kind", "atNs", "method"] },
  ),
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
  fc.record({
    kind: fc.constant("auction_lost" as const),
    atNs: ns,
    slot: orNull(ns),
    leader: text,
  }),
  fc.record({ kind: fc.constant("seen" as const), atNs: ns, slot: ns }),
  fc.record({
    kind: fc.constant("withdrawn" as const),
    atNs: ns,
    slot: ns,
    reason: fc.constantFrom(...withdrawalReasons),
  }),
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
  options: fc.record(
    {
      swqosOnly: fc.boolean(),
      mevProtect: fc.boolean(),
      revertProtection: fc.boolean(),
      resendsMax: orNull(fc.nat()),
      enableFallback: fc.boolean(),
      pairedWith: text,
    },
    { requiredKeys: ["swqosOnly", "mevProtect", "revertProtection", "resendsMax"] },
  ),
  receivedNs: ns,
  state: fc.constantFrom("open" as const, ...endStates),
  endedNs: orNull(ns),
  slot: orNull(ns),
  reason: orNull(text),
  err,
  events: fc.array(event, { maxLength: 8 }),
  wire: orNull(fc.uint8Array({ maxLength: 50 })),
});

/** The expected record: the end drops the bytes. */
function asStored(given: SubmissionRecord): SubmissionRecord {
  return given.state === "open" ? given : { ...given, wire: null };
}

const nameOf = ({ accountId, signature }: SubmissionRecord) => `${accountId} ${signature}`;
const sorted = (records: readonly SubmissionRecord[]) =>
  records.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));

onEachDatabase((databases) => {
  describe("submissions", () => {
    it("are returned as stored; the last write wins, but never over a final state", async () => {
      const driver = await databases.store();
      const model = new Map<string, SubmissionRecord>();
      await fc.assert(
        fc.asyncProperty(fc.array(record, { maxLength: 6 }), async (records) => {
          await driver.submissions.put(records);
          for (const given of records) {
            const before = model.get(nameOf(given))?.state ?? "open";
            const isOver = before !== "open" && before !== "rejected";
            if (!isOver || given.state === before) model.set(nameOf(given), asStored(given));
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
          expect(bundles.flatMap((bundle) => bundle.signatures).toSorted()).toEqual(
            own.map(({ signature }) => signature).toSorted(),
          );
        }),
        { numRuns: 60 },
      );
    });

    it("are found by many signatures at once, once each", async () => {
      const { submissions } = await databases.store();
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

    it("are listed per account, newest first, up to the limit", async () => {
      const { submissions } = await databases.store();
      const at = (i: number) => 1_767_225_600_000_000_000n + BigInt(i);
      const ofAnn = (i: number) => {
        const end = i % 3 === 0 ? null : at(i + 100);
        const state = end === null ? ("open" as const) : ("landed" as const);
        return recordOf(`s${i}`, { receivedNs: at(i), state, endedNs: end });
      };
      await submissions.put(Array.from({ length: 40 }, (_, i) => ofAnn(i)));
      const others = Array.from({ length: 40 }, (_, i) => ({
        ...ofAnn(i),
        signature: `t${i}`,
        accountId: "a_2",
      }));
      await submissions.put(others);
      const names = async (limit: number) =>
        (await submissions.newest("a_1", limit)).map(({ signature }) => signature);
      expect(await names(5)).toEqual(["s39", "s38", "s37", "s36", "s35"]);
      expect(await names(50)).toHaveLength(40);
      expect(await submissions.newest("a_3", 5)).toEqual([]);
    });

    it("are deleted long after their end, and never while open", async () => {
      const { submissions } = await databases.store();
      const ended = (i: number) =>
        recordOf(`s${i}`, { state: "landed", endedNs: BigInt(i), reason: "landed" });
      await submissions.put(Array.from({ length: 1700 }, (_, i) => ended(i)));
      await submissions.put([recordOf("open", { receivedNs: 0n })]);
      expect(await submissions.forgetEndedBefore(1600n)).toBe(1600);
      expect(await submissions.forgetEndedBefore(1600n)).toBe(0);
      expect((await submissions.find("a_1", ["s1599", "s1600", "open"])).length).toBe(2);
      expect((await submissions.open()).map(({ signature }) => signature)).toEqual(["open"]);
    });

    it("are stored together or not at all", async () => {
      const { submissions } = await databases.store();
      const broken = recordOf("s2", { receivedNs: 2n ** 64n }); // no database has such an integer
      await expect(submissions.put([recordOf("s1"), broken])).rejects.toMatchObject({
        reason: "store_failed",
      });
      expect(await submissions.open()).toEqual([]);
      await submissions.put([recordOf("s1")]);
      expect((await submissions.open()).length).toBe(1);
    });
  });

  describe("the tip of a landed submission", () => {
    const signature = signatureCodec.encode(new Uint8Array(64).fill(7));
    const ended = {
      state: "landed",
      endedNs: 9n,
      slot: 7n,
      reason: "confirmed",
      wire: null,
    } as const;
    const landedTip = { lamports: 2n ** 64n - 1n, observedNs: 5_999_999n };

    it("is stored with the end, once, whatever account submitted it", async () => {
      const driver = await databases.migrated();
      const submissions = new SqlSubmissionStore(driver, signatureCodec);
      await submissions.put([recordOf(signature, { ...ended, landedTip })]);
      const later = { ...landedTip, observedNs: 8_000_000n };
      await submissions.put([
        recordOf(signature, { ...ended, accountId: "a_2", landedTip: later }),
      ]);
      const tips = await new SqlLandedTipStore(driver, signatureCodec).since(0, null, 9);
      expect(tips).toEqual([{ signature, lamports: 2n ** 53n - 1n, landedMs: 5 }]);
      expect(await submissions.find("a_1", [signature])).toEqual([recordOf(signature, ended)]);
    });

    it("is not stored if the end is not", async () => {
      const driver = await databases.migrated();
      const submissions = new SqlSubmissionStore(driver, signatureCodec);
      await submissions.put([recordOf("s1")]);
      const records = [recordOf("s1"), recordOf(signature, { ...ended, landedTip })];
      expect(await submissions.add(records)).toBe(false);
      const tips = await new SqlLandedTipStore(driver, signatureCodec).since(0, null, 9);
      expect(tips).toEqual([]);
    });
  });

  describe("submissions of several nodes", () => {
    /** Opens nodes on one database. */
    async function shared(): Promise<(node: string) => Promise<SqlSubmissionStore>> {
      const location = databases.location();
      await databases.migrated(location);
      return async (node) =>
        new SqlSubmissionStore(await databases.driver(location), signatureCodec, node);
    }
    const signaturesOf = (records: readonly SubmissionRecord[]) =>
      records.map(({ signature }) => signature).toSorted();
    const landed = { state: "landed", endedNs: 9n, slot: 7n, reason: "confirmed" } as const;

    it("are resumed by their node, and readable on every node", async () => {
      const node = await shared();
      const [a, b] = [await node("a"), await node("b")];
      const bundle = [0, 1].map((i) => recordOf(`b${i}`, { bundleId: "bundle", bundleIndex: i }));
      expect(await a.add([recordOf("s1")])).toBe(true);
      await a.put([recordOf("s2")]);
      expect(await b.add(bundle)).toBe(true);
      expect(signaturesOf(await a.open())).toEqual(["s1", "s2"]);
      expect(signaturesOf(await b.open())).toEqual(["b0", "b1"]);
      expect(await b.find("a_1", ["s1"])).toEqual([recordOf("s1")]);
      const found = [{ bundleId: "bundle", signatures: ["b0", "b1"] }];
      expect(await a.findBundles("a_1", ["bundle"])).toEqual(found);
      expect(await a.openNodes()).toEqual(["b"]);
      await b.put(bundle.map((each) => ({ ...each, ...landed, wire: null })));
      expect(await a.openNodes()).toEqual([]);
      expect(await a.findBundles("a_1", ["bundle"])).toEqual(found);
      expect((await a.find("a_1", ["b0", "b1"])).map(({ slot }) => slot)).toEqual([7n, 7n]);
    });

    it("are changed by no other node, but may restart there after all routes rejected them", async () => {
      const node = await shared();
      const [a, b] = [await node("a"), await node("b")];
      const there = recordOf("s1", { method: "sendBatch" });
      await a.add([there]);
      expect(await b.add([recordOf("s1")])).toBe(false);
      await b.put([recordOf("s1"), recordOf("s2")]);
      await b.put([recordOf("s1", { ...landed, wire: null })]);
      expect(await b.find("a_1", ["s1"])).toEqual([there]);
      expect(signaturesOf(await a.open())).toEqual(["s1"]);
      const refused = { state: "rejected", endedNs: 9n, reason: "routes_refused" } as const;
      await a.put([{ ...there, ...refused, wire: null }]);
      await b.put([recordOf("s1")]);
      await a.put([{ ...there, ...refused, wire: null }]); // a late report of its end
      expect(signaturesOf(await b.open())).toEqual(["s1", "s2"]);
      expect(await a.open()).toEqual([]);
    });

    it("of a dead node are adopted by one node, each once, bundles complete", async () => {
      const node = await shared();
      const gone = await node("gone");
      const others = [await node("a"), await node("b"), await node("c")];
      const records = Array.from({ length: 1203 }, (_, i) =>
        recordOf(`s${i}`, {
          receivedNs: BigInt(1000 + Math.floor(i / 3)),
          ...(i < 600 && { bundleId: `b${Math.floor(i / 3)}`, bundleIndex: i % 3 }),
        }),
      );
      await gone.put(records);
      await gone.put([recordOf("ended", { ...landed, wire: null })]);
      await others[2]?.put([recordOf("own")]);
      const adopted = await Promise.all(others.map((store) => store.adopt("gone")));
      expect(signaturesOf(adopted.flat())).toEqual(signaturesOf(records));
      expect(sorted(adopted.flat())).toEqual(sorted(records)); // with all known data
      for (const [i, store] of others.entries()) {
        const own = [...(adopted[i] ?? []), ...(i === 2 ? [recordOf("own")] : [])];
        expect(signaturesOf(await store.open())).toEqual(signaturesOf(own));
        const bundles = (adopted[i] ?? []).flatMap(({ bundleId }) => bundleId ?? []);
        for (const id of new Set(bundles)) {
          expect(bundles.filter((other) => other === id).length).toBe(3);
        }
      }
      // It was only disconnected: its later writes change nothing.
      await gone.put(records.map((each) => ({ ...each, ...landed, wire: null })));
      expect(await gone.open()).toEqual([]);
      expect((await others[0]?.find("a_1", ["s0"]))?.[0]?.state).toBe("open");
      expect(await others[0]?.adopt("gone")).toEqual([]);
      expect(await others[0]?.adopt("a")).toEqual([]); // its own
    });

    it("from a version without node names are adopted by the first node that starts", async () => {
      const node = await shared();
      const [unnamed, a, b] = [await node(""), await node("a"), await node("b")];
      await b.put([recordOf("other's")]);
      await unnamed.put([recordOf("s1"), recordOf("s2")]);
      expect(await a.openNodes()).toEqual(["", "b"]);
      expect(signaturesOf(await a.open())).toEqual(["s1", "s2"]);
      expect(signaturesOf(await b.open())).toEqual(["other's"]);
      await a.put([recordOf("s1", { ...landed, wire: null })]);
      expect(signaturesOf(await a.open())).toEqual(["s2"]);
    });

    it("all belong to this service if the database is not shared", async () => {
      const node = await shared();
      const [alone, a] = [await node(""), await node("a")];
      await a.put([recordOf("s1")]);
      await alone.put([recordOf("s2")]);
      expect(signaturesOf(await alone.open())).toEqual(["s1", "s2"]);
      expect(await alone.openNodes()).toEqual([]);
    });
  });
});
