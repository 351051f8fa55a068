// The fast path of a real gateway: what is sent before a request is read, and what is not.
//
// Each request is written while the event loop is blocked (fast-caller.ts), so the results do not depend
// on which thread is faster.

import { expect, it, vi } from "vitest";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { isObject } from "../../../src/core/values.ts";
import { FastPath } from "../../../src/gateway/fast-path/fast-path.ts";
import type { TimelineEvent } from "../../../src/gateway/submission/types.ts";
import { closing } from "../../support/closing.ts";
import { createdKey } from "../../support/gateway/created-key.ts";
import { tipAddress } from "../../support/gateway/gateway.ts";
import { accepts } from "../../support/gateway/partner.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { base64, forged } from "../../support/transactions/tipping.ts";
import {
  bodyOf,
  configWith,
  FastCaller,
  lent,
  type Opened,
  openWithPartner,
  requestOf,
  signatureOf,
  taken,
  transfer,
  writeAlone,
} from "./fast-caller.ts";

/** A caller whose next requests may be taken. */
async function taught(opened: Opened, number = 1): Promise<FastCaller> {
  const caller = await FastCaller.open(opened.address);
  const wire = transfer(number);
  const { body } = await caller.call(requestOf(opened.key, bodyOf(wire)));
  expect(body.result).toBe(signatureOf(wire));
  await lent(opened);
  return caller;
}

/** The transactions that the partner received, in base64. */
function receivedBy({ partner }: Opened): string[] {
  return partner.posts.map(({ body }) => {
    const call: unknown = JSON.parse(body.toString());
    const params = isObject(call) ? call["params"] : undefined;
    return Array.isArray(params) ? String(params[0]) : "";
  });
}

async function eventsOf({ gateway }: Opened, wire: Uint8Array): Promise<readonly TimelineEvent[]> {
  const key = [...(await gateway.keys.keys())][0];
  const [status] = await gateway.submissions.statuses(key?.accountId ?? "", [signatureOf(wire)]);
  return status?.events ?? [];
}

async function acknowledged(opened: Opened, wire: Uint8Array): Promise<readonly TimelineEvent[]> {
  await expect
    .poll(async () => (await eventsOf(opened, wire)).map(({ kind }) => kind), { timeout: 20_000 })
    .toEqual(["received", "queued", "sent", "acknowledged"]);
  const events = await eventsOf(opened, wire);
  const times = events.map(({ atNs }) => atNs);
  expect(times).toEqual(times.toSorted((a, b) => Number(a - b)));
  return events;
}

it("sends a repeated request before it is read, once, and records it like every other", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const wire = transfer(2);
  expect(
    await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire, undefined, "b"))),
  ).toBe(true);
  expect((await caller.response()).body).toMatchObject({ result: signatureOf(wire), id: "b" });
  await acknowledged(opened, wire);
  expect(receivedBy(opened)).toEqual([base64(transfer(1)), base64(wire)]);
  const [first, second] = opened.partner.posts;
  expect(second?.url).toBe("/send");
  expect({ ...second?.headers, "content-length": "" }).toEqual({
    ...first?.headers,
    "content-length": "",
  });
  expect(opened.gateway.snapshot().routes[0]).toMatchObject({
    offered: 2n,
    sent: 2n,
    acknowledged: 2n,
    inFlight: 0,
  });
  expect(opened.gateway.snapshot().fastPath).toMatchObject({ unclaimed: 0, abandoned: 0 });
});

it("uses the connection again and again", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  for (let i = 2; i < 30; i++) {
    const wire = transfer(i);
    expect(
      await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire, undefined, i))),
    ).toBe(true);
    expect((await caller.response()).body.result).toBe(signatureOf(wire));
    await acknowledged(opened, wire);
  }
  expect(new Set(receivedBy(opened)).size).toBe(29);
  expect(opened.partner.posts.length).toBe(29);
  expect(opened.partner.sockets.size).toBeLessThanOrEqual(2); // one is the probe's
});

it("takes base58 where the caller uses it", async () => {
  const opened = await openWithPartner();
  const caller = await FastCaller.open(opened.address);
  const options = '{"encoding":"base58","skipPreflight":true}';
  const text = (wire: Uint8Array): string =>
    bodyOf(wire, options).replace(base64(wire), encodeBase58(wire));
  await caller.call(requestOf(opened.key, text(transfer(1))));
  await lent(opened);
  const wire = transfer(2);
  expect(await writeAlone(opened, caller, requestOf(opened.key, text(wire)))).toBe(true);
  await caller.response();
  await acknowledged(opened, wire);
  expect(receivedBy(opened)).toEqual([base64(transfer(1)), base64(wire)]);
});

it.each<[name: string, request: (opened: Opened) => string, status: number, result: string]>([
  [
    "a forged signature",
    ({ key }) => requestOf(key, bodyOf(forged(transfer(2)))),
    200,
    "signature",
  ],
  ["a tip that is too low", ({ key }) => requestOf(key, bodyOf(transfer(2, 999n))), 200, "tip"],
  [
    "another text than a transaction",
    ({ key }) => requestOf(key, bodyOf(Buffer.alloc(99))),
    200,
    "param",
  ],
  ["an unknown key", () => requestOf("b".repeat(40), bodyOf(transfer(2))), 401, "API key"],
])("leaves %s to the gateway, which refuses it", async (_, request, status, result) => {
  const opened = await openWithPartner({
    tips: { addresses: [tipAddress], minimumLamports: 1000 },
  });
  const caller = await taught(opened);
  expect(await writeAlone(opened, caller, request(opened))).toBe(false);
  const response = await caller.response();
  expect(response.status).toBe(status);
  expect(response.body.error?.message).toContain(result);
  expect(receivedBy(opened)).toEqual([base64(transfer(1))]);
  expect(opened.gateway.snapshot().fastPath?.abandoned).toBe(0);
});

it.each([
  ["another option", '{"encoding":"base64","skipPreflight":true,"maxRetries":1}'],
  ["MEV protection", '{"encoding":"base64","skipPreflight":true,"mevProtect":true}'],
  ["SWQoS only", '{"encoding":"base64","skipPreflight":true,"swqosOnly":true}'],
])("leaves a request with %s to the gateway", async (_, options) => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const wire = transfer(2);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire, options)))).toBe(
    false,
  );
  await caller.response();
  // A protected form is never taught; the plain one is again.
  const next = bodyOf(transfer(3), options);
  const isPlain = !/Protect|swqos/.test(options);
  if (isPlain) expect(await writeAlone(opened, caller, requestOf(opened.key, next))).toBe(true);
  else caller.write(requestOf(opened.key, next));
  await caller.response();
  expect(taken(opened)).toBe(isPlain ? 1 : 0);
});

it("does not send a transaction again that was submitted before, in whatever way", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(transfer(1))))).toBe(false);
  await caller.response();
  const other = await FastCaller.open(opened.address);
  await other.call(requestOf(opened.key, bodyOf(transfer(2))));
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(transfer(2))))).toBe(false);
  expect((await caller.response()).body.result).toBe(signatureOf(transfer(2)));
});

it("sends nothing for a key that was revoked, or whose limit is used up", async () => {
  const opened = await openWithPartner();
  const limited = await createdKey(opened.gateway, { requestsPerSecond: 1, burst: 3 });
  await opened.gateway.refreshKeys();
  const caller = await taught(opened);
  const limitedCaller = await taught({ ...opened, key: limited }, 10);
  const results: boolean[] = [];
  for (let i = 11; i < 15; i++) {
    const [before, text] = [taken(opened), requestOf(limited, bodyOf(transfer(i)))];
    const { status } = await limitedCaller.call(text);
    results.push(status === 200);
    if (status !== 200) expect(taken(opened)).toBe(before);
  }
  expect(results).toContain(false);
  const [first] = await opened.gateway.keys.keys();
  for (const { id } of await opened.gateway.keys.keys())
    await opened.gateway.keys.revokeKey(id, 1n);
  expect(first).toBeDefined();
  await opened.gateway.refreshKeys();
  const before = opened.partner.posts.length;
  expect((await caller.call(requestOf(opened.key, bodyOf(transfer(20))))).status).toBe(401);
  expect(opened.partner.posts.length).toBe(before);
});

it("takes no request out of another one's body", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const inner = requestOf(opened.key, bodyOf(transfer(2)));
  const head = `POST /relay HTTP/1.1\r\nHost: a\r\napi-key: ${opened.key}\r\nContent-Length: ${inner.length}\r\n\r\n`;
  // The gateway reads the head of the outer request and nothing else; then the body arrives.
  caller.write(head);
  await new Promise((resolve) => setTimeout(resolve, 50));
  caller.write(inner);
  const end = performance.now() + 50;
  while (performance.now() < end); // the fast path has the time to look
  const { body } = await caller.response();
  expect(body.error).toBeDefined();
  expect(taken(opened)).toBe(0);
  expect(receivedBy(opened)).toEqual([base64(transfer(1))]);
});

it("reads pipelined requests in order", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const texts = [2, 3, 4].map((i) => requestOf(opened.key, bodyOf(transfer(i), undefined, i)));
  caller.write(texts.join(""));
  for (const id of [2, 3, 4]) expect((await caller.response()).body).toMatchObject({ id });
  for (const i of [2, 3, 4]) await acknowledged(opened, transfer(i));
});

it("reports a partner that ends the connection without an answer", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  opened.partner.behaviour = ({ socket }) => void socket.destroy();
  const wire = transfer(2);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire)))).toBe(true);
  expect((await caller.response()).body.result).toBe(signatureOf(wire));
  await expect
    .poll(async () => (await eventsOf(opened, wire)).slice(1, 4), { timeout: 20_000 })
    .toMatchObject([
      { kind: "queued" },
      { kind: "sent" },
      { kind: "failed", reason: "connection_lost" },
    ]);
});

it("repeats what it wrote to a connection that the partner closed, once, on a new one", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const used = new Set(opened.partner.posts.map(({ socket }) => socket));
  opened.partner.behaviour = (request, response) => {
    if (used.has(request.socket)) request.socket.destroy();
    else void accepts(request, response);
  };
  const wire = transfer(2);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire)))).toBe(true);
  expect((await caller.response()).body.result).toBe(signatureOf(wire));
  await acknowledged(opened, wire);
  expect(receivedBy(opened)).toEqual([base64(transfer(1)), base64(wire), base64(wire)]);
});

it("reads the answer of a partner that was faster than the event loop", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const wire = transfer(2);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire)))).toBe(true);
  // The partner of this process answers only after this turn; its bytes and the caller's are then ready at once.
  await caller.response();
  const events = await acknowledged(opened, wire);
  const [, , sent, answered] = events;
  expect((answered?.atNs ?? 0n) - (sent?.atNs ?? 0n)).toBeGreaterThanOrEqual(0n);
});

it("records a submission whose caller is gone", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const wire = transfer(2);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire)))).toBe(true);
  caller.socket.end();
  await acknowledged(opened, wire);
  await expect.poll(() => opened.gateway.snapshot().fastPath?.connections).toBe(0);
});

it("follows a reload of the minimum tip and of the routes", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const { partner } = opened;
  const { tips } = opened.config;
  const dear = configWith(opened, { tips: { ...tips, minimumLamports: 20_000 } });
  opened.gateway.prepare(dear).apply();
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(transfer(2))))).toBe(false);
  expect((await caller.response()).body.error?.message).toContain("tip");
  opened.gateway.prepare(configWith(opened, { routes: [] })).apply();
  const { body } = await caller.call(requestOf(opened.key, bodyOf(transfer(3))));
  expect(body.error?.message).toContain("no route");
  expect(partner.posts.length).toBe(1);
});

it("serves all routes after a reload that replaces more than half of what it has room for", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const [route] = opened.config.routes;
  if (!route) throw new Error("expected a route");
  for (const number of [2, 3, 4]) {
    const headers = { "x-version": `${number}` };
    const routes = Array.from({ length: 12 }, (_, i) => {
      return { ...route, name: `partner-${i}`, connections: 1, headers };
    });
    opened.gateway.prepare(configWith(opened, { routes })).apply();
    // A route lends its connection after its first request, and the routes before have closed by then, or later.
    await until(() => opened.gateway.snapshot().fastPath?.loans === 0, "the end of earlier loans");
    await caller.call(requestOf(opened.key, bodyOf(transfer(number))));
    await until(() => opened.gateway.snapshot().fastPath?.loans === 12, "a loan of each route");
  }
});

it("counts and reports what was sent for a request that is refused afterwards", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const { tips } = opened.config;
  const dear = configWith(opened, { tips: { ...tips, minimumLamports: 20_000 } });
  const reload = opened.gateway.prepare(dear);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(transfer(2))))).toBe(true);
  reload.apply(); // before the event loop reads the request
  expect((await caller.response()).body.error?.message).toContain("tip");
  expect(opened.gateway.snapshot().fastPath).toMatchObject({ abandoned: 1, unclaimed: 0 });
  await opened.partner.received(2);
  expect(await eventsOf(opened, transfer(2))).toEqual([]);
  const { status } = await caller.call(requestOf(opened.key, bodyOf(transfer(3))));
  expect(status).toBe(200);
});

it("goes on after the loss of every connection to the partner", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  for (const socket of opened.partner.sockets) socket.destroy();
  await expect.poll(() => opened.gateway.snapshot().fastPath?.loans).toBe(0);
  const { body } = await caller.call(requestOf(opened.key, bodyOf(transfer(2))));
  expect(body.result).toBe(signatureOf(transfer(2)));
  await acknowledged(opened, transfer(2));
  const request = requestOf(opened.key, bodyOf(transfer(3)));
  expect(await writeAlone(opened, caller, request)).toBe(true);
  await caller.response();
  await acknowledged(opened, transfer(3));
});

it("is off if the configuration has it off", async () => {
  const opened = await openWithPartner({ gateway: { warmUpSubmissions: 0, fastPath: false } });
  const caller = await FastCaller.open(opened.address);
  for (const i of [1, 2]) {
    const { body } = await caller.call(requestOf(opened.key, bodyOf(transfer(i))));
    expect(body.result).toBe(signatureOf(transfer(i)));
  }
  expect(opened.gateway.snapshot().fastPath).toBeNull();
});

it("has a number for each of any count of keys, with no calls left of another key", () => {
  const fastPath = closing(new FastPath({ warn: () => undefined }));
  const forgotten = vi.spyOn(fastPath.native, "forgetAll");
  const allowed = vi.spyOn(fastPath.native, "allow");
  const keysMax = 65_536;
  for (let i = 0; i < keysMax; i++) expect(fastPath.keyNumber(`key ${i}`)).toBe(i);
  expect(forgotten).not.toHaveBeenCalled();
  allowed.mockClear();
  fastPath.allow("one more", 7);
  expect(forgotten).toHaveBeenCalledTimes(1);
  expect(allowed.mock.calls).toEqual([
    [0, 0],
    [0, 7],
  ]);
  expect([fastPath.keyNumber("key 0"), fastPath.keyNumber("one more")]).toEqual([1, 0]);
  fastPath.forgetAll();
  expect(fastPath.keyNumber("key 9")).toBe(0);
});
