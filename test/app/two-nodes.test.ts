// Several nodes on one database: each knows the submissions of the others, and one continues those
// of a failed node.

import { describe, expect, it } from "vitest";
import { bundleIdOf } from "../../src/gateway/submission/tracked-transaction.ts";
import { onEachDatabase } from "../platform/store/databases.ts";
import { untilTrue } from "../platform/store/files.ts";
import { accountId, Cluster, type Node } from "./nodes.ts";

const second = 1000;
const minute = 60 * second;

/** Advances the clock of a node in steps until its database query has the expected result. */
async function passUntil(node: Node, look: () => Promise<boolean> | boolean): Promise<void> {
  await untilTrue(async () => {
    if (await look()) return true;
    await node.clock.advance(100);
    return false;
  });
}

onEachDatabase((databases) => {
  describe("a submission of one node", () => {
    it("is reported by every node, while it is open and after its end", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const [single, ...bundle] = [cluster.facts(), cluster.facts(), cluster.facts()] as const;
      await a.submit(single);
      await a.submit(...bundle);
      expect(await b.states(single, ...bundle)).toEqual(["open", "open", "open"]);
      const [status] = await a.pipeline.statuses(accountId, [bundle[0]?.signature ?? ""]);
      const bundleId = status?.bundleId ?? "";
      const [bundleStatus] = await b.pipeline.bundles(accountId, [bundleId]);
      expect(bundleStatus?.transactions.map(({ signature }) => signature)).toEqual(
        bundle.map(({ signature }) => signature),
      );
      for (const { signature } of [single, ...bundle]) cluster.landed.set(signature, 9n);
      await passUntil(a, async () => (await b.states(single))[0] === "landed");
      await untilTrue(async () => {
        const [ended] = await b.pipeline.bundles(accountId, [bundleId]);
        return (
          ended?.transactions.every(({ state, slot }) => state === "landed" && slot === 9n) ?? false
        );
      });
      const [landed] = await b.pipeline.bundles(accountId, [bundleId]);
      for (const commitment of ["confirmed", "finalized"] as const) {
        cluster.commitment = commitment;
        const settled = landed && b.bundleCommitments.of(landed);
        await b.clock.advance(500);
        expect(await settled).toEqual({ slot: 9n, commitment });
      }
      expect(await b.pipeline.statuses("ben", [single.signature])).toEqual([null]);
      expect(b.sent).toEqual([]);
    });

    it("is in several bundles of several nodes: each node knows all, also after a restart", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const [one, two, three] = [cluster.facts(), cluster.facts(), cluster.facts()];
      await a.submit(one, two);
      await a.submit(two, three);
      await b.submit(three, one);
      const wanted = [
        [one, two],
        [two, three],
        [three, one],
      ].map((bundle) => bundle.map(({ signature }) => signature));
      const knownTo = async ({ pipeline }: Node) => {
        const found = await pipeline.bundles(accountId, wanted.map(bundleIdOf));
        return found.map((bundle) => bundle?.transactions.map(({ signature }) => signature));
      };
      for (const node of [a, b]) expect(await knownTo(node)).toEqual(wanted);
      await a.kill();
      expect(await knownTo(await cluster.node("c"))).toEqual(wanted);
      await passUntil(b, () => b.pipeline.snapshot().open === 3); // it has adopted those of the dead node
      expect(await knownTo(b)).toEqual(wanted);
    });

    it("is also sent by another node that receives it again: one row, one tip", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b, c] = [await cluster.node("a"), await cluster.node("b"), await cluster.node("c")];
      const facts = cluster.facts();
      await a.submit(facts);
      await b.submit(facts);
      expect([a.sent, b.sent]).toEqual([[facts.signature], [facts.signature]]);
      cluster.landed.set(facts.signature, 9n);
      const isLanded = (node: Node) => async () => (await node.states(facts))[0] === "landed";
      await passUntil(b, isLanded(b));
      expect(await c.states(facts)).toEqual(["open"]); // the row is from the first node
      await passUntil(a, isLanded(c));
      const count = async (table: string) =>
        (await c.driver.query(`SELECT COUNT(*) FROM ${table}`, []))[0]?.[0];
      expect(await count("submissions")).toBe(1n);
      await passUntil(a, async () => (await count("landed_tips")) === 1n);
      await passUntil(b, () => b.clock.nowNs() > a.clock.nowNs());
      expect(await count("landed_tips")).toBe(1n);
      // It has already landed there, so it is not sent again.
      await b.submit(facts);
      await c.submit(facts);
      expect([b.sent.length, c.outbound.length <= 1]).toEqual([1, true]);
      expect(await c.states(facts)).toEqual(["landed"]);
    });
  });

  describe("the tip floor of a node", () => {
    it("includes the tips that landed through the others", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      for (const node of [a, b]) await node.clock.advance(5 * minute);
      const facts = cluster.facts();
      await a.submit(facts);
      cluster.landed.set(facts.signature, 9n);
      await passUntil(a, async () => (await b.states(facts))[0] === "landed");
      const countLandedTips = "SELECT COUNT(*) FROM landed_tips";
      await passUntil(a, async () => (await b.driver.query(countLandedTips, []))[0]?.[0] === 1n);
      expect(b.tips.size).toBe(0);
      await b.clock.advance(9 * minute);
      await untilTrue(async () => b.tips.size === 1);
      await b.clock.advance(minute);
      const { count, percentiles } = b.tips.snapshot;
      expect([count, percentiles.p50]).toEqual([1, facts.tipLamports]);
    });
  });

  describe("a failed node", () => {
    it("leaves every tip that landed to the others, with the end of its submission", async () => {
      const cluster = await Cluster.open(databases);
      const a = await cluster.node("a");
      const [single, ...bundle] = [cluster.facts(), cluster.facts(), cluster.facts()] as const;
      await a.submit(single);
      await a.submit(...bundle);
      const all = [single, ...bundle];
      for (const { signature } of all) cluster.landed.set(signature, 9n);
      const reader = await cluster.node("reader");
      await passUntil(a, async () => {
        const states = await reader.states(...all);
        return states.every((state) => state === "landed");
      });
      await a.kill();
      const next = await cluster.node("next");
      expect(next.tips.size).toBe(3);
    });

    it("is replaced by another node, which completes its open submissions", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const [single, ...bundle] = [cluster.facts(), cluster.facts(), cluster.facts()] as const;
      await a.submit(single);
      await a.submit(...bundle);
      await b.clock.advance(minute);
      expect(await b.store.open()).toEqual([]); // as long as the node runs
      await a.kill();
      const all = [single, ...bundle].map(({ signature }) => signature).toSorted();
      await passUntil(b, () => b.sent.length >= 3);
      expect(b.sent.slice(0, 3).toSorted()).toEqual(all);
      expect(b.outbound.find(({ mode }) => mode === "bundle")?.transactions.length).toBe(2);
      for (const signature of all) cluster.landed.set(signature, 9n);
      await passUntil(b, async () =>
        (await b.states(single, ...bundle)).every((s) => s === "landed"),
      );
      await passUntil(b, async () => (await b.store.open()).length === 0);
      // The node is back: it has nothing to resume, and the lock was released.
      const repeated = await cluster.node("a");
      expect(repeated.pipeline.snapshot().open).toBe(0);
      expect(await repeated.states(single)).toEqual(["landed"]);
    });

    it("is replaced by exactly one of several nodes", async () => {
      const cluster = await Cluster.open(databases);
      const failedNode = await cluster.node("a");
      const others = [await cluster.node("b"), await cluster.node("c")];
      const all = Array.from({ length: 20 }, () => cluster.facts());
      for (const facts of all) await failedNode.submit(facts);
      await failedNode.kill();
      const open = () => others.map(({ pipeline }) => pipeline.snapshot().open);
      await untilTrue(async () => {
        await Promise.all(others.map(({ clock }) => clock.advance(200)));
        return open().reduce((sum, count) => sum + count, 0) >= all.length;
      });
      await Promise.all(others.map(({ clock }) => clock.advance(minute)));
      expect([Math.min(...open()), Math.max(...open())]).toEqual([0, 20]);
      const adopted = await Promise.all(others.map(({ store }) => store.open()));
      expect(adopted.map(({ length }) => length)).toEqual(open());
    });

    it("does not replace the state of a submission that another node also had", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const [open, ended] = [cluster.facts(), cluster.facts()];
      for (const facts of [open, ended]) {
        await a.submit(facts);
        await b.submit(facts);
      }
      cluster.landed.set(ended.signature, 9n);
      await passUntil(b, async () => (await b.states(ended))[0] === "landed");
      await a.kill();
      await passUntil(b, async () => {
        const records = await b.store.find(accountId, [ended.signature]);
        return records[0]?.state === "landed";
      });
      expect(b.pipeline.snapshot().open).toBe(1);
      cluster.landed.set(open.signature, 11n);
      await passUntil(b, async () => (await b.store.open()).length === 0);
      expect((await b.store.find(accountId, [open.signature]))[0]).toMatchObject({
        state: "landed",
        slot: 11n,
      });
    });

    it("leaves the rest of a bundle to be observed, but not sent", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const [known, other] = [cluster.facts(), cluster.facts()];
      await a.submit(known, other);
      await b.submit(known); // the account's word here
      await a.kill();
      await passUntil(b, () => b.pipeline.snapshot().open === 2);
      await b.clock.advance(minute);
      expect(b.sent).toContain(known.signature);
      expect(b.sent).not.toContain(other.signature);
      cluster.landed.set(other.signature, 9n);
      await passUntil(b, async () => (await b.states(other))[0] === "landed");
      expect(await b.states(known)).toEqual(["open"]);
    });

    it("does not change, after a disconnection, submissions that another node adopted", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const facts = cluster.facts();
      await a.submit(facts);
      cluster.notificationRelay.locks.clear(); // it lost its connection
      await passUntil(b, () => b.pipeline.snapshot().open === 1);
      cluster.landed.set(facts.signature, 9n);
      await passUntil(a, async () => (await a.states(facts))[0] === "landed");
      await passUntil(a, () => a.pipeline.snapshot().writer.dirty === 0);
      expect((await b.store.find(accountId, [facts.signature]))[0]?.state).toBe("open");
      await passUntil(b, async () => (await b.store.open()).length === 0);
      expect((await a.store.find(accountId, [facts.signature]))[0]?.state).toBe("landed");
    });

    it("is replaced even if the response of the database was lost", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const facts = cluster.facts();
      await a.submit(facts);
      await a.kill();
      b.driver.losesAnswer = true;
      await passUntil(b, () => b.logged.some((line) => line.includes("nobody knows")));
      expect(b.pipeline.snapshot().open).toBe(0);
      await passUntil(b, () => b.sent.length > 0);
      expect(b.sent[0]).toBe(facts.signature);
      expect(cluster.notificationRelay.locks.has("node a")).toBe(false);
    });

    it("had no name in older versions", async () => {
      const cluster = await Cluster.open(databases);
      const a = await cluster.node("a");
      const facts = cluster.facts();
      await a.submit(facts);
      await a.kill();
      const b = await cluster.node("b");
      const unnamed = { sql: "UPDATE submissions SET node = ''", params: [] };
      await b.driver.transaction([unnamed], "durable");
      await passUntil(b, () => b.sent.length > 0); // brought in while it runs
      expect(b.sent).toEqual([facts.signature]);
    });
  });

  describe("a key", () => {
    it("is rejected by every node after its revocation through one node", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const key = await a.makeKey();
      await untilTrue(async () => b.knows(key));
      const { length } = b.driver.queries;
      await a.submit(cluster.facts()); // nothing else causes a read of the keys
      expect(b.driver.queries.length).toBe(length);
      await a.keys.revokeKey(key.id, a.clock.nowNs());
      await untilTrue(async () => !b.knows(key));
    });

    it("stays valid while the database is unavailable, and is read again afterwards", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const [active, revoked] = [await a.makeKey(), await a.makeKey()];
      await untilTrue(async () => b.knows(revoked));
      b.driver.isAway = true;
      await a.keys.revokeKey(revoked.id, a.clock.nowNs());
      await b.clock.advance(minute);
      expect([b.knows(active), b.knows(revoked)]).toEqual([true, true]);
      b.driver.isAway = false;
      await b.clock.advance(second);
      await untilTrue(async () => !b.knows(revoked));
      expect(b.knows(active)).toBe(true);
    });
  });

  describe("a node with an unavailable database", () => {
    it("sends and reports from memory, rejects new submissions, and catches up", async () => {
      const cluster = await Cluster.open(databases);
      const [a, b] = [await cluster.node("a"), await cluster.node("b")];
      const [open, landing, other] = [cluster.facts(), cluster.facts(), cluster.facts()];
      await a.submit(open);
      await a.submit(landing);
      await b.submit(other);
      a.driver.isAway = true;
      const { length } = a.sent;
      await a.clock.advance(10 * second);
      expect(a.sent.length).toBeGreaterThan(length); // resends continue
      cluster.landed.set(landing.signature, 9n);
      await a.clock.advance(10 * second);
      expect(await a.states(open, landing)).toEqual(["open", "landed"]);
      await expect(a.states(other)).rejects.toMatchObject({ reason: "store_failed" });
      const refused = [cluster.facts(), cluster.facts(), cluster.facts()];
      const answers: string[] = [];
      for (const facts of refused) {
        await a.submit(facts).catch((error: Error) => answers.push(error.message));
      }
      expect(answers.length).toBe(3);
      expect(answers.at(-1)).toMatch(/^database .* not sent/);
      expect(a.sent).not.toContain(refused[2]?.signature);
      expect(await b.states(landing)).toEqual(["open"]);
      a.driver.isAway = false;
      await passUntil(a, async () => (await b.states(landing))[0] === "landed");
      await a.clock.advance(second);
      const [repeated] = refused;
      if (repeated) await a.submit(repeated);
      expect(await b.states(...refused)).toEqual(["open", undefined, undefined]);
    });
  });
});
