import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { KeyPair } from "../../../src/core/key-pair.ts";
import { createLogger } from "../../../src/core/log.ts";
import {
  Subscription,
  type SubscriptionSettings,
} from "../../../src/relay/shredstream/subscription.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { selfSignedCertificate } from "../../support/quic/self-signed.ts";
import { TestBlockEngine } from "../../support/shredstream/test-block-engine.ts";

const key = new KeyPair(new Uint8Array(32).fill(9));

function subscribe(
  url: string,
  settings: Partial<SubscriptionSettings> = {},
  certificate?: string,
) {
  const clock = ManualClock.running();
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const traffic = { packets: 0n };
  const subscription = closing(
    new Subscription(
      { name: "fra", url, authUrl: url, key, regions: ["frankfurt"], port: 20_000, ...settings },
      {
        clock,
        log,
        countPackets: () => traffic.packets,
        random: () => 0,
        certificateAuthorities: certificate,
      },
    ),
  );
  subscription.start();
  const reaches = (state: string) =>
    until(() => subscription.status.state === state, `state ${state}`);
  return { subscription, clock, lines, traffic, reaches };
}

describe("Subscription", () => {
  it("authenticates and sends its own address, port and regions", async () => {
    const engine = closing(await TestBlockEngine.open());
    const { subscription, reaches, lines } = subscribe(engine.url, { regions: ["ny", "slc"] });
    await reaches("subscribed");
    expect(engine.calls).toEqual(["challenge", "tokens", "heartbeat"]);
    expect(engine.heartbeats).toMatchObject([
      { ip: "127.0.0.1", port: 20_000, regions: ["ny", "slc"] },
    ]);
    expect(subscription.status).toMatchObject({
      problem: null,
      target: "127.0.0.1:20000",
      ttlMs: 120_000,
      counts: { authentication: 1, heartbeat: 1, heartbeat_failure: 0 },
    });
    expect(lines.join()).toContain("127.0.0.1 is an address of class loopback");
    expect(lines.join()).toContain("heartbeat every 40 s");
    expect(lines.join()).not.toContain(engine.heartbeats[0]?.authorization.slice(7));
  });

  it("uses TLS, and reports a certificate that it does not trust", async () => {
    const engine = closing(await TestBlockEngine.open({ tls: true }));
    const trusting = subscribe(engine.url, {}, selfSignedCertificate);
    await trusting.reaches("subscribed");
    const { subscription, reaches } = subscribe(engine.url);
    await reaches("failing");
    expect(subscription.status.problem).toMatch(/^UNAVAILABLE: connection to .*self-signed/);
  });

  it("sends the given address, and heartbeats at a third of the lease", async () => {
    const engine = closing(await TestBlockEngine.open({ ttlMs: 9000 }));
    const { clock, traffic, reaches } = subscribe(engine.url, { publicAddress: "192.0.2.7" });
    await reaches("subscribed");
    for (let count = 2; count < 6; count++) {
      traffic.packets++;
      clock.move(2900);
      expect(engine.heartbeats).toHaveLength(count - 1);
      clock.move(101);
      await until(() => engine.heartbeats.length === count, `heartbeat ${count}`);
    }
    expect(engine.heartbeats.every(({ ip }) => ip === "192.0.2.7")).toBe(true);
    expect(engine.countOf("challenge")).toBe(1);
  });

  it("uses a separate authentication service", async () => {
    const auth = closing(await TestBlockEngine.open());
    const engine = closing(await TestBlockEngine.open());
    const { reaches } = subscribe(engine.url, { authUrl: auth.url });
    await reaches("failing"); // the two test engines share no tokens
    expect(auth.calls.slice(0, 2)).toEqual(["challenge", "tokens"]);
    expect(engine.calls[0]).toBe("heartbeat");
  });

  it("renews the access token before it expires, and all tokens before the refresh token does", async () => {
    const engine = closing(await TestBlockEngine.open({ ttlMs: 3_600_000, accessSeconds: 1200 }));
    const { clock, traffic, reaches } = subscribe(engine.url);
    engine.settings.nowMs = () => Number(clock.nowNs() / 1_000_000n);
    await reaches("subscribed");
    const passMinutes = (count: number) => {
      for (let i = 0; i < count * 3; i++) {
        traffic.packets++;
        clock.move(20_000);
      }
    };
    passMinutes(14);
    expect(engine.countOf("refresh")).toBe(0);
    passMinutes(2);
    await until(() => engine.countOf("refresh") === 1, "a refresh");
    engine.settings.refreshSeconds = 0;
    engine.forgetTokens();
    passMinutes(15);
    await until(() => engine.countOf("challenge") === 2, "a new challenge");
  });

  it("continues with heartbeats while the renewal fails", async () => {
    const engine = closing(await TestBlockEngine.open({ ttlMs: 30_000, accessSeconds: 600 }));
    engine.settings.refuse = (method) =>
      method === "refresh" ? { code: status.UNAVAILABLE, details: "busy" } : undefined;
    const { subscription, clock, traffic, reaches, lines } = subscribe(engine.url);
    await reaches("subscribed");
    traffic.packets++;
    clock.move(400_000);
    await until(() => subscription.status.counts.refresh_failure > 0, "a failed renewal");
    await until(() => engine.heartbeats.length > 1, "a heartbeat");
    const { counts } = subscription.status;
    while (subscription.status.counts.refresh_failure < counts.refresh_failure + 3) {
      traffic.packets++;
      const { heartbeat } = subscription.status.counts;
      clock.move(10_001);
      await until(() => subscription.status.counts.heartbeat > heartbeat, "the next heartbeat");
    }
    // Each of the heartbeats in between succeeded.
    const reports = lines.filter((line) => line.includes("the access token was not renewed"));
    expect(reports).toHaveLength(1);
    expect(reports[0]).toContain("UNAVAILABLE: busy");
    expect(subscription.status.state).toBe("subscribed");
    expect(engine.countOf("challenge")).toBe(1);
  });

  it("reports a rejected configuration once and retries after five minutes", async () => {
    const engine = closing(await TestBlockEngine.open());
    engine.settings.refuse = (method) =>
      method === "heartbeat"
        ? { code: status.INVALID_ARGUMENT, details: "socket ip mismatch" }
        : undefined;
    const { subscription, clock, reaches, lines } = subscribe(engine.url);
    await reaches("rejected");
    expect(subscription.status.problem).toBe("INVALID_ARGUMENT: socket ip mismatch");
    clock.move(299_000);
    expect(engine.countOf("heartbeat")).toBe(1);
    for (let attempt = 2; attempt < 5; attempt++) {
      clock.move(301_000);
      await until(() => engine.countOf("heartbeat") === attempt, `attempt ${attempt}`);
      await until(() => subscription.status.counts.heartbeat_failure === attempt, "its result");
    }
    expect(lines.filter((line) => line.includes("rejects this configuration"))).toHaveLength(1);
    expect(lines.join()).toContain(key.address);
    engine.settings.refuse = () => undefined;
    clock.move(301_000);
    await reaches("subscribed");
  });

  it("backs off while the authentication fails", async () => {
    const engine = closing(await TestBlockEngine.open());
    engine.settings.refuse = () => ({ code: status.RESOURCE_EXHAUSTED, details: "slow down" });
    const { subscription, clock, lines } = subscribe(engine.url);
    const failures = () => subscription.status.counts.authentication_failure;
    await until(() => failures() === 1, "the first failure");
    for (const [i, seconds] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
      clock.move(seconds * 1000 - 300);
      expect(engine.countOf("challenge")).toBe(i + 1);
      clock.move(301);
      await until(() => failures() === i + 2, `failure ${i + 2}`);
    }
    expect(lines.filter((line) => line.includes("slow down"))).toHaveLength(1);
  });

  it("authenticates again when the engine has forgotten the tokens", async () => {
    const engine = closing(await TestBlockEngine.open({ ttlMs: 30_000 }));
    const { clock, traffic, subscription, reaches } = subscribe(engine.url);
    await reaches("subscribed");
    engine.forgetTokens();
    traffic.packets++;
    clock.move(10_001);
    await reaches("failing");
    expect(subscription.status.problem).toBe("UNAUTHENTICATED: unknown token");
    clock.move(1001);
    await until(() => engine.countOf("challenge") === 2, "a new challenge");
    await reaches("subscribed");
  });

  it("authenticates again when no packet arrives for 30 s", async () => {
    const engine = closing(await TestBlockEngine.open());
    const { clock, traffic, subscription, reaches, lines } = subscribe(engine.url);
    await reaches("subscribed");
    for (let i = 0; i < 4; i++) {
      traffic.packets++;
      clock.move(20_000);
    }
    expect(subscription.status.state).toBe("subscribed");
    await until(() => {
      clock.move(1000);
      return subscription.status.state === "silent";
    }, "silence");
    expect(subscription.status.problem).toContain("no shred for 30 s at 127.0.0.1:20000");
    expect(lines.join()).toContain("although the heartbeat is accepted");
    clock.move(1001);
    await until(() => engine.countOf("heartbeat") >= 2, "a new subscription");
    await reaches("subscribed");
    expect(engine.countOf("challenge")).toBe(2);
  });

  it("survives a kill of the engine, and retries a lost heartbeat without a new authentication", async () => {
    const engine = closing(await TestBlockEngine.open({ ttlMs: 30_000 }));
    let isBusy = false;
    engine.settings.refuse = () =>
      isBusy ? { code: status.UNAVAILABLE, details: "busy" } : undefined;
    const { clock, traffic, subscription, reaches } = subscribe(engine.url);
    await reaches("subscribed");
    isBusy = true;
    traffic.packets++;
    clock.move(10_001);
    await until(() => subscription.status.counts.heartbeat_failure === 1, "a failed heartbeat");
    isBusy = false;
    clock.move(1001);
    await until(() => subscription.status.counts.heartbeat === 2, "the repeated heartbeat");
    expect(engine.countOf("challenge")).toBe(1);
    engine.close();
    await until(() => {
      traffic.packets++;
      clock.move(1000);
      return subscription.status.state === "failing";
    }, "a failed subscription");
    expect(subscription.status.counts.heartbeat_failure).toBe(4);
    expect(subscription.status.problem).toContain("UNAVAILABLE");
    const next = closing(await TestBlockEngine.open({ port: engine.port }));
    clock.move(60_000); // only the pause before the next attempt: a slow call must not reach its time limit
    await until(() => next.heartbeats.length > 0, "a subscription at the new engine");
  });

  it("reports a server that does not answer, and one that does not speak gRPC", async () => {
    const sockets: Socket[] = [];
    const mute = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => void mute.listen(0, "127.0.0.1", resolve));
    closing({
      close: () => {
        for (const socket of sockets) socket.destroy();
        mute.close();
      },
    });
    const urlOf = (server: { address(): unknown }) =>
      `http://127.0.0.1:${Reflect.get(Object(server.address()), "port")}`;
    const { subscription, clock, reaches } = subscribe(urlOf(mute));
    await until(() => sockets.length === 1, "a connection");
    clock.move(10_001);
    await reaches("failing");
    expect(subscription.status.problem).toBe("DEADLINE_EXCEEDED: no response within 10000 ms");
    const http = createHttpServer((_, response) => response.end("hello"));
    closing({ close: () => void http.close() });
    await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
    const other = subscribe(urlOf(http));
    await other.reaches("failing");
    expect(other.subscription.status.problem).toMatch(/^UNAVAILABLE: connection to 127.0.0.1/);
  });

  it.each([
    ["a challenge that is not text", "challenge", { challenge: "a b" }, "printable ASCII"],
    ["an empty challenge", "challenge", {}, "printable ASCII"],
    ["a long challenge", "challenge", { challenge: "x".repeat(1025) }, "got 1025"],
    [
      "tokens without a refresh token",
      "tokens",
      { refresh_token: null },
      "refresh token is missing",
    ],
    ["no tokens", "tokens", { access_token: null }, "access token is missing"],
    ["no room", "tokens", { access_token: { value: "x".repeat(70_000) } }, "at most 65536 bytes"],
  ])("reports %s, signs nothing else, and backs off", async (_, method, changes, problem) => {
    const engine = closing(await TestBlockEngine.open());
    engine.settings.change = (called, response) =>
      called !== method ? response : method === "challenge" ? changes : { ...response, ...changes };
    const { subscription, clock, reaches } = subscribe(engine.url);
    await reaches("failing");
    expect(subscription.status.problem).toContain(problem);
    expect(engine.countOf("tokens")).toBe(method === "challenge" ? 0 : 1);
    clock.move(700);
    expect(engine.countOf("challenge")).toBe(1);
    engine.settings.change = (__, response) => response;
    clock.move(301);
    await reaches("subscribed");
  });

  it.each([
    [0, 1000],
    [4_294_967_295, 300_000],
  ])(
    "keeps the interval of heartbeats within bounds for a lease of %i ms",
    async (ttlMs, least) => {
      const engine = closing(await TestBlockEngine.open({ ttlMs }));
      const { clock, traffic, reaches } = subscribe(engine.url);
      await reaches("subscribed");
      for (let passed = 0; passed < least - 1; passed += 20_000) {
        traffic.packets++;
        clock.move(Math.min(20_000, least - 1 - passed));
      }
      expect(engine.countOf("heartbeat")).toBe(1);
      traffic.packets++;
      clock.move(2);
      await until(() => engine.countOf("heartbeat") === 2, "the second heartbeat");
    },
  );

  it("leaves no timer and no connection behind", async () => {
    const engine = closing(await TestBlockEngine.open());
    const { subscription, clock, reaches } = subscribe(engine.url);
    await reaches("subscribed");
    subscription.close();
    await until(() => clock.pending === 0, "no timers");
    expect(subscription.status.state).toBe("stopped");
    const probe = connect(engine.port, "127.0.0.1");
    closing({ close: () => void probe.destroy() });
  });
});
