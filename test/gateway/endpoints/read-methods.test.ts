// Read methods with a stub node, whose responses must come back unchanged, and through the gateway.

import { describe, expect, it } from "vitest";
import { handleJsonRpc } from "../../../src/core/json-rpc/handle.ts";
import { JsonText } from "../../../src/core/json-rpc/json-text.ts";
import type { NodeCalls } from "../../../src/core/json-rpc/node.ts";
import { readMethodNames, readMethodsOf } from "../../../src/gateway/endpoints/read-methods.ts";
import { RpcSocket } from "../../clients/rpc-socket.ts";
import { closing } from "../../support/closing.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { NodeStandIn } from "../../support/gateway/node-stand-in.ts";

function answerOf(node: NodeCalls | null, method: string, params = "[]"): Promise<string> {
  return handleJsonRpc(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`, {
    dispatch: (name, given) => readMethodsOf(node).call(name, given),
    report: () => "none",
  });
}

describe("readMethodsOf", () => {
  it("forwards the parameters and returns the result's text unchanged", async () => {
    const node = new NodeStandIn();
    node.answer = { result: new JsonText('{"a":18446744073709551615,"b":1.0}') };
    expect(await answerOf(node, "getAccountInfo", '["key",{"x":18446744073709551615}]')).toBe(
      '{"jsonrpc":"2.0","result":{"a":18446744073709551615,"b":1.0},"id":1}',
    );
    expect(node.requests).toEqual([["getAccountInfo", ["key", { x: 18446744073709551615n }]]]);
  });

  it("returns the node's error unchanged", async () => {
    const node = new NodeStandIn();
    node.answer = {
      error: { code: -32016, message: "not reached", data: { contextSlot: 2n ** 60n } },
    };
    expect(await answerOf(node, "getSlot")).toBe(
      '{"jsonrpc":"2.0","error":{"code":-32016,"message":"not reached",' +
        '"data":{"contextSlot":1152921504606846976}},"id":1}',
    );
  });

  it("accepts only methods of the allow-list", async () => {
    const node = new NodeStandIn();
    for (const method of readMethodNames) {
      expect(readMethodsOf(node).has(method)).toBe(true);
      expect(await readMethodsOf(node).call(method, [])).toBeInstanceOf(JsonText);
    }
    node.requests.length = 0;
    for (const method of ["getProgramAccounts", "constructor", "sendTransaction", ""]) {
      expect(readMethodsOf(node).has(method)).toBe(false);
      await expect(readMethodsOf(node).call(method, [])).rejects.toMatchObject({
        reason: "method_unknown",
        message:
          `Method not found: "${method}"; rpc.discover lists the methods, and the operator can pass on ` +
          "others of the node with gateway.readMethods",
      });
    }
    expect(node.requests).toEqual([]);
  });

  it("names the setting if no node is configured", async () => {
    expect(await answerOf(null, "getSlot")).toMatch(/"code":-32601.*solana\.rpc/);
  });

  it("passes on the methods that are listed at the time of the call", async () => {
    const node = new NodeStandIn();
    let names = new Set(["getSlot"]);
    const reads = readMethodsOf(node, () => names);
    await expect(reads.call("getBlock", [5n])).rejects.toMatchObject({ reason: "method_unknown" });
    names = new Set(["getBlock"]);
    await reads.call("getBlock", [5n]);
    await reads.call("getBlock", { slot: 5n });
    expect(node.requests).toEqual([
      ["getBlock", [5n]],
      ["getBlock", { slot: 5n }],
    ]);
    expect(reads.has("getSlot")).toBe(false);
  });
});

describe("parameters with names", () => {
  const call = (method: string): string =>
    `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"id":"a","limit":2}}`;

  it.each(["HTTP", "WebSocket"])("reach the node's methods only, over %s", async (transport) => {
    const run = await GatewayRun.open();
    const url = run.url("/?api-key=good");
    const socket =
      transport === "HTTP" ? null : closing(await RpcSocket.open(url.replace("http", "ws")));
    const answerTo = async (method: string): Promise<unknown> => {
      if (socket) return socket.answerTo(call(method), 1);
      return (await fetch(url, { method: "POST", body: call(method) })).json();
    };
    expect(await answerTo("getSlot")).toMatchObject({ result: 7 });
    expect(run.read).toEqual([{ method: "getSlot", params: { id: "a", limit: 2 } }]);
    expect(await answerTo("getAsset")).toMatchObject({
      error: { code: -32601, data: { reason: "method_unknown" } },
    });
    const refusal = 'value_invalid: Invalid params: {"id":"a","limit":2}; expected an array';
    const own = [
      "getRegions",
      "getHealth",
      "sendTransaction",
      ...(socket ? ["slotSubscribe"] : []),
    ];
    for (const method of own) {
      expect(await answerTo(method)).toMatchObject({ error: { code: -32602, message: refusal } });
    }
    expect(run.submitted).toEqual([]);
  });

  it("an empty object stands for no parameters", async () => {
    const run = await GatewayRun.open();
    const bare = (method: string) => run.post(call(method).replace(/\{"id":"a".*?\}/, "{}"));
    expect((await bare("getHealth")).body).toMatchObject({ result: "ok" });
    expect((await bare("sendTransaction")).body).toMatchObject({
      error: { message: expect.stringMatching(/^value_invalid: params\[0\]: missing value/) },
    });
    await bare("getSlot");
    expect(run.read).toEqual([{ method: "getSlot", params: {} }]);
  });

  it("need the scope", async () => {
    const run = await GatewayRun.open();
    const { body } = await run.post(call("getSlot"), "/?api-key=submitter");
    expect(body).toMatchObject({ error: { data: { reason: "scope_missing" } } });
    expect(run.read).toEqual([]);
  });
});
