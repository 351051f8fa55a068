// The sends for a request belong to this request alone, beside pipelined ones, bodies, reloads and a shutdown.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { isObject } from "../../../src/core/values.ts";
import { closing } from "../../support/closing.ts";
import { Partner, signaturesOf } from "../../support/gateway/partner.ts";
import { base64 } from "../../support/transactions/tipping.ts";
import {
  bodyOf,
  configWith,
  FastCaller,
  kindsOf,
  lent,
  type Opened,
  openWithPartner,
  requestOf,
  signatureOf,
  taken,
  transfer,
  writeAlone,
} from "./fast-caller.ts";

async function taught(opened: Opened, number = 1): Promise<FastCaller> {
  const caller = await FastCaller.open(opened.address);
  await caller.call(requestOf(opened.key, bodyOf(transfer(number))));
  await lent(opened);
  return caller;
}

function receivedBy({ partner }: Opened): string[] {
  return partner.posts.map(({ body }) => {
    const call: unknown = JSON.parse(body.toString());
    const params = isObject(call) ? call["params"] : undefined;
    return Array.isArray(params) ? String(params[0]) : "";
  });
}

const health = "GET /gethealth HTTP/1.1\r\nHost: a\r\n\r\n";
/** Waits, then keeps the event loop from running, so that the fast path alone can look. */
async function look(): Promise<void> {
  await sleep(30);
  const end = performance.now() + 50;
  while (performance.now() < end);
}

it("sends for no request behind one that is not answered, whatever was answered before it", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  // The answer to GET leaves while the piece with the unfinished POST is read.
  const [outer, inner] = [bodyOf(transfer(2)), requestOf(opened.key, bodyOf(transfer(3)))];
  const begun = requestOf(opened.key, outer + " ".repeat(inner.length)).slice(0, -inner.length);
  caller.write(health + begun);
  await look();
  caller.write(inner);
  await look();
  expect(taken(opened)).toBe(0);
  caller.socket.destroy();
  expect(receivedBy(opened)).toEqual([base64(transfer(1))]);
});

it("sends for the request behind an answer that left while its own bytes were read", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  caller.write(health);
  await sleep(30);
  const wire = transfer(2);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire)))).toBe(true);
  await expect.poll(() => kindsOf(opened, wire)).toContain("acknowledged");
});

/** A caller whose first request waits for the node, with another one behind it that repeats the pattern. */
async function withHeldCall(
  more: (opened: Opened) => { readonly held: string; readonly next: string },
): Promise<Opened & { readonly caller: FastCaller; readonly release: () => void }> {
  const node = closing(await Partner.open());
  const held: (() => void)[] = [];
  node.behaviour = ({ body }, response) => {
    const answer = JSON.stringify(signaturesOf(body));
    if (body.includes("getLatestBlockhash")) held.push(() => void response.end(answer));
    else response.end(answer);
  };
  const opened = await openWithPartner({ solana: { rpc: node.url } });
  const caller = await taught(opened);
  const { held: call, next } = more(opened);
  const calls = `[{"jsonrpc":"2.0","id":0,"method":"getLatestBlockhash"},${call}]`;
  caller.write(health + requestOf(opened.key, calls));
  await expect.poll(() => held.length).toBe(1);
  caller.write(next);
  await look();
  return {
    ...opened,
    caller,
    release: () => {
      for (const end of held) end();
    },
  };
}

it("verifies a transaction although a valid one with the same signature follows", async () => {
  const valid = transfer(2);
  const altered = Uint8Array.from(valid);
  altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 1;
  const opened = await withHeldCall(({ key }) => ({
    held: bodyOf(altered, undefined, 2),
    next: requestOf(key, bodyOf(valid)),
  }));
  expect(taken(opened)).toBe(0);
  opened.release();
  await expect.poll(() => kindsOf(opened, valid)).toContain("acknowledged");
  expect(receivedBy(opened)).toEqual([base64(transfer(1)), base64(valid)]);
  expect(opened.gateway.snapshot().submissions.accepted).toBe(2n);
});

it("sends each of two transactions itself, once", async () => {
  const wires = [transfer(2), transfer(3)] as const;
  const opened = await withHeldCall(({ key }) => ({
    held: bodyOf(wires[0], undefined, 2),
    next: requestOf(key, bodyOf(wires[1])),
  }));
  opened.release();
  for (const wire of wires) {
    await expect
      .poll(() => kindsOf(opened, wire))
      .toEqual(["received", "queued", "sent", "acknowledged"]);
  }
  expect(receivedBy(opened).toSorted()).toEqual([transfer(1), ...wires].map(base64).toSorted());
});

it("sends once, although a reload replaces the route before the request is read", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const [route] = opened.config.routes;
  if (!route) throw new Error("no route");
  const replaced = configWith(opened, { routes: [{ ...route, queueMax: route.queueMax + 1 }] });
  const reload = opened.gateway.prepare(replaced);
  const wire = transfer(2);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire)))).toBe(true);
  reload.apply();
  expect((await caller.response()).body.result).toBe(signatureOf(wire));
  await expect
    .poll(() => kindsOf(opened, wire))
    .toEqual(["received", "queued", "sent", "acknowledged"]);
  expect(receivedBy(opened)).toEqual([base64(transfer(1)), base64(wire)]);
  expect(opened.gateway.snapshot().fastPath).toMatchObject({ abandoned: 0, unclaimed: 0 });
});

it("accepts what was sent although the service shuts down", async () => {
  const opened = await openWithPartner();
  const caller = await taught(opened);
  const wire = transfer(2);
  expect(await writeAlone(opened, caller, requestOf(opened.key, bodyOf(wire)))).toBe(true);
  const draining = opened.gateway.drain(20_000);
  expect((await caller.response()).body.result).toBe(signatureOf(wire));
  caller.socket.destroy();
  await draining;
  expect(receivedBy(opened)).toEqual([base64(transfer(1)), base64(wire)]);
});

it.each(["bytes", "base64"] as const)(
  "leaves a scheduler that takes %s to its route",
  async (format) => {
    const opened = await openWithPartner();
    const { partner, config, gateway, key } = opened;
    partner.behaviour = (_, response) => void response.end("{}");
    const [route] = config.routes;
    if (!route) throw new Error("no route");
    const scheduler = { ...route, name: "scheduler", kind: "scheduler" as const, format };
    gateway.prepare(configWith(opened, { routes: [scheduler] })).apply();
    const caller = await FastCaller.open(opened.address);
    for (let i = 1; i < 5; i++) {
      await caller.call(requestOf(key, bodyOf(transfer(i))));
      await expect.poll(() => kindsOf(opened, transfer(i))).toContain("acknowledged");
    }
    expect(partner.posts.map(({ url }) => url)).toEqual(Array(4).fill("/send"));
    expect(gateway.snapshot().fastPath).toMatchObject({ loans: 0, taken: 0, direct: 0 });
  },
);
