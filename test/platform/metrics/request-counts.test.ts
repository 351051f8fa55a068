// Request counts of the gateway, through the real HTTP server.

import { describe, expect, it } from "vitest";
import type { EndpointGroup } from "../../../src/gateway/endpoints/endpoint-groups.ts";
import { Gateway } from "../../../src/gateway/endpoints/gateway.ts";
import { HttpServer } from "../../../src/gateway/http/server.ts";
import { HttpServerGroup } from "../../../src/gateway/http/server-group.ts";
import type { Pages } from "../../../src/gateway/methods/dependencies.ts";
import { RpcSocket } from "../../clients/rpc-socket.ts";
import { closing } from "../../support/closing.ts";
import { GatewayRun, loopback, noPartners } from "../../support/gateway/gateway.ts";

const portal: Pages = {
  listed: ["/portal"],
  find: (path) =>
    path.startsWith("/portal")
      ? { methods: ["GET"], handle: () => ({ status: 200, body: "portal" }) }
      : undefined,
  webSockets: {},
};

function gatewayOf(pages: readonly Pages[]): Gateway {
  const region = { name: "here", url: null, tipAddresses: [], shredTipAddresses: [] };
  return new Gateway(
    { ...new GatewayRun().parts(), tracker: noPartners, pages },
    {
      regions: [region],
      withholdsShredTips: false,
      minimumTipLamports: 0n,
      minimumTipLamportsByMethod: {},
      readMethods: new Set(["getFault"]),
      partnerUnitLamports: 0n,
      trustedProxies: loopback,
    },
  );
}

describe("request counts", () => {
  it("count requests by group and status, calls by method and reason", async () => {
    const gateway = gatewayOf([portal]);
    const server = closing(
      await HttpServer.open({ ...gateway.serverOptions(), listen: ["127.0.0.1:0"] }),
    );
    const base = `http://${server.addresses[0]}`;
    const post = async (path: string, body: string) =>
      (await fetch(base + path, { method: "POST", body })).text();
    const call = (method: string) => JSON.stringify({ jsonrpc: "2.0", id: 1, method });
    await post("/relay?api-key=good", call("getTipAccounts"));
    await post("/?api-key=good", `[${call("getTipAccounts")},${call("getHealth")}]`);
    await post("/relay?api-key=good", call("sendTransaction"));
    await post("/relay?api-key=good", call("madeUp1"));
    await post("/relay?api-key=good", call("madeUp2"));
    await post("/relay?api-key=good", call("getFault"));
    await post("/relay", call("getRegions"));
    await post("/relayb?api-key=good&method=sendTransaction", "x");
    await post("/relay?api-key=good", "{");
    for (const path of [
      "/gethealth",
      "/madeUp1",
      "/madeUp2",
      "/portal/x",
      "/api/next_alt_validator/1",
    ]) {
      await (await fetch(base + path)).text();
    }
    await post("/relay", "x".repeat(600_000));
    const requests = Object.fromEntries(
      [...gateway.counts.requests()].map(([path, status, count]) => [`${path} ${status}`, count]),
    );
    expect(requests).toEqual({
      "relay 200": 7,
      "relay 401": 1,
      "relayb 200": 1,
      "health 200": 1,
      "unknown 404": 2,
      "portal 200": 1,
      "tracker 404": 1,
    });
    const calls = Object.fromEntries(
      [...gateway.counts.calls()].map(([method, reason, count]) => [`${method} ${reason}`, count]),
    );
    expect(calls).toEqual({
      "getTipAccounts ok": 2,
      "getHealth ok": 1,
      "sendTransaction value_invalid": 1,
      "other method_unknown": 2,
      "getFault internal": 1,
      "getRegions unauthorized": 1,
      "sendTransaction transaction_invalid": 1,
      "other json_invalid": 1,
    });
    expect([...gateway.counts.refusals()]).toEqual([["body_too_large", 1]]);
    const durations = new Map(gateway.counts.durations());
    expect(durations.get("relay")?.count).toBe(8);
  });
});

describe("calls over a WebSocket", () => {
  it("count like calls over HTTP", async () => {
    const gateway = gatewayOf([]);
    const server = closing(
      await HttpServer.open({ ...gateway.serverOptions(), listen: ["127.0.0.1:0"] }),
    );
    const socket = closing(await RpcSocket.open(`ws://${server.addresses[0]}/?api-key=good`));
    for (const method of ["getTipAccounts", "sendTransaction", "slotSubscribe", "madeUp"])
      await socket.call(method, []);
    expect([...gateway.counts.calls()]).toEqual([
      ["getTipAccounts", "ok", 1],
      ["sendTransaction", "value_invalid", 1],
      ["slotSubscribe", "upstream_missing", 1],
      ["other", "method_unknown", 1],
    ]);
  });
});

describe("listeners", () => {
  it("serve only the paths of their endpoint groups", async () => {
    const gateway = gatewayOf([portal]);
    const server = (...served: EndpointGroup[]) => ({
      ...gateway.serverOptions(new Set(served)),
      listen: ["127.0.0.1:0"],
    });
    const group = closing(
      await HttpServerGroup.open([
        server("gateway", "tips", "tracker", "portal"),
        server("gateway"),
        server("tracker"),
        server("portal"),
      ]),
    );
    const answers: Record<string, number[]> = {};
    for (const path of [
      "/relay",
      "/api/alt_validators",
      "/api/v1/bundles",
      "/portal",
      "/gethealth",
    ]) {
      answers[path] = [];
      for (const address of group.addresses) {
        const response = await fetch(`http://${address}${path}`);
        answers[path].push(response.status);
        const text = await response.text();
        if (response.status === 404 && address === group.addresses[2]) {
          expect(text).toContain("/api/alt_validators");
          expect(text).not.toMatch(/relay|portal|tip_floor/);
        }
      }
    }
    expect(answers).toEqual({
      "/relay": [405, 405, 404, 404],
      "/api/alt_validators": [200, 404, 200, 404],
      "/api/v1/bundles": [405, 405, 404, 404],
      "/portal": [200, 404, 404, 200],
      "/gethealth": [200, 200, 200, 200],
    });
    const upgraded = await Promise.all(
      group.addresses.map(async (address) => {
        const headers = {
          connection: "Upgrade",
          upgrade: "websocket",
          "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
          "sec-websocket-version": "13",
        };
        const { request } = await import("node:http");
        return new Promise<number>((resolve, reject) => {
          const requests = request(`http://${address}/status?api-key=good`, { headers });
          requests.on("upgrade", (response, socket) => {
            socket.destroy();
            resolve(response.statusCode ?? 0);
          });
          requests.on("response", (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          });
          requests.on("error", reject);
          requests.end();
        });
      }),
    );
    expect(upgraded).toEqual([101, 101, 404, 404]);
    expect(group.webSockets.get("/status")).toBeDefined();
  });
});
