// Many callers at once, with every kind of request, and a partner that fails: what is acknowledged reaches the
// partner, and every count adds up in the end.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { accepts, type Behaviour } from "../../support/gateway/partner.ts";
import { base64, forged } from "../../support/transactions/tipping.ts";
import {
  bodyOf,
  FastCaller,
  type Opened,
  openWithPartner,
  requestOf,
  transfer,
  writeAlone,
} from "./fast-caller.ts";

const callers = 8;
const callsOfCaller = 80;
const plain = '{"encoding":"base64","skipPreflight":true,"maxRetries":0}';
const others = [
  '{"encoding":"base64","skipPreflight":true,"maxRetries":2}',
  '{"encoding":"base64","skipPreflight":true,"revertProtection":false}',
];

/** Numbers from 0 to below `limit`, the same in every run. */
function randomOf(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** Answers, but for one of 20 requests, whose connection ends. */
function failsAtTimes(random: (limit: number) => number): Behaviour {
  return (request, response) => {
    if (request.method === "POST" && random(20) === 0) request.socket.destroy();
    else void accepts(request, response);
  };
}

interface Outcome {
  /** In base64. */
  readonly acknowledged: string[];
  readonly refused: string[];
}

async function runCaller(
  { address, key }: { readonly address: string; readonly key: string },
  number: number,
  outcome: Outcome,
): Promise<void> {
  const random = randomOf(number);
  let caller = await FastCaller.open(address);
  for (let i = 0; i < callsOfCaller; i++) {
    const kind = random(10);
    // A repetition of an earlier transaction, of this caller or of another one.
    const amount = kind === 0 ? 1 + random(callers * 1000) : 1 + number * 1000 + i;
    const valid = transfer(amount);
    const wire = kind === 1 ? forged(valid) : valid;
    const options = kind === 2 ? (others[random(others.length)] ?? plain) : plain;
    const { body } = await caller.call(requestOf(key, bodyOf(wire, options, i)));
    // Idle connections to the partner are needed: nothing is taken while others wait for one.
    await sleep(random(40));
    (body.result === undefined ? outcome.refused : outcome.acknowledged).push(base64(wire));
    if (kind !== 3) continue;
    caller.socket.destroy();
    caller = await FastCaller.open(address);
  }
}

/** Checks that the fast path sends. Under the load, the gateway may be first each time, on a busy machine. */
async function checkSends(opened: Opened): Promise<void> {
  const caller = await FastCaller.open(opened.address);
  const request = (i: number): string =>
    requestOf(opened.key, bodyOf(transfer(callers * 1000 + i), plain));
  await caller.call(request(1));
  expect(await writeAlone(opened, caller, request(2))).toBe(true);
  await caller.response();
}

it("loses, repeats and forgets nothing under mixed load", { timeout: 120_000 }, async () => {
  const opened = await openWithPartner({
    gateway: {
      warmUpSubmissions: 0,
      requestsPerSecond: 100_000,
      burst: 100_000,
      resendMs: 60_000,
    },
  });
  const { gateway, partner } = opened;
  await checkSends(opened);
  partner.behaviour = failsAtTimes(randomOf(99));
  const outcome: Outcome = { acknowledged: [], refused: [] };
  await Promise.all(Array.from({ length: callers }, (_, i) => runCaller(opened, i, outcome)));
  const isQuiet = (): boolean => {
    const { routes, fastPath } = gateway.snapshot();
    return fastPath?.unclaimed === 0 && routes.every((one) => one.inFlight + one.queued === 0);
  };
  await expect.poll(isQuiet, { timeout: 60_000 }).toBe(true);
  const received = partner.posts.flatMap(({ body }) =>
    [...body.toString().matchAll(/"params":\["([^"]+)"/g)].map(([, text]) => text),
  );
  for (const text of new Set(outcome.acknowledged)) expect(received).toContain(text);
  for (const text of new Set(outcome.refused)) {
    if (!outcome.acknowledged.includes(text)) expect(received).not.toContain(text);
  }
  const { routes, fastPath } = gateway.snapshot();
  expect(fastPath?.abandoned).toBe(0);
  const [route] = routes;
  if (!route) throw new Error("expected a route, got none");
  const { acknowledged, refused, failed, dropped, turnedAway, offered } = route;
  expect(acknowledged + refused + failed + dropped + turnedAway).toBe(offered);
});
