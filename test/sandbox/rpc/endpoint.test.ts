// Opening, closing and the faults of the endpoint.

import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import { RpcEndpoint } from "../../../src/sandbox/rpc/endpoint.ts";
import { call, post } from "../../clients/cluster.ts";
import { RpcSocket } from "../../clients/rpc-socket.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { ChainRun } from "../../support/transactions/chain.ts";

let run: ChainRun;
let clock: ManualClock;
let endpoint: RpcEndpoint;
let testService: { readonly url: string };

function open(listen: string): Promise<RpcEndpoint> {
  return RpcEndpoint.open(run.chain, clock, { listen });
}

beforeEach(async () => {
  run = await ChainRun.open();
  clock = new ManualClock();
  endpoint = await open("127.0.0.1:0");
  testService = { url: `http://${endpoint.address}` };
});

afterEach(() => {
  endpoint.close();
});

async function canListen(port: number): Promise<boolean> {
  const probe = createServer();
  const listens = await new Promise<boolean>((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => resolve(true));
  });
  await new Promise((resolve) => probe.close(resolve));
  return listens;
}

describe("listening", () => {
  it("listens on a port and the next one, for HTTP and WebSocket", async () => {
    const { port } = parseEndpoint(endpoint.address);
    expect(parseEndpoint(endpoint.webSocketAddress).port).toBe(port + 1);
    for (const address of [endpoint.address, endpoint.webSocketAddress]) {
      expect((await call({ url: `http://${address}` }, "getHealth")).result).toBe("ok");
      const socket = await RpcSocket.open(`ws://${address}/`);
      expect(await socket.subscribe("slot")).toBeTypeOf("number");
      socket.close();
    }
  });

  it("leaves nothing open if a port is in use", async () => {
    let wasGivenBack = false;
    // A connection may have the port before the one in use, so there are several attempts.
    for (let tries = 0; tries < 20 && !wasGivenBack; tries++) {
      const occupied = await open("127.0.0.1:0");
      const port = parseEndpoint(occupied.address).port - 1;
      const refusal = await open(`127.0.0.1:${port}`).catch((thrown: unknown) => thrown);
      expect(refusal).toBeInstanceOf(ShredwayError);
      expect(refusal).toMatchObject({ reason: "http_open" });
      wasGivenBack = await canListen(port);
      occupied.close();
    }
    expect(wasGivenBack).toBe(true);
    await expect(open("127.0.0.1:65535")).rejects.toMatchObject({ reason: "address_invalid" });
    await expect(open("nowhere")).rejects.toMatchObject({ reason: "address_invalid" });
  });

  it("closes everything, also if called twice", async () => {
    const socket = await RpcSocket.open(`ws://${endpoint.webSocketAddress}`);
    await socket.subscribe("slot");
    endpoint.close();
    endpoint.close();
    await socket.closed;
    await expect(call(testService, "getHealth")).rejects.toThrow("fetch failed");
    expect(endpoint.counts).toEqual({ connections: 0, subscriptions: 0 });
    run.slots(2);
    expect(socket.notifications).toEqual([]);
  });
});

describe("faults", () => {
  it("delays every response", async () => {
    endpoint.faults.delayMs = 250;
    const socket = await RpcSocket.open(`ws://${endpoint.webSocketAddress}`);
    const settled: string[] = [];
    const answers = [
      call(testService, "getHealth").then(() => settled.push("http")),
      socket.call("slotSubscribe").then(() => settled.push("socket")),
    ];
    await until(() => clock.pending >= 2, "the delayed responses");
    await clock.advance(249);
    expect(settled).toEqual([]);
    await clock.advance(1);
    await Promise.all(answers);
    endpoint.faults.delayMs = 1e6;
    const never = call(testService, "getHealth").catch(() => "cut");
    await until(() => clock.pending >= 1, "the delayed response");
    endpoint.close();
    expect(await never).toBe("cut");
    expect(clock.pending).toBe(0);
    socket.close();
  });

  it("delays many responses at once, without a warning of a leak", async () => {
    const warnings: string[] = [];
    const onWarning = ({ name }: Error): void => void warnings.push(name);
    process.on("warning", onWarning);
    endpoint.faults.delayMs = 250;
    const answers = Array.from({ length: 12 }, () => call(testService, "getHealth"));
    await until(() => clock.pending >= 12, "the delayed responses");
    await clock.advance(250);
    await Promise.all(answers);
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });

  it("reports that the node is behind", async () => {
    endpoint.faults.refuse = "behind";
    expect((await call(testService, "getSlot")).error).toMatchObject({
      code: -32005,
      data: { numSlotsBehind: null },
    });
    expect(await (await fetch(`${testService.url}/health`)).text()).toBe("behind");
    endpoint.faults.refuse = "nothing";
    expect((await call(testService, "getSlot")).result).toBe(Number(run.chain.slot("finalized")));
  });

  it("rejects all requests", async () => {
    const socket = await RpcSocket.open(`ws://${endpoint.address}`);
    endpoint.faults.refuse = "unavailable";
    expect((await post(testService, "{}")).status).toBe(503);
    await expect(RpcSocket.open(`ws://${endpoint.address}`)).rejects.toThrow("503");
    socket.raw.send("{}");
    expect(await socket.closed).toBe(1013);
  });

  it("drops notifications", async () => {
    const socket = await RpcSocket.open(`ws://${endpoint.address}`);
    const id = await socket.subscribe("slot");
    endpoint.faults.dropNotifications = true;
    run.slots(2);
    endpoint.faults.dropNotifications = false;
    run.slots(1);
    expect(await socket.next(id)).toMatchObject({ slot: Number(run.chain.slot("processed")) });
    socket.close();
  });
});
