// Preflight with a stub node.

import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { isJsonArray, JsonText } from "../../../src/core/json-rpc/json-text.ts";
import { preflightOf } from "../../../src/gateway/methods/preflight.ts";
import { NodeStandIn } from "../../support/gateway/node-stand-in.ts";

describe("preflight", () => {
  const options = { commitment: "confirmed", minContextSlot: 2n ** 60n } as const;
  // One signature of 64 bytes after its count, then a message: a view of a larger buffer.
  const signed = Uint8Array.of(9, 1, ...new Uint8Array(64).fill(7), 5, 6);
  const wire = signed.subarray(1);
  const unsigned = Buffer.from([1, ...new Uint8Array(64), 5, 6]).toString("base64");

  it("simulates like a node's own preflight", async () => {
    const node = new NodeStandIn();
    const value = '{"err":null,"logs":[],"unitsConsumed":18446744073709551615}';
    node.answer = { result: new JsonText(`{"context":{"slot":1},"value":${value}}`) };
    expect(await preflightOf(node).simulate(wire, options)).toEqual({
      err: null,
      logs: [],
      unitsConsumed: 18446744073709551615n,
    });
    const config = { encoding: "base64", sigVerify: false, replaceRecentBlockhash: false };
    expect(node.requests).toEqual([["simulateTransaction", [unsigned, { ...config, ...options }]]]);
    await preflightOf(node).simulate(wire, { commitment: "processed", minContextSlot: null });
    expect(node.requests[1]?.[1]).toEqual([unsigned, { ...config, commitment: "processed" }]);
  });

  it("sends no signatures for any version and leaves the original unchanged", async () => {
    const node = new NodeStandIn();
    node.answer = { result: new JsonText('{"context":{"slot":1},"value":{"err":null}}') };
    const v1 = Uint8Array.of(0x81, 2, 0, 0, 5, 5, ...new Uint8Array(128).fill(7));
    const before = v1.slice();
    await preflightOf(node).simulate(v1, options);
    const params = node.requests[0]?.[1];
    const text = isJsonArray(params) ? params[0] : null;
    const sent = Buffer.from(typeof text === "string" ? text : "", "base64");
    expect([...sent]).toEqual([0x81, 2, 0, 0, 5, 5, ...new Uint8Array(128)]);
    expect(v1).toEqual(before);
  });

  it("never treats a missing result as success", async () => {
    const node = new NodeStandIn();
    for (const text of ["null", "1", "{}", '{"value":null}', '{"value":{}}', '{"value":[]}']) {
      node.answer = { result: new JsonText(text) };
      const simulated = preflightOf(node).simulate(wire, options);
      await expect(simulated, text).rejects.toMatchObject({ reason: "rpc_failed" });
    }
    node.answer = new ShredwayError("rpc_failed", "no answer");
    await expect(preflightOf(node).simulate(wire, options)).rejects.toThrow("no answer");
    node.answer = { error: { code: -32016, message: "not reached" } };
    await expect(preflightOf(node).simulate(wire, options)).rejects.toMatchObject({
      error: { code: -32016, message: "not reached" },
    });
  });
});
