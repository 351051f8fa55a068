// The live feed: content, changes, access, and end.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { feedsPerAccountMax, sessionEndedCode } from "../../../src/platform/portal/live-feed.ts";
import { closing } from "../../support/closing.ts";
import { tipAddress } from "../../support/gateway/gateway.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";
import { Feed, PortalHarness, region, tier1Lamports } from "./harness.ts";

const customerTopics = [
  "connections",
  "coverage",
  "destinations",
  "service",
  "submissions",
  "tier",
  "tips",
];
const operatorTopics = [
  "allConnections",
  "allStreams",
  "fanOut",
  "problems",
  "routes",
  "sources",
  "verdicts",
  "workers",
];

/** A receiver that answers its challenges. */
async function receiver(): Promise<{ readonly address: string; readonly shreds: () => number }> {
  const socket = createSocket("udp4");
  let shreds = 0;
  socket.on("message", (packet, from) => {
    if (packet.length > 64) shreds++;
    else socket.send(packet, from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  closing({ close: () => void socket.close() });
  return { address: `127.0.0.1:${socket.address().port}`, shreds: () => shreds };
}

describe("a customer's feed", () => {
  it("starts with all of the customer's topics and never sends operator topics", async () => {
    const harness = await PortalHarness.open();
    const customer = harness.feed(await harness.cookie(await harness.key("ann")));
    const operator = harness.feed(
      await harness.cookie(await harness.key("ops", ["submit", "shreds", "operate"])),
    );
    await operator.has("problems");
    await operator.has("submissions");
    await customer.has("submissions");
    harness.log.warn("for operators");
    await operator.has("problems", ([first]) => first?.text === "for operators");
    const seconds = () => customer.counts["service"] ?? 0;
    const before = seconds();
    await until(() => seconds() > before + 1, "two more seconds");
    expect(Object.keys(customer.topics).toSorted()).toEqual(customerTopics);
    expect(Object.keys(operator.topics).toSorted()).toEqual(
      [...customerTopics, ...operatorTopics].toSorted(),
    );
    const { warnings: customerWarnings } = await customer.has("service");
    expect(customerWarnings).toEqual([]);
    const { warnings } = await operator.has("service");
    expect(warnings.join(" ")).toContain("AUTHENTICATION IS OFF");
    // Unchanged topics are not sent again.
    expect(customer.counts["tier"]).toBe(1);
  });

  it("contains the topics that the key's scopes allow", async () => {
    const harness = await PortalHarness.open();
    const streaming = harness.feed(await harness.cookie(await harness.key("bob", ["stream"])));
    expect(await streaming.has("streams")).toEqual({ streams: [], ended: [] });
    const feed = harness.feed(await harness.cookie(await harness.key("ann", ["read"])));
    await until(() => (feed.counts["service"] ?? 0) > 1, "a second");
    expect(Object.keys(feed.topics).toSorted()).toEqual(["coverage", "service", "tips"]);
  });

  it("follows the account's tier, destinations and sending, and no other account's", async () => {
    const harness = await PortalHarness.open();
    const [ann, bob] = [await harness.key("ann"), await harness.key("bob")];
    const annCookie = await harness.cookie(ann);
    const feed = harness.feed(annCookie);
    const bobs = harness.feed(await harness.cookie(bob));
    expect(await feed.has("service")).toMatchObject({
      deliveryRegions: [region],
      gatewayUrl: null,
      tipAddresses: [tipAddress],
      minimumTipLamports: 10_000,
      senderAddresses: expect.arrayContaining(["127.0.0.1"]),
    });
    const { tipProof, ...none } = await feed.has("tier");
    expect(none).toMatchObject({ isSold: true, tier: null, sumLamports: 0 });
    expect((await harness.call(annCookie, "getTier")).json.result.tipProof).toEqual(tipProof);
    expect(tipProof).toMatchObject({ account: ann.key.accountId });
    await harness.registerTip(ann, tier1Lamports);
    const { thresholds } = await feed.has("tier", ({ tier }) => tier === "tier-1");
    expect(thresholds).toMatchObject([{ missingLamports: 0 }, { missingLamports: 300_000_000 }]);

    const { address, shreds } = await receiver();
    await harness.call(annCookie, "addDestination", [{ region, address }]);
    await feed.has("destinations", ([one]) => one?.state === "active" && one.sending !== null);
    const sent = await harness.sendSlot();
    const destinations = await feed.has("destinations", ([one]) => one?.sending?.sent === sent);
    expect(destinations[0]?.sending).toMatchObject({
      tier: "tier-1",
      failed: 0,
      icmp: 0,
      icmpLastMinute: 0,
    });
    expect(destinations[0]?.sending?.sentPerSecond).toBeGreaterThan(0);
    await until(() => shreds() === sent, "the shreds themselves");
    await feed.has("destinations", ([one]) => one?.sending?.sentPerSecond === 0);
    const { slots, receiveToSend } = await feed.has("coverage", (view) => view.slots.length > 0);
    expect(slots[0]).toMatchObject({ dataShare: 1, share: 1 });
    expect(receiveToSend.count).toBe(sent);
    expect(receiveToSend.buckets.reduce((sum, { count }) => sum + count, 0)).toBe(sent);

    expect(await bobs.has("tier")).toMatchObject({ tier: null, sumLamports: 0 });
    expect(await bobs.has("destinations")).toEqual([]);
    expect(JSON.stringify(bobs.topics)).not.toContain(address);
  });
});

describe("submissions", () => {
  it("include earlier and new ones of the account only", async () => {
    const partner = createServer((_request, response) => response.end('{"result":"ok"}'));
    partner.listen(0, "127.0.0.1");
    await once(partner, "listening");
    closing({ close: () => void partner.close() });
    const bound = partner.address();
    const port = typeof bound === "object" ? bound?.port : 0;
    const route = { name: "partner", kind: "scheduler" as const, url: `http://127.0.0.1:${port}/` };
    const harness = await PortalHarness.open({ routes: [route] });
    const [ann, bob] = [await harness.key("ann"), await harness.key("bob")];
    const submit = async (amount: bigint): Promise<string> => {
      const params = [base64(tipping({ amount })), { encoding: "base64", skipPreflight: true }];
      const call = { jsonrpc: "2.0", id: 1, method: "sendTransaction", params };
      const body = JSON.stringify(call);
      return (await harness.ask("POST", `/relay?api-key=${ann.text}`, { body })).json.result;
    };
    const first = await submit(1n);
    const feed = harness.feed(await harness.cookie(ann));
    const bobs = harness.feed(await harness.cookie(bob));
    const [one] = await feed.has("submissions", (list) => list.length === 1);
    expect(one).toMatchObject({ signature: first, method: "sendTransaction", state: "open" });
    expect(one).toMatchObject({ tipLamports: 10_000, priorityFeeLamports: 0 });
    expect(one?.receivedAt).toMatch(/^\d{4}-/);
    expect(one?.landedMs).toBeNull();
    const second = await submit(2n);
    const list = await feed.has("submissions", (now) => now.length === 2);
    expect(list[0]).toMatchObject({ tipLamports: 10_000, priorityFeeLamports: 0 });
    expect(list.map(({ signature }) => signature)).toEqual([second, first]);
    // No route can land them after this time.
    harness.clock.move(600_000);
    await feed.has("submissions", (now) => now.every(({ state }) => state === "expired"));
    expect(await bobs.has("submissions")).toEqual([]);
  });
});

describe("an operator's feed", () => {
  it("shows sources, workers, verdicts and the fan-out with the relay's counters", async () => {
    const harness = await PortalHarness.open();
    const feed = harness.feed(await harness.cookie(await harness.key("ops", ["operate"])));
    await feed.has("sources");
    const sent = await harness.sendSlot();
    const [source] = await feed.has("sources", ([one]) => one?.received === sent);
    expect(source).toMatchObject({ name: "one", firstShare: 1, duplicateShare: 0, refused: 0 });
    const verdicts = await feed.has("verdicts", (all) =>
      all.some(({ name, count }) => name === "first" && count === sent),
    );
    expect(verdicts.length).toBeGreaterThan(10);
    const [worker] = await feed.has("workers");
    expect(worker?.highestSlot).toBeGreaterThan(0);
    expect(worker?.load).toBeLessThanOrEqual(1);
    expect(await feed.has("fanOut")).toEqual({ sentPerSecond: 0, destinations: [] });
    expect(await feed.has("routes")).toEqual([]);
  });
});

describe("an open feed", () => {
  it("ends within a second after key revocation, sign-out or the end of the session", async () => {
    const harness = await PortalHarness.open();
    const [ann, bob] = [await harness.key("ann"), await harness.key("bob")];
    const annsCookie = await harness.cookie(ann);
    const feeds = [harness.feed(annsCookie), harness.feed(await harness.cookie(bob))] as const;
    for (const feed of feeds) await feed.has("service");
    await harness.ask("DELETE", "/portal/api/session", { cookie: annsCookie });
    await harness.gateway.keys.revokeKey(bob.key.id, harness.clock.nowNs());
    await harness.gateway.refreshKeys();
    const before = feeds[1].counts["service"] ?? 0;
    for (const feed of feeds) {
      await until(() => feed.closeCode !== null, "the end");
      expect(feed.closeCode).toBe(sessionEndedCode);
    }
    expect(feeds[1].counts["service"] ?? 0).toBeLessThanOrEqual(before + 1);

    const third = harness.feed(await harness.cookie(ann));
    await third.has("service");
    harness.clock.move(13 * 3_600_000);
    await until(() => third.closeCode !== null, "the end");
    expect(third.closeCode).toBe(sessionEndedCode);
  });

  it("ends when it receives a message", async () => {
    const harness = await PortalHarness.open();
    const cookie = await harness.cookie(await harness.key("ann"));
    const codes: (number | null)[] = [];
    for (const message of ["{}", "[".repeat(1000), "x".repeat(2000), Buffer.from([1, 2])]) {
      const feed = harness.feed(cookie);
      await feed.has("service");
      feed.socket.send(message);
      await until(() => feed.closeCode !== null, "the end");
      codes.push(feed.closeCode);
    }
    expect(codes).toEqual([1008, 1008, 1009, 1003]);
    const still = harness.feed(cookie);
    await still.has("service");
  });

  it("is refused without a session, from another page, or beyond the account's limit", async () => {
    const harness = await PortalHarness.open();
    const cookie = await harness.cookie(await harness.key("ann"));
    const refused = async (headers: Readonly<Record<string, string>>): Promise<number> => {
      const feed = closing(new Feed(harness.host, headers));
      await until(() => feed.status !== null, "a refusal");
      return feed.status ?? 0;
    };
    const { origin } = harness;
    expect(await refused({ origin })).toBe(401);
    expect(await refused({ origin, cookie: "shredway_session=none" })).toBe(401);
    expect(await refused({ cookie })).toBe(403);
    expect(await refused({ cookie, origin: "http://evil.example" })).toBe(403);
    expect(await refused({ cookie, origin: "https://127.0.0.1" })).toBe(403);
    const feeds = Array.from({ length: feedsPerAccountMax }, () => harness.feed(cookie));
    for (const feed of feeds) await feed.has("service");
    expect(await refused({ cookie, origin })).toBe(429);
    const other = harness.feed(await harness.cookie(await harness.key("bob")));
    await other.has("service");
    feeds[0]?.close();
    await until(() => feeds[0]?.closeCode !== null, "one that goes");
    await harness.feed(cookie).has("service");
  });
});
