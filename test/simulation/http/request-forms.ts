// The forms in which customers write their calls as HTTP requests, and how they read the responses.

import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import { isRecord } from "../gateway/answers.ts";
import { pick } from "../random-at.ts";
import { Violation } from "../relay-checks.ts";
import type { ReadResponse } from "./response-reader.ts";

/** A submission without JSON. */
export interface RawCall {
  readonly method: string;
  readonly wires: readonly Buffer[];
  readonly takesOne: boolean;
  readonly maxRetries: number | null;
  readonly enableFallback: boolean | undefined;
}

export interface CallerRequest {
  /** null: the request has no key. */
  readonly key: string | null;
  /** Whether the key is valid; its scopes may not suffice. */
  readonly isKeyValid: boolean;
  readonly method: string;
  readonly params: readonly unknown[];
  /** The same call for the endpoints without JSON; absent: it has no such form. */
  readonly raw?: RawCall | undefined;
  /** A program sends it that repeats the head of its requests. */
  readonly isSteady?: boolean | undefined;
}

export interface RequestForm {
  readonly bytes: Buffer;
  /** For the trace. */
  readonly name: string;
  /** The connection ends behind the response. */
  readonly isLast: boolean;
  /** The JSON-RPC answer. Throws Violation. */
  readonly read: (response: ReadResponse) => unknown;
}

const host = "gateway.example";
const ids: readonly unknown[] = [0, -7, 1.5, "one", 'a "b" \\ \u00e9', "", null, [1], { a: 1 }];

function fail(text: string): never {
  throw new Violation("a response belongs to its request", text.slice(0, 300));
}

function jsonOf({ body }: ReadResponse): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return fail(`expected JSON, got ${body}`);
  }
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** One answer with this id. */
function checkedAnswer(json: unknown, id: unknown): Readonly<Record<string, unknown>> {
  const answer = isRecord(json) ? json : fail(JSON.stringify(json));
  if (answer["jsonrpc"] !== "2.0" || !isSame(answer["id"], id))
    fail(`expected the id ${JSON.stringify(id)}, got ${JSON.stringify(json)}`);
  if ("result" in answer === "error" in answer) fail(JSON.stringify(json));
  return answer;
}

function readOne(id: unknown): RequestForm["read"] {
  return (response) => {
    const answer = checkedAnswer(jsonOf(response), id);
    if ("result" in answer && response.status !== 200) fail(`a result with ${response.status}`);
    return answer;
  };
}

/** The key in one or two of the places that the documentation names. */
function placeKey(random: SeededRandom, key: string | null): { fields: string[]; query: string } {
  if (key === null) return { fields: [], query: "" };
  const basic = Buffer.from(random.happens(0.5) ? key : `${key}:`).toString("base64");
  const places: readonly (readonly [string, string])[] = [
    [`api-key: ${key}`, ""],
    [`API_KEY:${key}`, ""],
    [`Authorization: Bearer ${key}`, ""],
    [`authorization: Basic ${basic}`, ""],
    [`x-jito-auth:  ${key} `, ""],
    ["", `api-key=${key}`],
    [`api_key: ${key}`, `api-key=${encodeURIComponent(key)}`],
  ];
  const [line, query] = pick(random, places);
  return { fields: line === "" ? [] : [line], query };
}

function chunked(random: SeededRandom, body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const part = body.subarray(at, at + 1 + random.below(body.length));
    const extension = pick(random, ["", ";a", " ;name=value"]);
    const size = part.length.toString(16);
    parts.push(Buffer.from(`${random.happens(0.5) ? size : size.toUpperCase()}${extension}\r\n`));
    parts.push(part, Buffer.from("\r\n"));
    at += part.length;
  }
  const trailer = random.happens(0.3) ? "x-trailer: 1\r\n" : "";
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)]);
}

interface Body {
  readonly path: string;
  readonly query: readonly string[];
  readonly bytes: Buffer;
  readonly read: RequestForm["read"];
  readonly name: string;
}

function bytesOf(random: SeededRandom, key: string | null, body: Body, isLast: boolean): Buffer {
  const { fields, query } = placeKey(random, key);
  const queries = [...body.query, ...(query === "" ? [] : [query])];
  const target = `${body.path}${queries.length > 0 ? `?${queries.join("&")}` : ""}`;
  const isChunked = random.happens(0.15);
  const lines = [
    `POST ${random.happens(0.05) ? `http://${host}` : ""}${target} HTTP/1.1`,
    `${pick(random, ["Host", "host", "HOST"])}: ${host}`,
    ...fields,
    ...(random.happens(0.5) ? ["Content-Type: application/json"] : []),
    ...(random.happens(0.1) ? ["Expect: 100-continue"] : []),
    ...(isLast ? ["Connection: close"] : []),
    isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${body.bytes.length}`,
  ];
  const emptyLine = random.happens(0.03) ? "\r\n" : "";
  const head = Buffer.from(`${emptyLine}${lines.join("\r\n")}\r\n\r\n`);
  return Buffer.concat([head, isChunked ? chunked(random, body.bytes) : body.bytes]);
}

function jsonBody(random: SeededRandom, { method, params }: CallerRequest): Body {
  const hasId = random.happens(0.95);
  const id = random.happens(0.7) ? random.below(1_000_000) : pick(random, ids);
  const call = { jsonrpc: "2.0", ...(hasId && { id }), method, params };
  const text = JSON.stringify(call, null, random.happens(0.1) ? 1 : undefined);
  const path = pick(random, ["/relay", "/relay", "/", "//relay/"]);
  const bytes = Buffer.from(text);
  return { path, query: [], bytes, read: readOne(hasId ? id : null), name: "json" };
}

/** An array with the call and some of getHealth, which needs no key. */
function arrayBody(random: SeededRandom, request: CallerRequest): Body {
  const { method, params, key, isKeyValid } = request;
  const call = { jsonrpc: "2.0", id: random.below(1_000_000), method, params };
  const health = Array.from({ length: random.below(3) }, (_, i) => {
    return { jsonrpc: "2.0", id: `health ${i}`, method: "getHealth", params: [] };
  });
  const calls = random.shuffled([call, ...health]);
  const read = (response: ReadResponse): unknown => {
    const json = jsonOf(response);
    const isOfKey = isRecord(json) && !Array.isArray(json) && !isKeyValid;
    if (isOfKey) return checkedAnswer(json, null);
    const answers: unknown[] = Array.isArray(json) ? json : fail(response.body);
    if (answers.length !== calls.length) fail(response.body);
    const checked = calls.map(({ id }, i) => checkedAnswer(answers[i], id));
    for (const [i, { method: called }] of calls.entries()) {
      const isHealthy = isSame(checked[i]?.["result"], "ok");
      if (called === "getHealth" && !isHealthy && (isKeyValid || key === null)) fail(response.body);
    }
    return checked[calls.indexOf(call)];
  };
  const bytes = Buffer.from(JSON.stringify(calls));
  return { path: "/relay", query: [], bytes, read, name: `array of ${calls.length}` };
}

function rawBody(random: SeededRandom, raw: RawCall): Body {
  const { method, wires, takesOne, maxRetries, enableFallback } = raw;
  const isText = random.happens(0.5);
  const frames = wires.map((wire) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(wire.length);
    return Buffer.concat([length, wire]);
  });
  const texts = wires.map((wire) => wire.toString("base64")).join(",");
  const bytes = isText ? Buffer.from(texts) : Buffer.concat(takesOne ? wires : frames);
  const isDefault = method === "sendTransaction" && random.happens(0.5);
  const query = [
    ...(isDefault ? [] : [`method=${method}`]),
    ...(maxRetries === null ? [] : [`max-retries=${maxRetries}`]),
    ...(enableFallback === undefined ? [] : [`enable-fallback=${enableFallback}`]),
  ];
  const path = isText ? "/relay2" : "/relayb";
  return { path, query, bytes, read: readOne(1), name: path };
}

function bodyOf(random: SeededRandom, request: CallerRequest): Body {
  if (request.raw && random.happens(0.25)) return rawBody(random, request.raw);
  return random.happens(0.15) ? arrayBody(random, request) : jsonBody(random, request);
}

/** Any of the forms. */
export function anyForm(random: SeededRandom, request: CallerRequest): RequestForm {
  const isLast = random.happens(0.05);
  const body = bodyOf(random, request);
  return {
    bytes: bytesOf(random, request.key, body, isLast),
    name: body.name,
    isLast,
    read: body.read,
  };
}

/** The form of a program that repeats its head, so that the fast path knows its requests. */
export function steadyForm(id: number, { key, method, params }: CallerRequest): RequestForm {
  const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
  const head =
    `POST /relay HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n` +
    `Content-Type: application/json\r\n${key === null ? "" : `api-key: ${key}\r\n`}\r\n`;
  return { bytes: Buffer.from(head + body), name: "steady", isLast: false, read: readOne(id) };
}

/** A request that needs no key, in front of or behind another one in the same segment. */
export const healthForm: RequestForm = {
  bytes: Buffer.from(`GET /gethealth HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
  name: "health",
  isLast: false,
  read: ({ status, body }) => (status === 200 && body === "ok" ? null : fail(`${status} ${body}`)),
};

/** Malformed requests, and the status of the refusal; 0: the connection is cut. */
export const malformed: readonly (readonly [text: string, status: number])[] = [
  ["GET / HTTP/1.0\r\nHost: a\r\n\r\n", 505],
  ["GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["GET / HTTP/1.1\r\n\r\n", 400],
  ["POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400],
  [
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
  ],
  ["POST / HTTP/1.1\r\nHost : a\r\n\r\n", 400],
  ["POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 0],
  [`GET / HTTP/1.1\r\nHost: a\r\nX: ${"y".repeat(21_000)}\r\n\r\n`, 431],
  ["\u0016\u0003\u0001\u0002\r\n\r\n", 400],
];
