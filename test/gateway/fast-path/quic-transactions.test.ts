// Transactions over QUIC that the fast path sends before the gateway has read them.
//
// The event loop is blocked until the fast path has looked at an offer, so the results do not depend on
// which thread is faster.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { GatewayService } from "../../../src/app/gateway-service.ts";
import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { createdKey } from "../../support/gateway/created-key.ts";
import { ingressPids } from "../../support/quic/ingress-pids.ts";
import { QuicClient } from "../../support/quic/quic-client.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { type Response, readResponse } from "../../support/quic/response-frames.ts";
import { base64, forged } from "../../support/transactions/tipping.ts";
import {
  counted,
  kindsOf,
  lent,
  type Opened,
  openWithPartner,
  signatureOf,
  taken,
  transfer,
} from "./fast-caller.ts";

const deadlineMs = 20_000;
const loopback = "127.0.0.1:0";
const quic = { listen: [loopback], protectedListen: [loopback], swqosOnlyListen: [loopback] };

interface ClientOptions {
  /** Number of the listener. */
  readonly listener?: number;
  readonly isProtected?: boolean;
}

class QuicCaller {
  readonly #client: QuicClient;

  static async open(
    { gateway, key }: Opened,
    { listener = 0, isProtected = false }: ClientOptions = {},
  ): Promise<QuicCaller> {
    const client = await QuicClient.open(gateway.quicAddresses[listener] ?? "", {
      credentials: newEcdsaCredentials(key, { isProtected }),
      protocol: "shredway-tpu",
      idleTimeoutMs: 60_000,
    });
    await client.established;
    return new QuicCaller(client);
  }

  private constructor(client: QuicClient) {
    this.#client = client;
  }

  async ask(wire: Uint8Array): Promise<Response> {
    return readResponse(await this.#client.request(wire));
  }

  /**
   * Blocks the event loop from the moment when the kernel has the packet until the fast path has looked at
   * the offer, and calls `looked` then.
   */
  askAlone(
    opened: Opened,
    wire: Uint8Array,
    looked: () => void = () => undefined,
  ): Promise<Response> {
    const before = counted(opened);
    const response = this.ask(wire);
    return new Promise((resolve, reject) => {
      const block = (): void => {
        const end = performance.now() + deadlineMs;
        while (counted(opened) === before && performance.now() < end);
        looked();
        if (counted(opened) > before) resolve(response);
        else reject(new Error("the fast path did not look at the offer"));
      };
      // Node.js passes a datagram to the kernel in the next tick.
      process.nextTick(() => process.nextTick(block));
    });
  }
}

function open(more: object = {}): Promise<Opened> {
  return openWithPartner({ quic, ...more });
}

/** A caller whose next transactions are offered. */
async function taught(opened: Opened, options: ClientOptions = {}): Promise<QuicCaller> {
  const caller = await QuicCaller.open(opened, options);
  expect((await caller.ask(transfer(1))).status).toBe(200);
  await lent(opened);
  return caller;
}

/** Whether the fast path sent it before the gateway could read it. */
async function isTaken(opened: Opened, caller: QuicCaller, wire: Uint8Array): Promise<boolean> {
  await lent(opened);
  const before = taken(opened);
  const { status, body } = await caller.askAlone(opened, wire);
  const after = taken(opened);
  expect({ status, body }).toEqual({ status: 200, body: signatureOf(wire) });
  return after > before;
}

function receivedBy({ partner }: Opened): string[] {
  return partner.posts.map(({ body }) => /"params":\["([^"]+)"/.exec(body.toString())?.[1] ?? "");
}

function countsOf(gateway: GatewayService): object | null {
  return gateway.snapshot().fastPath;
}

describeQuic("an offered transaction", () => {
  it("is sent before it is read, once, and recorded like every other", async () => {
    const opened = await open();
    const caller = await taught(opened);
    for (let i = 2; i < 8; i++) {
      const wire = transfer(i);
      expect(await isTaken(opened, caller, wire)).toBe(true);
      await expect
        .poll(() => kindsOf(opened, wire), { timeout: deadlineMs })
        .toEqual(["received", "queued", "sent", "acknowledged"]);
    }
    expect(new Set(receivedBy(opened)).size).toBe(7);
    expect(opened.partner.posts.length).toBe(7);
    const { routes } = opened.gateway.snapshot();
    expect(routes[0]).toMatchObject({ offered: 7n, sent: 7n, acknowledged: 7n, inFlight: 0 });
    expect(countsOf(opened.gateway)).toMatchObject({ taken: 6, unclaimed: 0, abandoned: 0 });
  });

  it("is left to the gateway if it is invalid, and refused with its reason", async () => {
    const opened = await open();
    const caller = await taught(opened);
    const refusals = [
      [forged(transfer(2)), /^signature_invalid: /],
      [transfer(3, 9999n), /^tip_too_low: /],
      [transfer(4).subarray(0, 100), /^transaction_invalid: /],
    ] as const;
    for (const [wire, expected] of refusals) {
      const { body } = await caller.askAlone(opened, wire);
      expect(body).toMatch(expected);
    }
    expect(taken(opened)).toBe(0);
    expect(await isTaken(opened, caller, transfer(2))).toBe(true);
    expect(receivedBy(opened)).toEqual([base64(transfer(1)), base64(transfer(2))]);
  });

  it("is sent once, although it comes twice or over HTTP as well", async () => {
    const opened = await open();
    const caller = await taught(opened);
    expect(await isTaken(opened, caller, transfer(2))).toBe(true);
    expect(await isTaken(opened, caller, transfer(2))).toBe(false);
    expect(await isTaken(opened, caller, transfer(1))).toBe(false);
    expect(taken(opened)).toBe(1);
  });

  it("is recorded although the process of the connections is killed", async () => {
    const opened = await open();
    const caller = await taught(opened);
    const wire = transfer(2);
    const [pid = Number.NaN] = ingressPids(process.pid);
    void caller.askAlone(opened, wire, () => {
      // The process has passed the stream on before this thread runs again, or it has not.
      process.kill(pid, "SIGKILL");
    });
    await expect.poll(() => taken(opened), { timeout: deadlineMs }).toBe(1);
    await expect.poll(() => ingressPids(process.pid).filter((each) => each !== pid).length).toBe(1);
    const isPassedOn = (await kindsOf(opened, wire)).length > 0;
    expect(countsOf(opened.gateway)).toMatchObject({ unclaimed: 0, abandoned: isPassedOn ? 0 : 1 });
    // The transactions of the next process are sent likewise.
    const next = await taught(opened);
    expect(await isTaken(opened, next, transfer(3))).toBe(true);
  });

  it("is submitted although the service shuts down", async () => {
    const opened = await open();
    const caller = await taught(opened);
    let draining: Promise<void> | undefined;
    const { status, body } = await caller.askAlone(opened, transfer(2), () => {
      draining = opened.gateway.drain(deadlineMs);
    });
    expect({ status, body }).toEqual({ status: 200, body: signatureOf(transfer(2)) });
    await draining;
    expect(receivedBy(opened)).toEqual([base64(transfer(1)), base64(transfer(2))]);
  });
});

describeQuic("the fast path gets no offer", () => {
  it.each([
    ["of a protected listener", { listener: 1 }],
    ["of a listener for SWQoS only", { listener: 2 }],
    ["of a client that asks for protection", { isProtected: true }],
  ])("%s", async (_, options) => {
    const opened = await open();
    const caller = await QuicCaller.open(opened, options);
    for (let i = 1; i < 5; i++) await caller.ask(transfer(i));
    expect(countsOf(opened.gateway)).toMatchObject({ taken: 0, rejected: 0, late: 0 });
  });

  it("if the configuration has it off", async () => {
    const opened = await open({ gateway: { warmUpSubmissions: 0, fastPath: false } });
    const caller = await QuicCaller.open(opened);
    for (let i = 1; i < 5; i++) expect((await caller.ask(transfer(i))).status).toBe(200);
    expect(countsOf(opened.gateway)).toBeNull();
  });
});

describeQuic("the fast path sends nothing", () => {
  it("for a key that was revoked", async () => {
    const opened = await open();
    const caller = await taught(opened);
    for (const { id } of await opened.gateway.keys.keys())
      await opened.gateway.keys.revokeKey(id, 1n);
    await opened.gateway.refreshKeys();
    void caller.ask(transfer(2));
    await sleep(300);
    expect(receivedBy(opened)).toEqual([base64(transfer(1))]);
    expect(countsOf(opened.gateway)).toMatchObject({ taken: 0, unclaimed: 0 });
  });

  it("beyond the limit of the key", async () => {
    const opened = await open();
    const key = await createdKey(opened.gateway, { requestsPerSecond: 1, burst: 3 });
    await opened.gateway.refreshKeys();
    const caller = await taught({ ...opened, key });
    let accepted = 1;
    for (let i = 2; i < 12; i++) {
      await lent(opened);
      const { status, body } = await caller.askAlone(opened, transfer(i));
      expect(body).toMatch(status === 200 ? /^\w+$/ : /^rate_limited: /);
      accepted += Number(status === 200);
    }
    expect(accepted).toBeLessThan(11);
    expect(new Set(receivedBy(opened)).size).toBe(accepted);
    expect(countsOf(opened.gateway)).toMatchObject({ unclaimed: 0, abandoned: 0 });
  });
});
