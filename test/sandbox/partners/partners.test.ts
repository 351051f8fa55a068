// Routes of each kind to the sandbox's partners: real execution and real errors.

import { type Keypair, PublicKey, SystemProgram, TransactionInstruction } from "@solana/web3.js";
import { beforeEach, describe, expect, it } from "vitest";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import type { Route, RouteEvent } from "../../../src/gateway/submission/types.ts";
import { SandboxPartners } from "../../../src/sandbox/partners/partners.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { TestOutbound } from "../../support/gateway/partner.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  carol,
  transferOf,
  wallet,
} from "../../support/transactions/chain.ts";
import { factsOf } from "../../support/transactions/facts.ts";

const tipAccount = wallet(77);
const sol = 1_000_000_000n;

let run: ChainRun;
let clock: ManualClock;
let partners: SandboxPartners;

beforeEach(async () => {
  clock = new ManualClock();
  run = await ChainRun.open({
    funded: new Map([alice, bob, carol, tipAccount].map((pair) => [addressOf(pair), 100n * sol])),
  });
  run.slots();
  partners = closing(
    await SandboxPartners.open(run.chain, clock, { tipAddresses: [addressOf(tipAccount)] }),
  );
});

/** The route of a configuration with the partners' own values. */
function open(name: string, change: { format?: "base64" | "json-rpc"; path?: string } = {}): Route {
  const inputs = partners.routeConfigs().map((input) => {
    if (input.name !== name || change.format === undefined) return input;
    return {
      ...input,
      format: change.format,
      url: `${partners.scheduler.url}${change.path ?? "/"}`,
    };
  });
  const { routes } = completeConfig({
    relay: { shredVersion: 1, tiers: ["tier-1"], authentication: "off" },
    routes: inputs,
  });
  const config = routes.find((one) => one.name === name);
  if (!config) throw new Error(`expected a route ${name}`);
  return closing(openRoute(config, { clock }));
}

async function send(
  route: Route,
  wires: readonly Uint8Array[],
  options: ConstructorParameters<typeof TestOutbound>[1] = {},
): Promise<RouteEvent> {
  const outbound = new TestOutbound(
    wires.map((wire) => factsOf(wire)),
    options,
  );
  expect(route.offer(outbound)).toBe(true);
  return outbound.ended;
}

function landed(wire: Uint8Array): boolean {
  return run.chain.status(factsOf(wire).signature)?.err === null;
}

let tips = 0n;
function tipped(from: Keypair, to: Keypair, lamports = 5n, tip = 10_000n): Uint8Array {
  const instructions = [transferOf(from, to, lamports)];
  if (tip > 0n) instructions.push(transferOf(from, tipAccount, tip + ++tips));
  return run.legacy(instructions, [from]);
}

function overdrawn(): Uint8Array {
  return tipped(alice, bob, 1000n * sol);
}

async function post(
  url: string,
  method: string,
  params: unknown[],
): Promise<{
  result?: unknown;
  error?: { code: number; message: string };
}> {
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  expect(response.status).toBe(200);
  return JSON.parse(await response.text());
}

describe("routes of the sandbox", () => {
  it("reach every partner; the alternative partner's has a higher tip", () => {
    const altPartners = run.chain.validators().filter(({ isAltPartner }) => isAltPartner);
    expect(altPartners.length).toBeGreaterThan(0);
    expect(
      partners.routeConfigs().map(({ name, minimumTipLamports = 0 }) => [name, minimumTipLamports]),
    ).toEqual([
      ["swqos", 0],
      ["block-builder", 0],
      ["scheduler", 0],
      ["alt-partner", 100_000],
    ]);
    expect(open("alt-partner").capabilities.leaders).toEqual(
      new Set(altPartners.map(({ identity }) => identity)),
    );
  });
});

describe("single transactions", () => {
  it("land through a SWQoS partner, alone and in arrays", async () => {
    const route = open("swqos");
    const wires = Array.from({ length: 40 }, () => tipped(alice, bob));
    const ends = await Promise.all(wires.map((wire) => send(route, [wire])));
    expect(new Set(ends.map(({ kind }) => kind))).toEqual(new Set(["acknowledged"]));
    run.slots(2);
    expect(wires.every(landed)).toBe(true);
    expect(partners.swqos.counts.transactions).toBe(40);
    expect(partners.swqos.counts.requests).toBeLessThan(40);
  });

  it.each([
    ["bytes", undefined],
    ["base64", "/base64"],
    ["json-rpc", "/"],
  ] as const)("land by a scheduler with the format %s", async (format, path) => {
    const route = open("scheduler", path === undefined ? {} : { format, path });
    const wire = tipped(alice, bob);
    expect((await send(route, [wire])).kind).toBe("acknowledged");
    run.slots(2);
    expect(landed(wire)).toBe(true);
    const forged = Uint8Array.from(wire);
    forged[5] = (forged[5] ?? 0) ^ 1;
    expect(await send(route, [forged])).toMatchObject({ kind: "refused", isFinal: true });
    expect(partners.scheduler.counts.transactions).toBe(1);
  });

  it("land by the block engine; with protection only if they succeed", async () => {
    const route = open("block-builder");
    const plain = tipped(alice, bob, 5n, 0n);
    const safe = tipped(bob, carol);
    const failing = overdrawn();
    expect((await send(route, [plain])).kind).toBe("acknowledged");
    expect((await send(route, [safe], { revertProtection: true })).kind).toBe("acknowledged");
    expect((await send(route, [failing], { revertProtection: true })).kind).toBe("acknowledged");
    run.slots(2);
    expect([plain, safe, failing].map(landed)).toEqual([true, true, false]);
    expect(run.chain.status(factsOf(failing).signature)).toBeNull();
    expect(partners.blockEngine.counts).toMatchObject({ transactions: 1, bundles: 2 });
  });
});

describe("bundles", () => {
  it("land completely, in order and consecutively", async () => {
    const route = open("block-builder");
    const wires = [tipped(alice, bob), tipped(bob, carol, 7n, 0n), tipped(carol, alice, 9n, 0n)];
    expect((await send(route, wires, { mode: "bundle" })).kind).toBe("acknowledged");
    run.slots(2);
    const places = wires.map(
      (wire) => run.chain.transaction(factsOf(wire).signature)?.transaction.index ?? -1,
    );
    expect(places).toEqual([places[0], (places[0] ?? 0) + 1, (places[0] ?? 0) + 2]);
    expect(wires.every(landed)).toBe(true);
  });

  it("leave no trace if one transaction fails", async () => {
    const route = open("block-builder");
    const wires = [tipped(alice, bob), overdrawn()];
    expect((await send(route, wires, { mode: "bundle" })).kind).toBe("acknowledged");
    run.slots(2);
    expect(wires.map((wire) => run.chain.status(factsOf(wire).signature))).toEqual([null, null]);
  });

  it("are accepted again while they are known", async () => {
    const route = open("block-builder");
    const wires = [tipped(alice, bob)];
    for (let count = 0; count < 3; count++) {
      expect((await send(route, wires, { mode: "bundle" })).kind).toBe("acknowledged");
    }
    expect(partners.blockEngine.counts.bundles).toBe(1);
    run.slots(2);
    expect((await send(route, wires, { mode: "bundle" })).kind).toBe("acknowledged");
    expect(partners.blockEngine.counts.bundles).toBe(1);
  });

  it("may be sent again with a transaction that is in the queue", async () => {
    const wire = tipped(alice, bob);
    run.chain.send(wire);
    const route = open("block-builder");
    expect(await send(route, [wire], { mode: "bundle" })).toMatchObject({
      kind: "refused",
      isFinal: false,
    });
  });

  it("are rejected without a tip, with six transactions, and with a misplaced don't-front marker", async () => {
    const route = open("block-builder");
    const final = { kind: "refused", reason: "params_invalid", isFinal: true };
    expect(await send(route, [tipped(alice, bob, 5n, 0n)], { mode: "bundle" })).toMatchObject(
      final,
    );
    const six = Array.from({ length: 6 }, () => tipped(alice, bob));
    expect(await send(route, six, { mode: "bundle" })).toMatchObject(final);
    const frontKey = new PublicKey("jitodontfront111111111111111111111111111123");
    const fronted = run.legacy(
      [
        new TransactionInstruction({
          programId: SystemProgram.programId,
          keys: [
            { pubkey: alice.publicKey, isSigner: true, isWritable: true },
            { pubkey: tipAccount.publicKey, isSigner: false, isWritable: true },
            { pubkey: frontKey, isSigner: false, isWritable: false },
          ],
          data: transferOf(alice, tipAccount, 20_000n).data,
        }),
      ],
      [alice],
    );
    const behind = [tipped(alice, bob), fronted];
    expect(await send(route, behind, { mode: "bundle" })).toMatchObject(final);
    expect(await send(route, [fronted, tipped(alice, bob)], { mode: "bundle" })).toMatchObject({
      kind: "acknowledged",
    });
    run.slots(2);
    expect(landed(fronted)).toBe(true);
    expect(partners.blockEngine.counts.bundles).toBe(1);
  });

  it("can be queried", async () => {
    const url = `${partners.blockEngine.url}/api/v1/bundles`;
    expect((await post(url, "getTipAccounts", [])).result).toEqual([addressOf(tipAccount)]);
    const good = [tipped(alice, bob), tipped(bob, carol)];
    const bad = [tipped(alice, bob), overdrawn()];
    const ids: unknown[] = [];
    for (const wires of [good, bad]) {
      const texts = wires.map((wire) => Buffer.from(wire).toString("base64"));
      ids.push((await post(url, "sendBundle", [texts, { encoding: "base64" }])).result);
    }
    const [first] = ids;
    const unknown = "00".repeat(32);
    const inflight = (states: [string, number | null][]): object => ({
      value: states.map(([status, landed_slot], place) => ({
        bundle_id: [...ids, unknown][place],
        status,
        landed_slot,
      })),
    });
    const params = [[...ids, unknown]];
    expect((await post(url, "getInflightBundleStatuses", params)).result).toMatchObject(
      inflight([
        ["Pending", null],
        ["Pending", null],
        ["Invalid", null],
      ]),
    );
    run.slots(2);
    const signature = factsOf(good[0] ?? new Uint8Array(0)).signature;
    const slot = Number(run.chain.status(signature)?.slot);
    run.slots(40);
    expect((await post(url, "getInflightBundleStatuses", params)).result).toMatchObject(
      inflight([
        ["Landed", slot],
        ["Failed", null],
        ["Invalid", null],
      ]),
    );
    expect((await post(url, "getBundleStatuses", params)).result).toMatchObject({
      value: [
        {
          bundle_id: first,
          transactions: good.map((wire) => factsOf(wire).signature),
          slot,
          err: { Ok: null },
        },
        null,
        null,
      ],
    });
    expect((await post(url, "getBundleStatuses", [["x"]])).error?.code).toBe(-32602);
    expect((await post(url, "getBundles", [])).error?.code).toBe(-32601);
  });
});

describe("faults", () => {
  it("start and end while routes are open, and execute nothing", async () => {
    const route = open("swqos");
    const { faults } = partners.swqos;
    for (const [answer, expected] of [
      ["unavailable", { kind: "refused", reason: "partner_error" }],
      ["garbage", { kind: "failed", reason: "answer_invalid" }],
      ["cut", { kind: "failed", reason: "connection_lost" }],
    ] as const) {
      faults.answer = answer;
      expect(await send(route, [tipped(alice, bob)])).toMatchObject(expected);
    }
    faults.answer = "normal";
    expect((await send(route, [tipped(alice, bob)])).kind).toBe("acknowledged");
    faults.answer = "silence";
    const silent = new TestOutbound([factsOf(tipped(alice, bob))]);
    route.offer(silent);
    await silent.sent;
    await clock.advance(2000);
    expect(await silent.ended).toMatchObject({ kind: "failed", reason: "timeout" });
    const dropped = new TestOutbound([factsOf(tipped(alice, bob))]);
    route.offer(dropped);
    await dropped.sent;
    // The route has repeated the request that was cut, because its connection had served another one.
    await until(() => partners.swqos.counts.requests >= 7, "the request");
    partners.swqos.cut();
    expect(await dropped.ended).toMatchObject({ kind: "failed", reason: "connection_lost" });
    faults.answer = "normal";
    expect((await send(route, [tipped(alice, bob)])).kind).toBe("acknowledged");
    expect(partners.swqos.counts.transactions).toBe(2);
    faults.answer = "limit";
    faults.retryAfterSeconds = 2;
    expect(await send(route, [tipped(alice, bob)])).toMatchObject({ reason: "rate_limited" });
    expect(route.isUp).toBe(false);
    faults.answer = "normal";
    await clock.advance(2000);
    expect((await send(route, [tipped(alice, bob)])).kind).toBe("acknowledged");
  });

  it("delay responses", async () => {
    const route = open("swqos");
    partners.swqos.faults.delayMs = 300;
    const outbound = new TestOutbound([factsOf(tipped(alice, bob))]);
    route.offer(outbound);
    await outbound.sent;
    // The route's next probe, its timeout and the partner's delay.
    await until(() => clock.pending >= 3, "the timers");
    await clock.advance(299);
    expect(outbound.kinds).toBe("sent");
    await clock.advance(1);
    expect((await outbound.ended).kind).toBe("acknowledged");
  });

  it("can make a partner unreachable for a while", async () => {
    const route = open("swqos");
    expect((await send(route, [tipped(alice, bob)])).kind).toBe("acknowledged");
    partners.swqos.stop();
    // Whether the end of the old connection is detected before the next request is random.
    const ends = [await send(route, [tipped(alice, bob)])];
    if (route.isUp) ends.push(await send(route, [tipped(alice, bob)]));
    expect(ends.at(-1)).toMatchObject({ reason: "connection_refused" });
    expect(route.isUp).toBe(false);
    await partners.swqos.start();
    await clock.advance(1000);
    await until(() => route.isUp, "the probe");
    expect((await send(route, [tipped(alice, bob)])).kind).toBe("acknowledged");
  });

  it("end with the partners, including pending responses", async () => {
    const route = open("swqos");
    partners.swqos.faults.answer = "silence";
    const outbound = new TestOutbound([factsOf(tipped(alice, bob))]);
    route.offer(outbound);
    await outbound.sent;
    await until(() => partners.swqos.counts.requests >= 1, "the request");
    partners.close();
    partners.close();
    expect(await outbound.ended).toMatchObject({ kind: "failed", reason: "connection_lost" });
    run.slots(2);
  });
});
