// Transactions that are sent after they were read and before they are recorded.

import { Keypair } from "@solana/web3.js";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { base64, forged, tipping } from "../../support/transactions/tipping.ts";
import {
  bodyOf,
  FastCaller,
  kindsOf,
  lent,
  type Opened,
  openWithPartner,
  type Response,
  requestOf,
  signatureOf,
  transfer,
} from "./fast-caller.ts";

const once = "?max-retries=0";

function direct({ gateway }: Opened): number {
  return gateway.snapshot().fastPath?.direct ?? 0;
}

/** Sends by /relayb. */
async function send(opened: Opened, wire: Uint8Array, query = ""): Promise<Response> {
  const caller = await FastCaller.open(opened.address);
  const head = `POST /relayb${query} HTTP/1.1\r\nHost: a\r\napi-key: ${opened.key}\r\n`;
  const body = Buffer.from(wire).toString("latin1");
  return caller.call(`${head}Content-Length: ${wire.length}\r\n\r\n${body}`);
}

/** A gateway that has lent a connection after a first submission. */
async function openLending(more: object = {}): Promise<Opened> {
  const opened = await openWithPartner(more);
  expect((await send(opened, transfer(1))).body.result).toBe(signatureOf(transfer(1)));
  await lent(opened);
  return opened;
}

it("sends a transaction once, before it is recorded, and records it like every other", async () => {
  const opened = await openLending();
  const before = direct(opened);
  const wire = transfer(2);
  expect((await send(opened, wire, once)).body.result).toBe(signatureOf(wire));
  expect(direct(opened)).toBe(before + 1);
  await expect
    .poll(() => kindsOf(opened, wire), { timeout: 20_000 })
    .toEqual(["received", "queued", "sent", "acknowledged"]);
  const bodies = opened.partner.posts.map(({ body }) => body.toString());
  expect(bodies.filter((body) => body.includes(base64(wire))).length).toBe(1);
  // Whether a repetition is sent again is for the routes to decide.
  expect((await send(opened, wire, once)).body.result).toBe(signatureOf(wire));
  expect(direct(opened)).toBe(before + 1);
  expect(opened.gateway.snapshot().fastPath).toMatchObject({ unclaimed: 0, abandoned: 0 });
});

it.each([
  ["MEV protection", "?mev-protect=true"],
  ["SWQoS only", "?swqos-only=true"],
  ["revert protection", "?revert-protection=true"],
  ["a minimum context slot", "?min-context-slot=1"],
])("leaves a transaction with %s to the routes", async (_, query) => {
  const opened = await openLending();
  const before = direct(opened);
  await send(opened, transfer(2), query);
  expect(direct(opened)).toBe(before);
});

it.each<[name: string, wire: Uint8Array, message: string]>([
  ["a forged signature", forged(transfer(2)), "signature"],
  ["a tip that is too low", transfer(2, 999n), "tip"],
  ["other bytes than a transaction", Buffer.alloc(99, 1), "body"],
])("sends nothing for %s", async (_, wire, message) => {
  const opened = await openLending();
  const [before, posts] = [direct(opened), opened.partner.posts.length];
  expect((await send(opened, wire)).body.error?.message).toContain(message);
  expect(direct(opened)).toBe(before);
  await send(opened, transfer(3));
  await opened.partner.received(posts + 1);
  expect(opened.partner.posts.length).toBe(posts + 1);
});

it.each<[name: string, options: string, count: number]>([
  ["one with explicit encoding", '{"encoding":"base64","skipPreflight":true,"maxRetries":0}', 1],
  ["one without encoding", '{"skipPreflight":true,"maxRetries":0}', 1],
  ["none with preflight", '{"encoding":"base64","maxRetries":0}', 0],
  ["none with a context slot", '{"skipPreflight":true,"minContextSlot":0}', 0],
])("sends of first JSON requests %s", async (_, options, count) => {
  const opened = await openLending();
  const before = direct(opened);
  const wire = transfer(2);
  const caller = await FastCaller.open(opened.address);
  const { body } = await caller.call(requestOf(opened.key, bodyOf(wire, options)));
  expect(body.result).toBe(signatureOf(wire));
  expect(direct(opened)).toBe(before + count);
  await expect.poll(() => kindsOf(opened, wire), { timeout: 20_000 }).toContain("acknowledged");
});

it("sends no transaction with more than two signatures itself", async () => {
  const opened = await openLending();
  const before = direct(opened);
  for (const signatures of [2, 3]) {
    const coSigners = Array.from({ length: signatures - 1 }, () => Keypair.generate());
    const wire = tipping({ amount: 2n, coSigners });
    expect(wire[0]).toBe(signatures);
    await lent(opened);
    expect((await send(opened, wire)).body.result).toBe(signatureOf(wire));
    expect(direct(opened)).toBe(before + 1);
  }
});

it("leaves an open transaction of an earlier process to its record", async () => {
  const directory = temporaryFolder();
  const wire = transfer(2);
  const earlier = await openLending({ data: { directory } });
  expect((await send(earlier, wire)).body.result).toBe(signatureOf(wire));
  await earlier.gateway.close();
  const later = await openLending({ data: { directory } });
  const before = direct(later);
  const again = await send({ ...later, key: earlier.key }, wire);
  expect(again.body.result).toBe(signatureOf(wire));
  expect(direct(later)).toBe(before);
  expect(later.gateway.snapshot().fastPath).toMatchObject({ abandoned: 0 });
});

it("sends nothing beyond the limit of the key", async () => {
  const opened = await openLending({
    gateway: { warmUpSubmissions: 0, requestsPerSecond: 1, burst: 3 },
  });
  const statuses: number[] = [];
  for (let i = 2; i < 8; i++) {
    const before = direct(opened);
    const { status } = await send(opened, transfer(i));
    statuses.push(status);
    if (status !== 200) expect(direct(opened)).toBe(before);
  }
  expect(statuses).toContain(429);
});

it("leaves everything to the routes if the configuration has the fast path off", async () => {
  const opened = await openWithPartner({ gateway: { warmUpSubmissions: 0, fastPath: false } });
  for (const i of [1, 2]) {
    expect((await send(opened, transfer(i))).body.result).toBe(signatureOf(transfer(i)));
  }
  expect(opened.gateway.snapshot().fastPath).toBeNull();
});
