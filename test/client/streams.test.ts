// Streams of the client with cut, rejected, aborted and missing connections.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ShredwayCallError, ShredwayClient, type StatusUpdate } from "../../src/client/index.ts";
import type { TimelineEvent, TransactionStatus } from "../../src/gateway/submission/types.ts";
import { closing } from "../support/closing.ts";
import { GatewayRun, scoped } from "../support/gateway/gateway.ts";
import { until } from "../support/network/udp-receiver.ts";
import { ClientHarness } from "./client-harness.ts";
import { CutProxy } from "./cut-proxy.ts";

/** On a busy machine, routes may be down for a while. */
const longRetries = { retries: 100 };

let harness: ClientHarness;
let tipAccount = "";

beforeAll(async () => {
  harness = await ClientHarness.open();
  [tipAccount = ""] = await harness.client().getTipAccounts();
});

afterAll(() => harness.close());

function openStatus(signature: string): TransactionStatus {
  return {
    signature,
    state: "open",
    method: "sendTransaction",
    bundleId: null,
    receivedNs: 0n,
    slot: null,
    reason: null,
    err: null,
    events: [],
  };
}

/** Events of the timeline, without the fields that the stream lacks. */
async function timelineOf(signature: string): Promise<StatusUpdate[]> {
  const status = await harness.client().getTransactionStatus(signature);
  return (status?.events ?? []).map((timed) => {
    const { offsetMs: _, ...event } = timed;
    return { signature, event };
  });
}

describe("a stream of statuses", () => {
  it("reports each event of a submission once, in order, to its final status", async () => {
    const client = harness.client({ WebSocket });
    const signature = await client.sendTransaction(harness.tip(20_000, tipAccount), longRetries);
    const seen: StatusUpdate[] = [];
    for await (const update of client.watchStatuses({ signatures: [signature] })) seen.push(update);
    expect(seen).toEqual(await timelineOf(signature));
    const repeated: StatusUpdate[] = [];
    for await (const update of client.watchStatuses({ signatures: [signature] }))
      repeated.push(update);
    expect(repeated).toEqual(seen);
  });

  it("loses and repeats no event after a disconnection", async () => {
    const gateway = await GatewayRun.open();
    const proxy = closing(await CutProxy.open(gateway.url()));
    const client = new ShredwayClient({ url: proxy.through(gateway.url()), WebSocket });
    const signature = "1".repeat(64);
    const events: TimelineEvent[] = [];
    const happens = (event: TimelineEvent): void => {
      events.push(event);
      gateway.statuses.set(`a_1 ${signature}`, { ...openStatus(signature), events: [...events] });
      gateway.notify("a_1", signature, event);
    };
    const sent = (attempt: number): TimelineEvent => ({
      kind: "sent",
      atNs: 5_000_000n,
      route: "swqos",
      attempt,
      bytes: 200,
      slot: 9n,
      leader: null,
    });
    const amounts = { tipLamports: 2n ** 53n + 1n, priorityFeeLamports: 2n ** 64n - 1n };
    happens({ kind: "received", atNs: 0n, method: "sendTransaction", ...amounts });
    const seen: StatusUpdate[] = [];
    const reading = (async () => {
      for await (const update of client.watchStatuses({ signatures: [signature] }))
        seen.push(update);
    })();
    await until(() => seen.length === 1, "what was before");
    happens(sent(1));
    await until(() => seen.length === 2, "what comes");
    proxy.refuses = true;
    proxy.cut();
    await until(() => (gateway.listeners.get("a_1")?.size ?? 0) === 0, "the cut");
    happens(sent(2));
    happens(sent(3));
    proxy.refuses = false;
    await until(() => seen.length === 4, "what was missed");
    proxy.cut();
    happens(sent(4));
    await until(() => seen.length === 5, "what may have been missed");
    happens({ kind: "landed", atNs: 9_000_000n, reason: "confirmed", slot: 9n, err: null });
    await reading;
    expect(seen[0]?.event).toMatchObject(amounts);
    expect(seen.map(({ event }) => [event.kind, event.attempt])).toEqual([
      ["received", undefined],
      ...[1, 2, 3, 4].map((attempt) => ["sent", attempt]),
      ["landed", undefined],
    ]);
  });

  it("reports new events of the whole account and the disconnection", async () => {
    const proxy = closing(await CutProxy.open(harness.url));
    const client = harness.client({ url: proxy.through(harness.url), WebSocket });
    let reopened = 0;
    const controller = new AbortController();
    const updates = client.watchStatuses({
      signal: controller.signal,
      onReopened: () => {
        reopened++;
      },
    });
    // The sandbox's own probe uses the same key.
    expect((await updates.next()).value?.event.kind).toBeDefined();
    proxy.cut();
    const landed = async (): Promise<StatusUpdate> => {
      for (;;) {
        const { value, done } = await updates.next();
        if (done) throw new Error("expected no end");
        if (value.event.kind === "landed") return value;
      }
    };
    const { signature, event } = await landed();
    expect(reopened).toBe(1);
    expect(event.slot).toBe(harness.sandbox.chain.status(signature)?.slot);
    const reason = new Error("enough");
    const waiting = updates.next();
    controller.abort(reason);
    // Earlier events may still arrive.
    await expect(waiting.then(() => updates.next().then(() => updates.next()))).rejects.toBe(
      reason,
    );
  });

  it("is closed when its reader stops", async () => {
    const gateway = await GatewayRun.open();
    const client = new ShredwayClient({ url: gateway.url(), WebSocket });
    const updates = client.watchStatuses();
    const first = updates.next();
    const listeners = (): number => gateway.listeners.get("a_1")?.size ?? 0;
    await until(() => listeners() === 1, "the stream");
    gateway.notify("a_1", "s", { kind: "seen", atNs: 0n, slot: 2n ** 60n });
    expect((await first).value).toEqual({
      signature: "s",
      event: { kind: "seen", at: "1970-01-01T00:00:00.000Z", slot: 2n ** 60n },
    });
    await updates.return(undefined);
    await until(() => listeners() === 0, "its end");
  });

  it("reports why it is not opened, and ends when the key is no longer valid", async () => {
    const gateway = await GatewayRun.open();
    const reasonOf = async (client: ShredwayClient): Promise<string> => {
      const thrown: unknown = await client
        .watchStatuses()
        .next()
        .catch((error: unknown) => error);
      return thrown instanceof ShredwayCallError ? thrown.reason : String(thrown);
    };
    const as = (key: string) =>
      new ShredwayClient({ url: gateway.url(`/relay?api-key=${key}`), WebSocket });
    expect(await reasonOf(as("wrong"))).toBe("unauthorized");
    expect(await reasonOf(as("reader"))).toBe("scope_missing");
    const open = Array.from({ length: 8 }, () => as("good").watchStatuses());
    const firsts = open.map((each) => each.next());
    await until(() => gateway.listeners.get("a_1")?.size === 8, "eight streams");
    expect(await reasonOf(as("good"))).toBe("websocket_refused");
    for (const first of firsts) first.catch(() => undefined);
    gateway.keys.delete("good");
    await gateway.clock.advance(1_000);
    gateway.notify("a_1", "s", { kind: "seen", atNs: 0n, slot: 1n });
    for (const first of firsts) {
      await expect(first).rejects.toMatchObject({
        reason: "unauthorized",
        message: expect.stringContaining("closed the stream: the API key is no longer valid"),
      });
    }
    gateway.keys.set(...scoped("good", "submit"));
  });
});

describe("the wait for a final status", () => {
  it("polls without a WebSocket, and streams report the missing option", async () => {
    const client = harness.client();
    const signature = await client.sendTransaction(harness.tip(20_000, tipAccount), longRetries);
    expect(await client.waitForEnd(signature, { pollMs: 50 })).toMatchObject({ state: "landed" });
    const hasOwn = "WebSocket" in globalThis;
    if (hasOwn) return;
    expect(() => client.watchStatuses()).toThrow(
      "websocket_missing: this runtime has no WebSocket",
    );
    expect(() => client.tipStream()).toThrow("the package ws");
  });

  it("polls if WebSockets are blocked", async () => {
    const client = harness.client({
      WebSocket: class extends WebSocket {
        constructor(url: string) {
          super(url.replace("/status", "/nowhere"));
        }
      },
    });
    const signature = await client.sendTransaction(harness.tip(20_000, tipAccount), longRetries);
    expect(await client.waitForEnd(signature)).toMatchObject({ state: "landed" });
  });

  it("continues after disconnections, and ends at its timeout or abort", async () => {
    const proxy = closing(await CutProxy.open(harness.url));
    const client = harness.client({ url: proxy.through(harness.url), WebSocket });
    const signature = await client.sendTransaction(harness.tip(20_000, tipAccount), longRetries);
    const waiting = client.waitForEnd(signature);
    await until(() => proxy.accepted >= 2, "its stream");
    proxy.cut();
    expect(await waiting).toMatchObject({ signature, state: "landed" });

    const gateway = await GatewayRun.open();
    const never = "1".repeat(64);
    gateway.statuses.set(`a_1 ${never}`, openStatus(never));
    for (const given of [{ WebSocket }, {}]) {
      const other = new ShredwayClient({ url: gateway.url(), ...given });
      await expect(other.waitForEnd(never, { timeoutMs: 150 })).rejects.toMatchObject({
        reason: "timeout",
        message: "timeout: expected a final status within 150 ms, got none",
      });
      const controller = new AbortController();
      const reason = new Error("enough");
      const aborted = other.waitForEnd([never], { signal: controller.signal, timeoutMs: 60_000 });
      setTimeout(() => controller.abort(reason), 50);
      await expect(aborted).rejects.toBe(reason);
    }
    await until(() => (gateway.listeners.get("a_1")?.size ?? 0) === 0, "the end of its streams");
  });
});

describe("the stream of tips", () => {
  it("begins with the current snapshot, and a disconnection does not repeat it", async () => {
    const proxy = closing(await CutProxy.open(harness.url));
    const client = harness.client({ url: proxy.through(harness.url), WebSocket });
    const controller = new AbortController();
    const tips = client.tipStream({ signal: controller.signal });
    const { value } = await tips.next();
    expect(value).toEqual(await client.tipFloor());
    const waiting = tips.next();
    const reason = new Error("enough");
    const acceptedBefore = proxy.accepted;
    proxy.cut();
    await until(() => proxy.accepted > acceptedBefore, "its return");
    setTimeout(() => controller.abort(reason), 50);
    await expect(waiting).rejects.toBe(reason);
  });

  it("is rejected beyond two per address", async () => {
    const tips = [1, 2].map(() => harness.client({ WebSocket }).tipStream());
    for (const each of tips) expect((await each.next()).done).toBe(false);
    await expect(harness.client({ WebSocket }).tipStream().next()).rejects.toMatchObject({
      reason: "websocket_refused",
    });
    for (const each of tips) await each.return(undefined);
  });
});
