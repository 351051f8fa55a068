import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { parseAddressRange } from "../../../src/core/addresses/addresses.ts";
import { requestsPerSecond, streamsMax } from "../../../src/gateway/endpoints/tip-floor.ts";
import type { TipFloor, TipSnapshot } from "../../../src/tips/tip-types.ts";
import { closing } from "../../support/closing.ts";
import { GatewayRun, loopback } from "../../support/gateway/gateway.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { RawClient } from "../http/clients.ts";

const snapshot: TipSnapshot = {
  timeMs: 1_767_226_500_000,
  percentiles: { p25: 6_001n, p50: 10_000n, p75: 36_196n, p95: 1_447_905n, p99: 10_000_799n },
  emaP50: 9_836n,
  count: 123,
  windowStartMs: 1_767_225_600_000,
  isStale: false,
};
const element = {
  time: "2026-01-01T00:15:00.000Z",
  landed_tips_25th_percentile: 6001,
  landed_tips_50th_percentile: 10_000,
  landed_tips_75th_percentile: 36_196,
  landed_tips_95th_percentile: 1_447_905,
  landed_tips_99th_percentile: 10_000_799,
  count: 123,
  window_start: "2026-01-01T00:00:00.000Z",
  stale: false,
};
const solElement = {
  time: "2026-01-01T00:15:00.000Z",
  landed_tips_25th_percentile: 0.000006001,
  landed_tips_50th_percentile: 0.00001,
  landed_tips_75th_percentile: 0.000036196,
  landed_tips_95th_percentile: 0.001447905,
  landed_tips_99th_percentile: 0.010000799,
  ema_landed_tips_50th_percentile: 0.000009836,
  count: 123,
  window_start: "2026-01-01T00:00:00.000Z",
  stale: false,
};

/** Counts its reads. */
class Floor implements TipFloor {
  requests = 0;
  #snapshot = snapshot;
  readonly #listeners = new Set<(snapshot: TipSnapshot) => void>();

  get snapshot(): TipSnapshot {
    this.requests++;
    return this.#snapshot;
  }

  onRefresh(listener: (snapshot: TipSnapshot) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  refresh(changes: Partial<TipSnapshot>): void {
    this.#snapshot = { ...snapshot, ...changes };
    for (const listener of this.#listeners) listener(this.#snapshot);
  }
}

interface Opened {
  readonly run: GatewayRun;
  readonly floor: Floor;
}

async function opened(proxies: ReturnType<typeof parseAddressRange>[] = []): Promise<Opened> {
  const floor = new Floor();
  const run = await GatewayRun.open({ trustedProxies: proxies }, { tipFloor: floor });
  return { run, floor };
}

async function ask(
  { run }: Opened,
  path = "/tip_floor",
  init: RequestInit = {},
): Promise<{ status: number; headers: Headers; text: string; body: unknown }> {
  const response = await fetch(run.url(path), init);
  const text = await response.text();
  const body: unknown = text === "" ? null : JSON.parse(text);
  return { status: response.status, headers: response.headers, text, body };
}

function from(address: string): RequestInit {
  return { headers: { "x-forwarded-for": address } };
}

class StreamClient {
  readonly messages: unknown[] = [];
  readonly socket: WebSocket;
  isOpen = false;
  pings = 0;
  closeCode: number | null = null;
  refusal: { status: number; headers: Record<string, unknown>; body: unknown } | null = null;

  private constructor({ run }: Opened, path: string, address: string) {
    this.socket = new WebSocket(run.url(path).replace("http", "ws"), {
      headers: { "x-forwarded-for": address },
    });
    this.socket.on("open", () => {
      this.isOpen = true;
    });
    this.socket.on("message", (data: Buffer) => this.messages.push(JSON.parse(data.toString())));
    this.socket.on("close", (code) => {
      this.closeCode = code;
    });
    this.socket.on("error", () => undefined); // refusals, checked below
    this.socket.on("unexpected-response", (_, response) => {
      let text = "";
      response.on("data", (piece: Buffer) => {
        text += piece.toString();
      });
      response.on("end", () => {
        const { statusCode = 0, headers } = response;
        this.refusal = { status: statusCode, headers, body: JSON.parse(text) };
      });
    });
  }

  /** Settles on the first message or a refusal. */
  static async open(testServer: Opened, path = "/tip_stream", address = ""): Promise<StreamClient> {
    const client = closing(new StreamClient(testServer, path, address));
    await turnsUntil(() => client.messages.length > 0 || client.refusal !== null);
    return client;
  }

  close(): void {
    this.socket.terminate();
  }
}

/** The server notices a closed stream later: retries until one more is accepted. */
async function openWhenFree(testServer: Opened, address = ""): Promise<StreamClient> {
  for (;;) {
    await testServer.run.clock.advance(1000);
    const client = await StreamClient.open(testServer, "/tip_stream", address);
    if (client.refusal === null) return client;
  }
}

describe("/tip_floor", () => {
  it("returns an array with one snapshot, in the specification's field order", async () => {
    const setup = await opened();
    const { status, headers, text } = await ask(setup);
    expect(status).toBe(200);
    expect(text).toBe(JSON.stringify([element]));
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.get("cache-control")).toBe("public, max-age=5");
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect((await ask(setup, "/tip_floor?format=lamports")).text).toBe(text);
    expect((await ask(setup, "/tip_floor?api-key=wrong")).text).toBe(text);
  });

  it("returns SOL amounts like block engines", async () => {
    const { text } = await ask(await opened(), "/tip_floor?format=sol");
    expect(JSON.parse(text)).toEqual([solElement]);
    expect(Object.keys(JSON.parse(text)[0])).toEqual(Object.keys(solElement));
  });

  it("returns them in SOL at the path of block engines, unless the caller asks for lamports", async () => {
    const setup = await opened();
    const path = "/api/v1/bundles/tip_floor";
    expect((await ask(setup, path)).body).toEqual([solElement]);
    expect((await ask(setup, `${path}?format=lamports`)).body).toEqual([element]);
    expect((await ask(setup, path, { method: "POST" })).status).toBe(405);
    const { body } = await ask(setup, `${path}?format=euro`);
    expect(body).toMatchObject({ error: { message: expect.stringContaining("sol or lamports") } });
  });

  it("returns exact lamports of any size", async () => {
    const setup = await opened();
    const percentiles = { ...snapshot.percentiles, p99: 2n ** 53n + 1n };
    setup.floor.refresh({ percentiles });
    expect((await ask(setup)).text).toContain('"landed_tips_99th_percentile":9007199254740993,');
  });

  it("rejects an unknown format", async () => {
    const { status, headers, body } = await ask(await opened(), "/tip_floor?format=euro");
    expect(status).toBe(400);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(body).toEqual({
      error: {
        reason: "value_invalid",
        message: 'URI parameter format: invalid value "euro"; expected lamports or sol',
      },
    });
  });

  it("reads the snapshot at a refresh, not per request", async () => {
    const setup = await opened();
    const requestsBefore = setup.floor.requests;
    for (let i = 0; i < 5; i++) await ask(setup);
    expect(setup.floor.requests).toBe(requestsBefore);
    setup.floor.refresh({ count: 5, isStale: true });
    expect((await ask(setup)).body).toEqual([{ ...element, count: 5, stale: true }]);
  });

  it("supports HEAD and browsers, and no other method", async () => {
    const setup = await opened();
    const head = await ask(setup, "/tip_floor", { method: "HEAD" });
    expect([head.status, head.text]).toEqual([200, ""]);
    expect(head.headers.get("content-length")).toBe(String(JSON.stringify([element]).length));
    const answer = await ask(setup, "/tip_floor", { headers: { origin: "http://a.example" } });
    expect(answer.headers.get("access-control-expose-headers")).toContain("x-ratelimit-limit");
    const preflight = await ask(setup, "/tip_floor", { method: "OPTIONS" });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-methods")).toBe("GET, HEAD, OPTIONS");
    expect((await ask(setup, "/tip_floor", { method: "POST" })).status).toBe(405);
    expect((await ask(setup, "/tip_stream")).status).toBe(426);
  });

  it("is an unknown path without tip statistics", async () => {
    const run = await GatewayRun.open();
    for (const path of ["/tip_floor", "/tip_stream"]) {
      const response = await fetch(run.url(path));
      expect(response.status).toBe(404);
      expect(await response.text()).toContain("path_unknown");
    }
    const socket = new WebSocket(run.url("/tip_stream").replace("http", "ws"));
    const refused = new Promise((resolve) => {
      socket.on("unexpected-response", (_, { statusCode }) => resolve(statusCode));
    });
    socket.on("error", () => undefined);
    expect(await refused).toBe(404);
  });
});

describe("the limit of /tip_floor", () => {
  it("refuses the eleventh request in a second and returns the retry time", async () => {
    const setup = await opened();
    for (let i = 1; i <= requestsPerSecond; i++) {
      const { status, headers } = await ask(setup);
      expect(status).toBe(200);
      expect(headers.get("x-ratelimit-limit")).toBe("10");
      expect(headers.get("x-ratelimit-remaining")).toBe(String(10 - i));
    }
    const { status, headers, body } = await ask(setup, "/tip_floor", { method: "GET" });
    expect(status).toBe(429);
    expect(headers.get("retry-after")).toBe("1");
    expect(headers.get("x-ratelimit-limit")).toBe("10");
    expect(headers.get("x-ratelimit-remaining")).toBe("0");
    expect(headers.get("x-ratelimit-reset")).toBe("1");
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(body).toEqual({
      error: {
        reason: "rate_limited",
        message: "rate limit exceeded: 10 requests per second from an address; retry in 1 s",
      },
    });
    expect((await ask(setup, "/tip_floor", { method: "HEAD" })).status).toBe(429);
    expect((await ask(setup, "/tip_floor?format=wrong")).status).toBe(429);
    // Ten in any second: none is allowed before the first of the ten is a second old.
    await setup.run.clock.advance(999);
    expect((await ask(setup)).status).toBe(429);
    await setup.run.clock.advance(1);
    for (let i = 1; i <= requestsPerSecond; i++) expect((await ask(setup)).status).toBe(200);
    expect((await ask(setup)).status).toBe(429);
  });

  it("counts an IPv6 /64 as one caller", async () => {
    const setup = await opened(loopback);
    const exhaust = async (address: string) => {
      for (let i = 0; i < requestsPerSecond; i++) await ask(setup, "/tip_floor", from(address));
    };
    const statusOf = async (address: string) =>
      (await ask(setup, "/tip_floor", from(address))).status;
    await exhaust("203.0.113.1");
    expect(await statusOf("203.0.113.1")).toBe(429);
    expect(await statusOf("203.0.113.2")).toBe(200);
    await exhaust("2001:db8:0:1::1");
    expect(await statusOf("2001:db8:0:1:ffff::9")).toBe(429);
    expect(await statusOf("2001:db8:0:2::1")).toBe(200);
  });

  it("ignores forwarding headers of untrusted proxies", async () => {
    for (const proxies of [[], [parseAddressRange("192.0.2.0/24")]]) {
      const setup = await opened(proxies);
      let limited = 0;
      for (let i = 0; i < 12; i++) {
        const { status } = await ask(setup, "/tip_floor", from(`203.0.113.${i}`));
        if (status === 429) limited++;
      }
      expect(limited).toBe(2);
    }
  });
});

describe("/tip_stream", () => {
  it("pushes one element when it opens and after every refresh", async () => {
    const setup = await opened();
    const client = await StreamClient.open(setup);
    const sol = await StreamClient.open(setup, "/tip_stream?format=sol");
    expect(client.messages).toEqual([element]);
    expect(sol.messages).toEqual([solElement]);
    setup.floor.refresh({ count: 7 });
    setup.floor.refresh({ isStale: true });
    await turnsUntil(() => client.messages.length + sol.messages.length === 6);
    expect(client.messages.slice(1)).toEqual([
      { ...element, count: 7 },
      { ...element, stale: true },
    ]);
    expect(sol.messages.at(-1)).toEqual({ ...solElement, stale: true });
  });

  it("limits the open streams of an address", async () => {
    const setup = await opened(loopback);
    const clients: StreamClient[] = [];
    for (let i = 0; i < streamsMax; i++) {
      clients.push(await StreamClient.open(setup, "/tip_stream", "2001:db8::1"));
    }
    const { refusal } = await StreamClient.open(setup, "/tip_stream", "2001:db8::2");
    expect(refusal).toMatchObject({
      status: 429,
      headers: { "retry-after": "1" },
      body: {
        error: {
          reason: "rate_limited",
          message: "too many streams from this address: at most 2; close one or retry in 1 s",
        },
      },
    });
    const other = await StreamClient.open(setup, "/tip_stream", "203.0.113.2");
    expect(other.isOpen).toBe(true);
    clients[0]?.close();
    expect((await openWhenFree(setup, "2001:db8::3")).messages).toEqual([element]);
    expect((await StreamClient.open(setup, "/tip_stream", "2001:db8::4")).refusal).toMatchObject({
      status: 429,
    });
  });

  it("limits the handshakes per second, including failed ones", async () => {
    const setup = await opened();
    for (let i = 0; i < 10; i++) {
      const { refusal } = await StreamClient.open(setup, "/tip_stream?format=euro");
      expect(refusal).toMatchObject({ status: 400, body: { error: { reason: "value_invalid" } } });
    }
    const { refusal } = await StreamClient.open(setup);
    expect(refusal).toMatchObject({ status: 429, headers: { "x-ratelimit-remaining": "0" } });
    // Requests have their own limit.
    expect((await ask(setup)).status).toBe(200);
  });

  it("ignores messages, and closes on more than a kilobyte", async () => {
    const setup = await opened();
    const client = await StreamClient.open(setup);
    for (const text of ["", "{", "x".repeat(1024)]) client.socket.send(text);
    setup.floor.refresh({ count: 1 });
    await turnsUntil(() => client.messages.length === 2);
    expect([client.closeCode, client.messages.length]).toEqual([null, 2]);
    client.socket.send("x".repeat(1025));
    await turnsUntil(() => client.closeCode !== null);
    expect(client.closeCode).toBe(1009);
    await openWhenFree(setup);
  });

  it("closes a client that does not read, and serves the others", async () => {
    const setup = await opened();
    const reader = await StreamClient.open(setup);
    const slow = await RawClient.open(setup.run.server);
    await slow.write(
      "GET /tip_stream HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    await slow.readUntil(/landed_tips/);
    slow.socket.pause();
    const { connections } = setup.run.server;
    let pushed = 1;
    while (setup.run.server.connections === connections && pushed < 100_000) {
      for (let i = 0; i < 50; i++) setup.floor.refresh({ count: pushed++ });
      await turnsUntil(() => reader.messages.length === pushed);
    }
    // The kernel buffers some megabytes of messages of about 400 bytes.
    expect(setup.run.server.connections).toBe(connections - 1);
    expect(reader.closeCode).toBeNull();
    expect(reader.messages.at(-1)).toEqual({ ...element, count: pushed - 1 });
  });

  it("serves many streams in steps", async () => {
    const setup = await opened(loopback);
    const clients = await Promise.all(
      Array.from({ length: 130 }, (_, i) =>
        StreamClient.open(setup, "/tip_stream", `203.0.113.${i}`),
      ),
    );
    clients[0]?.close();
    setup.floor.refresh({ count: 9 });
    const reached = () => clients.filter(({ messages }) => messages.length === 2).length;
    expect(setup.run.clock.pending).toBe(1);
    await turnsUntil(() => reached() >= 99);
    await setup.run.clock.advance(0);
    await turnsUntil(() => reached() === 129);
    expect(setup.run.clock.pending).toBe(0);
    expect(clients.at(-1)?.messages.at(-1)).toEqual({ ...element, count: 9 });
  });
});
