import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorTable, ShredwayError } from "../../../src/core/errors.ts";
import { knownCodes } from "../../../src/core/json-rpc/codes.ts";
import { answerJsonRpc, handleJsonRpc } from "../../../src/core/json-rpc/handle.ts";
import { type Json, readJson } from "../../../src/core/json-rpc/json-text.ts";
import { ForwardedError } from "../../../src/core/json-rpc/refusal.ts";

const reported: unknown[] = [];
const called: string[] = [];

function dispatch(method: string, params: readonly Json[]): unknown {
  called.push(method);
  switch (method) {
    case "echo":
      return params;
    case "later":
      return Promise.resolve("done");
    case "nothing":
      return undefined;
    case "refuse":
      throw new ShredwayError("value_invalid", "expected more, got less");
    case "facts":
      throw new ShredwayError("tip_too_low", "more", {
        details: { tipLamports: 4n, minimumLamports: 5n },
      });
    case "data":
      throw new ShredwayError("preflight_failed", "it failed", {
        details: { logs: ["a"], err: null },
      });
    case "local":
      throw new ShredwayError("relay_open", "no code for callers");
    default:
      return Promise.reject(new TypeError(`secret of ${method}`));
  }
}

async function answerTo(text: string): Promise<unknown> {
  const report = (thrown: unknown) => {
    reported.push(thrown);
    return "r1";
  };
  const answer = await handleJsonRpc(text, { dispatch, report, batchMax: 3 });
  return answer === "" ? null : (JSON.parse(answer) as unknown);
}

function request(fields: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "echo", ...fields });
}

describe("handleJsonRpc", () => {
  it("answers a call", async () => {
    const answer = { jsonrpc: "2.0", result: [1, "a", null], id: 1 };
    expect(await answerTo(request({ params: [1, "a", null] }))).toEqual(answer);
    expect(await answerTo(request({ method: "later" }))).toMatchObject({ result: "done" });
    expect(await answerTo(request({ method: "nothing", params: null }))).toEqual({
      jsonrpc: "2.0",
      result: null,
      id: 1,
    });
  });

  it("echoes an id of any type unchanged", async () => {
    const ids = fc.jsonValue({ maxDepth: 3 }).filter((id) => id !== undefined);
    await fc.assert(
      fc.asyncProperty(ids, async (id) => {
        const text = request({ id });
        const sent: unknown = JSON.parse(text);
        const answer = await answerTo(text);
        expect(Object(answer).id).toEqual(Object(sent).id);
      }),
    );
    const long = '{"jsonrpc":"2.0","id":18446744073709551615,"method":"echo"}';
    const answer = await handleJsonRpc(long, { dispatch, report: () => "" });
    expect(answer).toBe('{"jsonrpc":"2.0","result":[],"id":18446744073709551615}');
    for (const id of ["1e2", "-0", "1.0"]) {
      const call = `{"jsonrpc":"2.0","id":${id},"method":"echo"}`;
      const answers = await handleJsonRpc(`[${call}]`, { dispatch, report: () => "" });
      expect(answers).toBe(`[{"jsonrpc":"2.0","result":[],"id":${id}}]`);
      const refused = await handleJsonRpc(call.replace("echo", "refuse"), {
        dispatch,
        report: () => "",
      });
      expect(refused).toContain(`},"id":${id}}`);
    }
  });

  it.each([
    ["[]", "got 0 calls; expected an array of 1 to 3 calls"],
    ["[1,2,3,4]", "got 4 calls; expected an array of 1 to 3 calls"],
    ["5", "invalid value 5; expected an object"],
    ["{}", 'missing jsonrpc; expected "2.0"'],
    [request({ jsonrpc: 2 }), 'jsonrpc: invalid value 2; expected "2.0"'],
    [request({ method: undefined }), "missing method; expected the name of a method"],
    [request({ method: null }), "method: invalid value null; expected the name of a method"],
  ])("says what is wrong with %s", async (text, problem) => {
    const message = `Invalid request: ${problem}`;
    expect(await answerTo(text)).toMatchObject({ error: { code: -32600, message } });
  });

  it("neither runs nor answers notifications", async () => {
    called.length = 0;
    expect(await answerTo('{"jsonrpc":"2.0","method":"echo"}')).toBeNull();
    expect(await answerTo('[{"jsonrpc":"2.0","method":"echo"}]')).toBeNull();
    expect(called).toEqual([]);
  });

  it("ignores and does not count the heartbeat, where calls without an id are answered", async () => {
    const ended: string[] = [];
    const options = {
      dispatch,
      report: () => "",
      admit: (method: string) => void ended.push(`begin ${method}`),
      ended: (method: string) => void ended.push(`end ${method}`),
      answersWithoutId: true,
      heartbeatMethod: "echo",
    };
    const heartbeat = '{"jsonrpc":"2.0","method":"echo"}';
    expect(await handleJsonRpc(heartbeat, options)).toBe("");
    expect(ended).toEqual([]);
    const later = '{"jsonrpc":"2.0","method":"later"}';
    const answered = '[{"jsonrpc":"2.0","result":"done","id":null}]';
    expect(await handleJsonRpc(`[${heartbeat},${later}]`, options)).toBe(answered);
    expect(await handleJsonRpc(request({ id: null }), options)).toContain('"result":[],"id":null');
    expect(ended).toEqual(["begin later", "end later", "begin echo", "end echo"]);
  });

  it("runs calls whose parameters have names where they are accepted", async () => {
    const named = request({ params: { id: "a", limit: 2 } });
    const refusal = 'Invalid params: {"id":"a","limit":2}; expected an array';
    expect(await answerTo(named)).toMatchObject({ error: { code: -32602, message: refusal } });
    const options = { dispatch, dispatchNamed: (...call: unknown[]) => call, report: () => "r1" };
    expect(JSON.parse(await handleJsonRpc(named, options))).toMatchObject({
      result: ["echo", { id: "a", limit: 2 }],
    });
    expect(JSON.parse(await handleJsonRpc(request({ params: [1] }), options))).toMatchObject({
      result: [1],
    });
    const text = await handleJsonRpc(request({ params: "a" }), options);
    expect(JSON.parse(text)).toMatchObject({ error: { code: -32602 } });
  });

  it("answers arrays in order, without the notifications", async () => {
    const calls = [request({ id: "a" }), '{"jsonrpc":"2.0","method":"echo"}', request({ id: "b" })];
    expect(await answerTo(`[${calls.join(",")}]`)).toMatchObject([{ id: "a" }, { id: "b" }]);
    expect(await answerTo("[]")).toMatchObject({ id: null, error: { code: -32600 } });
    expect(await answerTo("[1,2,3,4]")).toMatchObject({ id: null, error: { code: -32600 } });
    expect(await answerTo("[1]")).toMatchObject([{ id: null, error: { code: -32600 } }]);
  });

  it.each([
    ["{", -32700],
    ["", -32700],
    ["[".repeat(100_000), -32700],
    ["1", -32600],
    ["{}", -32600],
    [request({ jsonrpc: "1.0" }), -32600],
    [request({ method: 5 }), -32600],
    [request({ params: { a: 1 } }), -32602],
    [request({ method: "refuse" }), -32602],
    [request({ method: "data" }), -32002],
    [request({ method: "local" }), -32603],
    [request({ method: "unknown" }), -32603],
  ])("answers %s with its code", async (text, code) => {
    expect(await answerTo(text)).toMatchObject({ jsonrpc: "2.0", error: { code } });
  });

  it("shows the full text of expected errors and no text of internal errors", async () => {
    expect(await answerTo(request({ method: "refuse" }))).toMatchObject({
      error: { message: "expected more, got less", data: { reason: "value_invalid" } },
    });
    const data = { reason: "tip_too_low", tipLamports: 4, minimumLamports: 5 };
    expect(await answerTo(request({ method: "facts" }))).toMatchObject({ error: { data } });
    expect(await answerTo(request({ method: "data" }))).toMatchObject({
      error: { data: { reason: "preflight_failed", logs: ["a"], err: null } },
    });
    reported.length = 0;
    const answer = await answerTo(request({ method: "other" }));
    expect(JSON.stringify(answer)).not.toContain("secret");
    expect(answer).toMatchObject({ error: { code: -32603, data: { reference: "r1" } } });
    expect(String(reported)).toContain("secret of other");
  });

  it("answers every text with JSON-RPC", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.json({ maxDepth: 4 })), async (text) => {
        const answer = await answerTo(text);
        for (const each of Array.isArray(answer) ? answer : [answer]) {
          expect(each).toMatchObject({ jsonrpc: "2.0" });
        }
      }),
    );
  });
});

describe("answerJsonRpc", () => {
  const report = () => "r1";

  it("reports the rejection of a single call, but not of calls in an array", async () => {
    const reasonOf = async (text: string) =>
      (await answerJsonRpc(text, { dispatch, report })).reason;
    expect(await reasonOf(request({}))).toBeNull();
    expect(await reasonOf(request({ method: "refuse" }))).toBe("value_invalid");
    expect(await reasonOf(request({ method: "local" }))).toBe("internal");
    expect(await reasonOf("{")).toBe("json_invalid");
    expect(await reasonOf("[]")).toBe("request_invalid");
    expect(await reasonOf(`[${request({ method: "refuse" })}]`)).toBeNull();
  });

  it("checks admission before each call, including invalid ones", async () => {
    const requests: string[] = [];
    const admit = (method: string) => {
      requests.push(method);
      if (requests.length > 2) throw new ShredwayError("rate_limited", "enough");
    };
    called.length = 0;
    const text = `[${request({ id: 1 })},5,${request({ id: 2 })}]`;
    const answer = await answerJsonRpc(text, { dispatch, report, admit });
    expect(requests).toEqual(["echo", "", "echo"]);
    expect(called).toEqual(["echo"]);
    expect(JSON.parse(answer.text)).toMatchObject([
      { id: 1, result: [] },
      { id: null, error: { code: -32600 } },
      { id: 2, error: { code: -32005 } },
    ]);
    expect(await answerJsonRpc("{", { dispatch, report, admit })).toMatchObject({
      reason: "rate_limited",
    });
  });

  it("uses the message prefix, and answers calls without an id if configured", async () => {
    const prefixOf = (reason: string) => `${reason}: `;
    const options = { dispatch, report, prefixOf, answersWithoutId: true };
    const refused = await answerJsonRpc('{"jsonrpc":"2.0","method":"refuse"}', options);
    expect(JSON.parse(refused.text)).toMatchObject({
      id: null,
      error: { message: "value_invalid: expected more, got less" },
    });
    const fault = await answerJsonRpc(request({ method: "other" }), options);
    expect(JSON.parse(fault.text)).toMatchObject({
      error: { message: "internal: Internal error, reference r1" },
    });
  });

  it("uses the message prefix for a node's error, and keeps its code and data", async () => {
    const errorOf = async (data: unknown) => {
      const failing = (): never => {
        throw new ForwardedError({ code: -32005, message: "Node is behind", data });
      };
      const options = { dispatch: failing, report, prefixOf: (reason: string) => `${reason}: ` };
      return JSON.parse((await answerJsonRpc(request({ method: "getSlot" }), options)).text).error;
    };
    const message = "rpc_failed: Node is behind";
    const data = { numSlotsBehind: 3, reason: "rpc_failed" };
    expect(await errorOf({ numSlotsBehind: 3 })).toEqual({ code: -32005, message, data });
    expect(await errorOf(null)).toEqual({ code: -32005, message, data: { reason: "rpc_failed" } });
    expect(await errorOf("text")).toEqual({ code: -32005, message, data: "text" });
  });
});

describe("codes", () => {
  it("declares every code of the error table, so that clients know all codes", () => {
    for (const [reason, { jsonRpcCode }] of Object.entries(errorTable)) {
      if (jsonRpcCode !== undefined) expect(knownCodes, reason).toContain(jsonRpcCode);
    }
    expect(readJson("[-32603]")).toEqual([-32603]);
  });
});
