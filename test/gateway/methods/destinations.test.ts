// The methods of tiers and destinations over real HTTP with real destinations.

import { describe, expect, it } from "vitest";
import type { ApiKey } from "../../../src/gateway/accounts/types.ts";
import type { ShredSales } from "../../../src/gateway/methods/dependencies.ts";
import type { TierEvent, Tiers, TierView } from "../../../src/shreds/tiers/types.ts";
import { endpoint, Harness, hour, second } from "../../shreds/destinations/harness.ts";
import { type Answer, apiKey, GatewayRun, scoped } from "../../support/gateway/gateway.ts";

const sol = 1_000_000_000n;

/** A stub for tiers whose state the test sets. */
class StandInTiers implements Tiers {
  present: TierView = { tier: null, sumLamports: 0n, graceSinceMs: null, graceEndsMs: null };
  requests: unknown[] = [];
  events: TierEvent[] = [];

  view(accountId: string): TierView {
    this.requests.push(accountId);
    return this.present;
  }
  tierOf = () => this.present.tier;
  onChange = () => () => {};
  nowMs = () => 0;
  history(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]> {
    this.requests.push([accountId, before, limit]);
    return Promise.resolve(this.events);
  }
}

interface Opened {
  readonly run: GatewayRun;
  readonly harness: Harness;
  readonly tiers: StandInTiers;
}

async function open(): Promise<Opened> {
  const harness = await Harness.open();
  const tiers = new StandInTiers();
  const shreds: ShredSales = {
    registrar: {
      register: () => Promise.resolve([]),
      ofAccount: () => Promise.resolve([]),
    },
    tiers,
    tierRules: () => ({
      tiers: [
        { name: "tier-1", thresholdLamports: sol / 5n },
        { name: "tier-2", thresholdLamports: sol / 2n },
      ],
      windowMs: 24 * hour,
      graceMs: 24 * hour,
    }),
    destinations: harness.destinations,
  };
  const run = await GatewayRun.open({}, { shreds });
  const keys: [string, ApiKey][] = [
    scoped("submitter", "submit", "batch", "read"),
    ["other", apiKey("other", { accountId: "a_2", accountName: "two", scopes: ["shreds"] })],
  ];
  for (const [text, key] of keys) run.keys.set(text, key);
  return { run, harness, tiers };
}

function resultOf({ body }: Answer): unknown {
  expect(body).toHaveProperty("result");
  return body && typeof body === "object" && "result" in body ? body.result : undefined;
}

const refused = (code: number, reason: string) => ({
  error: { code, message: expect.stringMatching(`^${reason}: `), data: { reason } },
});

const shown = {
  id: expect.stringMatching(/^d_[0-9a-f]{12}$/),
  region: "here",
  address: endpoint,
  state: "unproved",
  createdAt: "2026-01-01T00:00:00.000Z",
  provedAt: null,
  provedBy: null,
  proofEndsAt: null,
  pausedAt: null,
  pauseReason: null,
  refusal: null,
  recovered: false,
  nextChallengeAt: "2026-01-01T00:00:02.000Z",
  advice: expect.stringMatching(/^answer the challenge/),
};

async function added(run: GatewayRun): Promise<string> {
  const answer = await run.call("addDestination", [{ region: "here", address: endpoint }]);
  const result = resultOf(answer);
  expect(result).toEqual(shown);
  return result && typeof result === "object" && "id" in result ? String(result.id) : "";
}

describe("destinations", () => {
  it("can be added, challenged, verified, listed and removed", async () => {
    const { run, harness } = await open();
    expect(resultOf(await run.call("getDestinations"))).toEqual([]);
    const id = await added(run);
    expect(harness.sent.length).toBe(1);
    await harness.clock.advance(11 * second);
    expect(resultOf(await run.call("challengeDestination", [id]))).toEqual({
      ...shown,
      nextChallengeAt: "2026-01-01T00:00:13.000Z",
    });
    expect(harness.sent.length).toBe(4);
    const proved = {
      ...shown,
      nextChallengeAt: "2026-01-01T12:00:11.000Z",
      advice: null,
      state: "active",
      provedAt: "2026-01-01T00:00:11.000Z",
      provedBy: "call",
      proofEndsAt: "2026-01-02T00:00:11.000Z",
    };
    expect(resultOf(await run.call("proveDestination", [id, harness.lastToken]))).toEqual(proved);
    expect(harness.active()).toEqual([endpoint]);
    expect(resultOf(await run.call("getDestinations"))).toEqual([proved]);
    await harness.destinations.pause(id);
    expect(resultOf(await run.call("getDestinations"))).toMatchObject([
      {
        state: "paused",
        pausedAt: "2026-01-01T00:00:11.000Z",
        pauseReason: "operator",
        nextChallengeAt: null,
        advice: "the operator has paused it; ask the operator",
      },
    ]);
    expect(resultOf(await run.call("removeDestination", [id]))).toBe(true);
    expect(resultOf(await run.call("getDestinations"))).toEqual([]);
    expect(run.countedKeys.length).toBe(8); // each call is counted
  });

  it("say how to resume after an absence, and when the next challenge comes", async () => {
    const { run, harness } = await open();
    const id = await added(run);
    await harness.clock.advance(hour);
    expect(resultOf(await run.call("getDestinations"))).toMatchObject([
      {
        nextChallengeAt: null,
        advice: expect.stringMatching(/request a challenge at once with challengeDestination/),
      },
    ]);
    await run.call("challengeDestination", [id]);
    await run.call("proveDestination", [id, harness.lastToken]);
    for (let i = 0; i < 8; i++) {
      harness.destinations.unreachable(endpoint, harness.nowMs);
      await harness.clock.advance(2 * second);
    }
    const [paused] = harness.destinations.list();
    const nextMs = (paused?.pausedMs ?? 0) + 5 * second;
    const nextChallengeAt = new Date(nextMs).toISOString();
    expect(resultOf(await run.call("getDestinations"))).toMatchObject([
      {
        state: "paused",
        pauseReason: "icmp_unreachable",
        nextChallengeAt,
        advice:
          "no receiver was listening; start the receiver, then request a challenge at once with " +
          `challengeDestination; the next one follows without a request at ${nextChallengeAt}`,
      },
    ]);
    await run.call("challengeDestination", [id]);
    await run.call("proveDestination", [id, harness.lastToken]);
    expect(resultOf(await run.call("getDestinations"))).toMatchObject([
      { state: "active", advice: null },
    ]);
  });

  it("are refused with reasons", async () => {
    const { run, harness } = await open();
    const id = await added(run);
    const cases: [string, unknown[], number, string][] = [
      ["addDestination", [], -32602, "value_invalid"],
      ["addDestination", [{ region: "here" }], -32602, "value_invalid"],
      ["addDestination", [{ region: 1, address: endpoint }], -32602, "value_invalid"],
      ["addDestination", ["here", endpoint], -32602, "value_invalid"],
      [
        "addDestination",
        [{ region: "here", address: "127.0.0.1:9001" }],
        -32602,
        "address_invalid",
      ],
      ["addDestination", [{ region: "here", address: "a" }], -32602, "address_invalid"],
      [
        "addDestination",
        [{ region: "mars", address: "5.6.7.9:9001" }],
        -32602,
        "destination_refused",
      ],
      ["addDestination", [{ region: "here", address: endpoint }], -32602, "destination_refused"],
      ["removeDestination", [], -32602, "value_invalid"],
      ["removeDestination", ["d_none"], -32602, "destination_unknown"],
      ["challengeDestination", ["d_none"], -32602, "destination_unknown"],
      ["updateDestination", [id], -32602, "value_invalid"],
      ["updateDestination", [id, {}], -32602, "value_invalid"],
      ["updateDestination", [id, { recovered: "yes" }], -32602, "value_invalid"],
      ["updateDestination", ["d_none", { recovered: true }], -32602, "destination_unknown"],
      ["proveDestination", [id], -32602, "value_invalid"],
      ["proveDestination", [id, "0".repeat(32)], -32602, "proof_refused"],
      ["proveDestination", [id, "x"], -32602, "proof_refused"],
      ["proveDestination", ["d_none", harness.lastToken], -32602, "destination_unknown"],
    ];
    for (const [method, params, code, reason] of cases) {
      const { body, status } = await run.call(method, params);
      expect(body).toMatchObject(refused(code, reason));
      expect(status).toBe(200);
    }
    harness.store.isDown = true;
    const down = await run.call("proveDestination", [id, harness.lastToken]);
    expect(down.body).toMatchObject(refused(-32603, "store_failed"));
    expect(harness.active()).toEqual([]);
  });

  it("of another account are unknown, even with the correct token", async () => {
    const { run, harness } = await open();
    const id = await added(run);
    const path = "/relay?api-key=other";
    expect(resultOf(await run.call("getDestinations", [], path))).toEqual([]);
    for (const [method, ...params] of [
      ["removeDestination", id],
      ["challengeDestination", id],
      ["proveDestination", id, harness.lastToken],
    ] as const) {
      const { body } = await run.call(method, params, path);
      expect(body).toMatchObject(refused(-32602, "destination_unknown"));
    }
    expect(harness.active()).toEqual([]);
  });

  it("have a limit of challenges", async () => {
    const { run, harness } = await open();
    const id = await added(run);
    for (let i = 0; i < 5; i++) {
      await harness.clock.advance(11 * second);
      await run.call("challengeDestination", [id]);
    }
    await harness.clock.advance(11 * second);
    const { body, status, headers } = await run.call("challengeDestination", [id]);
    expect(body).toMatchObject({
      error: { code: -32005, data: { reason: "rate_limited", retryAfterSeconds: 3534 } },
    });
    expect(status).toBe(429);
    expect(headers.get("retry-after")).toBe("3534");
  });
});

describe("getTier", () => {
  it("returns the tier, the missing lamports and the grace period", async () => {
    const { run, tiers } = await open();
    await added(run);
    const tipProof = {
      account: expect.stringMatching(/^a_/),
      memo: expect.stringMatching(/^shredway:a_/),
      referenceKey: expect.stringMatching(/^\w{32,44}$/),
    };
    const fields = { windowHours: 24, destinations: 1, tipProof };
    expect(resultOf(await run.call("getTier"))).toEqual({
      ...fields,
      tier: null,
      sumLamports: 0,
      thresholds: [
        { tier: "tier-1", thresholdLamports: 200_000_000, missingLamports: 200_000_000 },
        { tier: "tier-2", thresholdLamports: 500_000_000, missingLamports: 500_000_000 },
      ],
      grace: null,
    });
    const sinceMs = Date.parse("2026-01-01T12:00:00.001Z");
    tiers.present = {
      tier: "tier-2",
      sumLamports: 240_000_000n,
      graceSinceMs: sinceMs,
      graceEndsMs: sinceMs + 24 * hour,
    };
    expect(resultOf(await run.call("getTier"))).toEqual({
      ...fields,
      tier: "tier-2",
      sumLamports: 240_000_000,
      thresholds: [
        { tier: "tier-1", thresholdLamports: 200_000_000, missingLamports: 0 },
        { tier: "tier-2", thresholdLamports: 500_000_000, missingLamports: 260_000_000 },
      ],
      grace: { since: "2026-01-01T12:00:00.001Z", ends: "2026-01-02T12:00:00.001Z" },
    });
    expect(tiers.requests).toEqual(["a_1", "a_1"]);
  });
});

describe("getTierHistory", () => {
  const event = (fields: Partial<TierEvent>): TierEvent => ({
    accountId: "a_1",
    number: 1n,
    atMs: Date.parse("2026-01-01T12:00:00.001Z"),
    kind: "upgraded",
    from: null,
    to: "tier-1",
    sumLamports: 250_000_000n,
    ...fields,
  });

  it("returns the events with times and texts", async () => {
    const { run, tiers } = await open();
    tiers.events = [
      event({ number: 4n, kind: "downgraded", from: "tier-1", to: null, sumLamports: 0n }),
      event({ number: 3n, kind: "grace_cancelled", from: "tier-1" }),
      event({ number: 2n, kind: "grace_started", from: "tier-1", sumLamports: 1n }),
      event({}),
    ];
    const result = resultOf(await run.call("getTierHistory", [{ before: 5, limit: 4 }]));
    expect(result).toMatchObject([
      {
        number: 4,
        kind: "downgraded",
        text: expect.stringMatching(/^downgraded from tier-1 to no tier/),
      },
      {
        number: 3,
        kind: "grace_cancelled",
        text: expect.stringContaining("tier-1 is reached again"),
      },
      {
        number: 2,
        kind: "grace_started",
        text: expect.stringContaining("tier-1 requires more tips"),
      },
      {
        number: 1,
        at: "2026-01-01T12:00:00.001Z",
        kind: "upgraded",
        from: null,
        to: "tier-1",
        sumLamports: 250_000_000,
        text: "upgraded from no tier to tier-1; tips in the window: 250000000 lamports",
      },
    ]);
    await run.call("getTierHistory");
    await run.call("getTierHistory", [null], "/relay?api-key=other");
    expect(tiers.requests).toEqual([
      ["a_1", 5n, 4],
      ["a_1", null, 100],
      ["a_2", null, 100],
    ]);
  });

  it.each([{ limit: 0 }, { limit: 101 }, { limit: "5" }, { before: -1 }, { before: 1.5 }, [1]])(
    "rejects %j",
    async (given) => {
      const { run } = await open();
      const { body } = await run.call("getTierHistory", [given]);
      expect(body).toMatchObject(refused(-32602, "value_invalid"));
    },
  );
});

const names = [
  "getTier",
  "getTierHistory",
  "getDestinations",
  "addDestination",
  "removeDestination",
  "challengeDestination",
  "proveDestination",
];

describe("each of these methods", () => {
  it.each(names)("%s requires the scope and a service that sells shreds", async (name) => {
    const { run } = await open();
    const without = await run.call(name, [], "/relay?api-key=submitter");
    expect(without.body).toMatchObject(refused(-32600, "scope_missing"));
    const noKey = await run.call(name, [], "/relay");
    expect(noKey.status).toBe(401);
    const off = await (await GatewayRun.open()).call(name, []);
    expect(off.body).toMatchObject(refused(-32601, "registration_off"));
  });
});
