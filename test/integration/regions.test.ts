// Two regions with 90 ms between them: a tip registered in one gives shreds in both, and a disconnected
// region continues with its state.

import { beforeEach, describe, expect, it } from "vitest";
import { closing } from "../support/closing.ts";
import {
  eventually,
  hasRegions,
  type Region,
  type RegionReceiver,
  Regions,
  shredTip,
  tier1Lamports,
  tier2Lamports,
} from "../support/gateway/regions.ts";
import { until } from "../support/network/udp-receiver.ts";

const sorted = (packets: readonly Uint8Array[]): string[] =>
  packets.map((packet) => Buffer.from(packet).toString("base64")).toSorted();

describe.skipIf(!hasRegions)("two regions with 90 ms between them", { timeout: 300_000 }, () => {
  let regions: Regions;

  beforeEach(async () => {
    regions = closing(await Regions.open());
  });

  const tierBecomes = (region: Region, key: string, tier: string | null) =>
    eventually(async () => expect(await region.tierOf(key)).toBe(tier));

  /** Each receives every shred of a new slot once, byte for byte. */
  async function expectFeedAt(receivers: readonly RegionReceiver[]): Promise<void> {
    for (const receiver of receivers) receiver.clear();
    const packets = regions.nextShreds();
    for (const region of regions.all) region.send(packets);
    await until(
      () => receivers.every((one) => one.packets.length >= packets.length),
      "every shred at every receiver",
    );
    for (const receiver of receivers) expect(sorted(receiver.packets)).toEqual(sorted(packets));
  }

  async function receiversOf(key: string): Promise<RegionReceiver[]> {
    const { first, second } = regions;
    return [await first.receiver(key), await second.receiver(key)];
  }

  it("share tips, tiers and keys", async () => {
    const { first, second, all } = regions;
    const key = await regions.customer("ann");
    const receivers = await receiversOf(key);
    const answer = await first.register(key, shredTip(tier1Lamports));
    expect(answer).toMatchObject({ accepted: [expect.any(String)] });
    for (const region of all) await tierBecomes(region, key, "tier-1");
    await expectFeedAt(receivers);

    const other = await regions.customer("bob");
    const half = shredTip(tier1Lamports / 2);
    const answers = await Promise.all(all.map((region) => region.register(other, half)));
    expect(answers.flatMap(({ accepted }) => accepted)).toHaveLength(1);
    expect(answers.flatMap(({ rejected }) => rejected ?? [])).toMatchObject([
      { reason: "registered_before" },
    ]);
    await second.register(other, shredTip(tier1Lamports / 2 - 1));
    for (const region of all) {
      await eventually(async () => {
        const view = JSON.stringify(await region.gateway(other).call("getTier"));
        expect(view).toContain(String(tier1Lamports - 1));
      });
      expect(await region.tierOf(other)).toBe(null);
    }

    await regions.revokeKeysOf("ann");
    for (const region of all) {
      await eventually(async () => {
        const answered = await fetch(region.url("/relay", key), { method: "POST", body: "{}" });
        expect(answered.status).toBe(401);
      });
    }
  });

  it("continue when the tier leader is killed", async () => {
    const { first, second } = regions;
    const key = await regions.customer("ann");
    const receiver = await second.receiver(key);
    await first.kill();
    const answer = await second.register(key, shredTip(tier1Lamports));
    expect(answer).toMatchObject({ accepted: [expect.any(String)] });
    await tierBecomes(second, key, "tier-1");
    const packets = regions.nextShreds();
    second.send(packets);
    await until(() => receiver.packets.length >= packets.length, "every shred");
    expect(sorted(receiver.packets)).toEqual(sorted(packets));
    await first.start();
    await tierBecomes(first, key, "tier-1");
  });

  it("relay shreds while the database is unreachable, reject tips, and catch up", async () => {
    const { first, second, all, database } = regions;
    const key = await regions.customer("ann");
    const receivers = await receiversOf(key);
    await second.register(key, shredTip(tier1Lamports));
    for (const region of all) await tierBecomes(region, key, "tier-1");
    await database.kill();
    await expectFeedAt(receivers);
    const late = shredTip(tier2Lamports);
    for (const region of all) {
      const answer = await region.register(key, late);
      expect(answer).toMatchObject({ accepted: [], rejected: [{ reason: "store_failed" }] });
      expect((await fetch(region.url("/tip_floor", key))).status).toBe(200);
    }
    await database.start();
    await eventually(async () => {
      const answer = JSON.stringify(await first.register(key, late));
      expect(answer).not.toContain("store_failed");
    });
    for (const region of all) await tierBecomes(region, key, "tier-2");
    await expectFeedAt(receivers);
  });
});
