// Calls of the page: every method with the key's scopes and limits, for its own account only.

import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { gatewayMethods } from "../../../src/platform/portal/calls.ts";
import { databaseFileName } from "../../../src/platform/store/data-folder.ts";
import { closing } from "../../support/closing.ts";
import { UdpReceiver } from "../../support/network/udp-receiver.ts";
import { Files } from "../store/files.ts";
import { PortalHarness, region, tier1Lamports } from "./harness.ts";

const files = new Files();
afterEach(() => files.clean());

const signature = "1".repeat(64);

describe("the gateway's methods", () => {
  it("return the same results as over JSON-RPC and exclude submissions", async () => {
    const harness = await PortalHarness.open();
    const key = await harness.key("ann");
    const cookie = await harness.cookie(key);
    await harness.registerTip(key, tier1Lamports);
    const receiver = closing(await UdpReceiver.open());
    const added = await harness.call(cookie, "addDestination", [
      { region, address: receiver.address },
    ]);
    expect(added.json.result).toMatchObject({ region, address: receiver.address });
    const { id } = added.json.result;
    const params: Record<string, unknown[]> = {
      getTransactionStatus: [signature],
      challengeDestination: [id],
      proveDestination: [id, "0".repeat(32)],
      addDestination: [{ region, address: receiver.address }],
      removeDestination: ["d_000000000000"],
      getTierHistory: [{ limit: 5 }],
    };
    // Portal and gateway return the same results and the same refusals.
    for (const method of gatewayMethods.filter((name) => !name.startsWith("challenge"))) {
      const given = params[method] ?? [];
      const portal = await harness.call(cookie, method, given);
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: given });
      const gateway = await harness.ask("POST", `/relay?api-key=${key.text}`, { body });
      if (portal.json.result !== undefined && method !== "getTipAccounts") {
        expect(portal.json.result).toEqual(gateway.json.result);
      }
      const { error } = portal.json;
      expect(error?.reason).toEqual(gateway.json.error?.data.reason);
    }
    expect((await harness.call(cookie, "getTier")).json.result.tier).toBe("tier-1");
    expect((await harness.call(cookie, "getTipAccounts")).json.result).toHaveLength(1);
    const unproved = await harness.call(cookie, "proveDestination", [id, "0".repeat(32)]);
    expect([unproved.status, unproved.json.error.reason]).toEqual([400, "proof_refused"]);
    expect((await harness.call(cookie, "removeDestination", [id])).json).toEqual({ result: true });
    for (const method of ["sendTransaction", "getBalance", "getHealth", "constructor", ""]) {
      const refused = await harness.call(cookie, method, []);
      expect([refused.status, refused.json.error.reason]).toEqual([404, "method_unknown"]);
    }
  });

  it("require the key's scopes, count against its limit, and refuse invalid calls", async () => {
    const harness = await PortalHarness.open();
    // So few calls a second that a busy machine makes more.
    const limits = { requestsPerSecond: 1, burst: 50 };
    const cookie = await harness.cookie(await harness.key("ann", ["read"], limits));
    const refused = await harness.call(cookie, "getTier");
    expect([refused.status, refused.json.error.reason]).toEqual([403, "scope_missing"]);
    for (const [body, status] of [
      ["[]", 400],
      ['{"method":7}', 400],
      [`{"method":"getTier","params":${"[".repeat(100)}`, 400],
      ["\u0000", 400],
    ] as const) {
      const answer = await harness.ask("POST", "/portal/api/call", { cookie, body });
      expect(answer.status).toBe(status);
    }
    const none = await harness.call("shredway_session=none", "getTier");
    expect([none.status, none.json.error.reason]).toEqual([401, "unauthorized"]);
    const answers = await Promise.all(
      Array.from({ length: 150 }, () => harness.call(cookie, "getRegions")),
    );
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThan(0);
    expect(limited[0]?.header("retry-after")).not.toBe("");
  });

  it("are limited to the own account", async () => {
    const harness = await PortalHarness.open();
    const [ann, bob] = [await harness.key("ann"), await harness.key("bob")];
    const [annCookie, bobCookie] = [await harness.cookie(ann), await harness.cookie(bob)];
    await harness.registerTip(ann, tier1Lamports);
    const receiver = closing(await UdpReceiver.open());
    const { address } = receiver;
    const added = await harness.call(annCookie, "addDestination", [{ region, address }]);
    const { id } = added.json.result;
    expect((await harness.call(bobCookie, "getDestinations")).json.result).toEqual([]);
    expect((await harness.call(bobCookie, "getRegistrations")).json.result).toEqual([]);
    expect((await harness.call(bobCookie, "getTier")).json.result.sumLamports).toBe(0);
    expect((await harness.call(bobCookie, "getTierHistory")).json.result).toEqual([]);
    for (const [method, params] of [
      ["removeDestination", [id]],
      ["challengeDestination", [id]],
      ["proveDestination", [id, "0".repeat(32)]],
    ] as const) {
      const refused = await harness.call(bobCookie, method, params);
      expect([refused.status, refused.json.error.reason]).toEqual([404, "destination_unknown"]);
    }
    const keys = (await harness.call(bobCookie, "getKeys")).json.result;
    expect(keys.map((one: { id: string }) => one.id)).toEqual([bob.key.id]);
    const revoked = await harness.call(bobCookie, "revokeKey", { id: ann.key.id });
    expect([revoked.status, revoked.json.error.reason]).toEqual([404, "key_unknown"]);
    expect((await harness.call(annCookie, "getDestinations")).json.result).toHaveLength(1);
  });
});

describe("keys", () => {
  it("that the node cannot read are listed for their account, by their id alone", async () => {
    const harness = await PortalHarness.open();
    const cookie = await harness.cookie(await harness.key("ann"));
    const edited = await harness.key("ann");
    const revoked = await harness.key("ann");
    const other = await harness.cookie(await harness.key("bob"));
    const unusable = async (of: string) => (await harness.call(of, "getUnusableKeys")).json;
    expect(await unusable(cookie)).toEqual({ result: [] });
    await harness.gateway.keys.revokeKey(revoked.key.id, harness.clock.nowNs());
    const path = join(harness.directory, databaseFileName);
    const driver = await files.driver({ path });
    const params = [edited.key.id, revoked.key.id];
    const sql = "UPDATE api_keys SET scopes = 'private-text' WHERE id IN ($1, $2)";
    await driver.transaction([{ sql, params }], "durable");
    expect(await unusable(cookie)).toEqual({ result: [{ id: edited.key.id }] });
    expect(await unusable(other)).toEqual({ result: [] });
    const listed = (await harness.call(cookie, "getKeys")).json.result;
    expect(listed).toHaveLength(1);
  });

  it("are listed without their texts, rotated in place, and revoked", async () => {
    const harness = await PortalHarness.open();
    const own = await harness.key("ann", ["submit", "shreds"], { label: "office" });
    const small = await harness.key("ann", ["submit"]);
    const cookie = await harness.cookie(own);
    const other = await harness.cookie(own);
    const list = async () => (await harness.call(cookie, "getKeys")).json.result;
    expect(await list()).toMatchObject([
      { id: small.key.id, isOwn: false, state: "active" },
      { id: own.key.id, isOwn: true, label: "office", scopes: ["submit", "shreds"] },
    ]);
    const limit = { requestsPerSecond: 50, burst: 100, lastUsedAt: null };
    expect(await list()).toMatchObject([limit, limit]);
    await harness.ask("POST", `/relay?api-key=${small.text}`, { body: "{}" });
    expect(await list()).toMatchObject([
      { id: small.key.id, lastUsedAt: expect.stringMatching(/^\d{4}-/) },
      { id: own.key.id, lastUsedAt: null },
    ]);
    const session = await harness.ask("GET", "/portal/api/session", { cookie });
    expect(session.json.key).toMatchObject({ requestsPerSecond: 50, burst: 100 });

    const created = (await harness.call(cookie, "rotateKey", { overlapHours: 1 })).json.result;
    expect(created.text).toMatch(/^sw_/);
    expect(created.key).toMatchObject({ isOwn: true, label: "office", state: "active" });
    expect(await list()).toMatchObject([
      { id: created.key.id, isOwn: true },
      { id: small.key.id },
      { id: own.key.id, isOwn: false, state: "expiring" },
    ]);
    // A session of the old key cannot rotate it again.
    const repeated = await harness.call(other, "rotateKey");
    expect([repeated.status, repeated.json.error.reason]).toEqual([400, "value_invalid"]);
    harness.clock.move(3_600_000 + 1000);
    expect((await harness.call(other, "getKeys")).status).toBe(401);
    expect((await harness.call(cookie, "getKeys")).status).toBe(200);
    expect((await harness.signIn(created.text)).status).toBe(200);

    const revoked = await harness.call(cookie, "revokeKey", [{ id: small.key.id }]);
    expect(revoked.json).toEqual({ result: true });
    expect((await harness.signIn(small.text)).status).toBe(401);
    const revokedKey = (await harness.gateway.keys.keys()).find(({ id }) => id === small.key.id);
    expect(revokedKey?.revokedNs).not.toBeNull();
    const texts = harness.lines.map((line) => JSON.stringify(line)).join("\n");
    expect(texts).toContain("portal: key rotated");
    expect(texts).toContain("portal: key revoked");
    for (const text of [own.text, small.text, created.text]) expect(texts).not.toContain(text);
    expect(JSON.stringify(await list())).not.toContain(created.text);
  });

  it("are rotated by one of several sessions at the same moment", async () => {
    const harness = await PortalHarness.open();
    const own = await harness.key("ann", ["submit"]);
    const cookies = [
      await harness.cookie(own),
      await harness.cookie(own),
      await harness.cookie(own),
    ];
    const answers = await Promise.all(cookies.map((cookie) => harness.call(cookie, "rotateKey")));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 404, 404]);
    expect(await harness.gateway.keys.keys()).toHaveLength(2);
  });

  it("with more scopes than the session's cannot be revoked; invalid overlaps are refused", async () => {
    const harness = await PortalHarness.open();
    const large = await harness.key("ann", ["submit", "batch"]);
    const cookie = await harness.cookie(await harness.key("ann", ["submit"]));
    const refused = await harness.call(cookie, "revokeKey", { id: large.key.id });
    expect([refused.status, refused.json.error.reason]).toEqual([403, "scope_missing"]);
    expect((await harness.signIn(large.text)).status).toBe(200);
    for (const overlapHours of [-1, 1.5, 8761, "1", 1e300]) {
      const answer = await harness.call(cookie, "rotateKey", { overlapHours });
      expect(answer.json.error.reason).toBe("value_invalid");
    }
    for (const params of [{}, { id: 7 }, { id: "k_none" }, [7], 7]) {
      const answer = await harness.call(cookie, "revokeKey", params);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
    }
  });
});
