// The OpenRPC and OpenAPI documents: served over HTTP, equal to the code, valid in their formats.

import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { errorTable, reasons } from "../../../../src/core/errors.ts";
import { writeJson } from "../../../../src/core/json-rpc/json-text.ts";
import { isObject } from "../../../../src/core/values.ts";
import { openApiDocument } from "../../../../src/gateway/endpoints/description/openapi.ts";
import { openRpcDocument } from "../../../../src/gateway/endpoints/description/openrpc.ts";
import { operations } from "../../../../src/gateway/endpoints/description/paths.ts";
import { methods } from "../../../../src/gateway/methods/method-table.ts";
import { checkResult, schemaCheck } from "../../../support/gateway/described-answers.ts";
import { GatewayRun } from "../../../support/gateway/gateway.ts";
import { openRpcVerdict, parsedOpenRpc } from "../../../support/gateway/open-rpc-tools.ts";

const facts = {
  version: "1.2.3",
  regions: [
    { name: "here", url: "https://here.example" },
    { name: "there", url: null },
  ],
  readMethods: new Set(["getSlot", "getBlock"]),
};

function read(document: object): Record<string, unknown> {
  const plain: unknown = JSON.parse(writeJson(document));
  if (!isObject(plain)) throw new Error("expected an object");
  return plain;
}

async function get(run: GatewayRun, path: string, headers: Record<string, string> = {}) {
  const response = await fetch(run.url(path), { headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe("GET /openrpc.json and /openapi.json", () => {
  it.each(["/openrpc.json", "/openapi.json"])(
    "serves %s without a key, and 304 if it is unchanged",
    async (path) => {
      const run = await GatewayRun.open();
      const { status, headers, text } = await get(run, path);
      expect(status).toBe(200);
      expect(headers.get("content-type")).toBe("application/json");
      expect(headers.get("cache-control")).toBe("public, max-age=300");
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(JSON.parse(text)).toMatchObject({
        info: { version: expect.stringMatching(/^\d+\./) },
      });
      const tag = headers.get("etag") ?? "";
      expect(tag).toMatch(/^"[\w-]{22}"$/);
      for (const listed of [tag, `W/${tag}`, `"x", ${tag}`, "*"]) {
        const repeated = await get(run, path, { "if-none-match": listed });
        expect(repeated).toMatchObject({ status: 304, text: "" });
        expect(repeated.headers.get("etag")).toBe(tag);
      }
      expect((await get(run, path, { "if-none-match": '"x"' })).status).toBe(200);
      const head = await fetch(run.url(path), { method: "HEAD" });
      expect([head.status, await head.text(), head.headers.get("etag")]).toEqual([200, "", tag]);
      const posted = await run.post("", path);
      expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
    },
  );

  it("rpc.discover returns the same document without a key", async () => {
    const run = await GatewayRun.open();
    const { text } = await get(run, "/openrpc.json");
    const answer = await run.call("rpc.discover", [], "/relay");
    expect(answer.text).toBe(`{"jsonrpc":"2.0","result":${text},"id":1}`);
    expect(run.countedKeys).toEqual([]);
  });
});

describe("the OpenRPC document", () => {
  it("is valid according to the public validator", async () => {
    const document = read(openRpcDocument(facts));
    expect(openRpcVerdict(document)).toBe(true);
    expect(openRpcVerdict(read(openRpcDocument({ ...facts, regions: [] })))).toBe(true);
    await parsedOpenRpc(document); // resolves every reference
    expect(openRpcVerdict({ ...document, methods: [{ name: "getHealth" }] })).not.toBe(true);
    expect(openRpcVerdict({ ...document, info: {} })).not.toBe(true);
  });

  it("describes every method with its parameters and errors", () => {
    const document = read(openRpcDocument(facts));
    const { methods: described, components, servers } = document;
    expect(document["x-passed-on"]).toMatchObject({ methods: ["getSlot", "getBlock"] });
    expect(servers).toEqual([{ name: "here", url: "https://here.example" }]);
    expect(described).toHaveLength(Object.keys(methods).length);
    const { errors } = isObject(components) ? components : {};
    for (const reason of reasons) {
      const { jsonRpcCode, text } = errorTable[reason];
      const isNamed = Object.values(methods).some((method) => method.errors.includes(reason));
      const row = isObject(errors) ? errors[reason] : undefined;
      const expected = { code: jsonRpcCode, message: text, data: { reason } };
      expect(row, reason).toEqual(isNamed ? expected : undefined);
    }
  });

  it.each(Object.entries(methods))("has an example of %s that fits its schemas", (name, method) => {
    const { example, params } = method;
    example.params.forEach((value, i) => {
      const validate = schemaCheck(params[i]?.schema);
      expect(validate(JSON.parse(writeJson(value))), JSON.stringify(validate.errors)).toBe(true);
    });
    expect(params.slice(example.params.length).filter(({ isRequired }) => isRequired)).toEqual([]);
    checkResult(name, JSON.parse(writeJson(example.result)));
    expect(() => checkResult(name, { planted: true })).toThrow(/of its schema/);
  });
});

describe("the OpenAPI document", () => {
  const validator = new Validator();
  const verdictOf = async (document: Record<string, unknown>) =>
    validator.validate(JSON.parse(JSON.stringify(document)));

  it("is valid according to the public validator", async () => {
    const document = read(openApiDocument(facts));
    expect(await verdictOf(document)).toMatchObject({ valid: true });
    expect(
      await verdictOf({ ...document, paths: { "/x": { get: { parameters: 1 } } } }),
    ).toMatchObject({ valid: false });
  });

  it("describes exactly the paths that the gateway serves", async () => {
    const run = await GatewayRun.open({}, { tipFloor: emptyFloor, tipHistory });
    const { text } = await get(run, "/nothing");
    const named = /expected one of ([^"]*)/.exec(text)?.[1]?.split(", ") ?? [];
    const described = new Set(operations.map(({ path }) => path));
    expect([...described].toSorted()).toEqual(named.toSorted());
    for (const { path, method } of operations) {
      const response = await fetch(run.url(path), { method: "DELETE" });
      await response.text();
      expect(response.headers.get("allow"), path).toContain(method.toUpperCase());
    }
    expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
  });
});

const tipHistory = { generation: 0, last: () => [] };
const emptyFloor = {
  snapshot: {
    timeMs: 0,
    percentiles: { p25: 0n, p50: 0n, p75: 0n, p95: 0n, p99: 0n },
    emaP50: 0n,
    count: 0,
    windowStartMs: 0,
    isStale: true,
  },
  onRefresh: () => () => {},
};
