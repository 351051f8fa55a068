// The head of one HTTP/1.1 request: its request line and headers, and the framing of its body.
//
// request-reader.ts parses every head with it. RFC 9112, sections 3 (request line), 5 (fields) and 6
// (body). It refuses everything that another program could read in a different way.

import { quote } from "../../core/errors.ts";

/** Why the rest of the connection cannot be read. */
export interface RequestProblem {
  readonly status: 400 | 431 | 505;
  readonly expected: string;
}

export interface RequestHead {
  readonly method: string;
  /** Path of the target, without its query; of the absolute form, too. */
  readonly path: string;
  /** Without "?"; empty if it is absent. */
  readonly query: string;
  /** The value; undefined: absent. Repeated headers are joined by ", ". `name` in lower case. */
  readonly header: (name: string) => string | undefined;
  /** Alternating names in lower case and values. */
  readonly fields: readonly string[];
  /** Length of the body; null: in chunks. */
  readonly bodyBytes: number | null;
  /** The connection stays open after the response. */
  readonly isKeptAlive: boolean;
  /** The client waits for "100 Continue" before it sends the body. */
  readonly expectsContinue: boolean;
  /** A handshake is a GET; other requests with its headers are ordinary (RFC 9110, 7.8). */
  readonly isWebSocketUpgrade: boolean;
}

const invalid: RequestProblem = { status: 400, expected: "a request of HTTP/1.1" };
const requestLine =
  /^([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([\x21-\x7e\x80-\xff]+) HTTP\/([0-9])\.([0-9])$/;
const fieldName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Optional white space around a value (RFC 9110, 5.6.3). trim() would also remove characters that belong to it. */
const outerSpace = /^[\t ]+|[\t ]+$/g;
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;
/** More digits than any limit on bodies. */
const lengthText = /^[0-9]{1,15}$/;

function problem(expected: string): RequestProblem {
  return { status: 400, expected };
}

/** `text`: the head as latin1, without the empty line at its end. */
export function parseRequestHead(text: string): RequestHead | RequestProblem {
  const lineEnd = text.indexOf("\r\n");
  const line = lineEnd < 0 ? text : text.slice(0, lineEnd);
  const [, method, target, major, minor] = requestLine.exec(line) ?? [];
  if (method === undefined || target === undefined) return invalid;
  if (major !== "1" || minor !== "1") {
    return { status: 505, expected: `HTTP/1.1, got HTTP/${major}.${minor}` };
  }
  const fields = lineEnd < 0 ? [] : parseFields(text, lineEnd + 2);
  if (fields === null) return invalid;
  const header = (name: string): string | undefined => valueIn(fields, name);
  if (header("host") === undefined) return problem("a header Host");
  const bodyBytes = bodyBytesOf(header);
  if (typeof bodyBytes === "object" && bodyBytes !== null) return bodyBytes;
  const [path, query] = splitTarget(target);
  const connection = header("connection")?.toLowerCase() ?? "";
  return {
    method,
    path,
    query,
    header,
    fields,
    bodyBytes,
    isKeptAlive: !hasToken(connection, "close"),
    expectsContinue: header("expect")?.toLowerCase() === "100-continue",
    isWebSocketUpgrade:
      method === "GET" &&
      hasToken(connection, "upgrade") &&
      header("upgrade")?.toLowerCase() === "websocket",
  };
}

/** null: a line is not a header field. */
function parseFields(text: string, begin: number): string[] | null {
  const fields: string[] = [];
  for (let at = begin; at < text.length; ) {
    const lineEnd = text.indexOf("\r\n", at);
    const end = lineEnd < 0 ? text.length : lineEnd;
    const colon = text.indexOf(":", at);
    if (colon < 0 || colon > end) return null;
    const name = text.slice(at, colon);
    const value = text.slice(colon + 1, end);
    if (!fieldName.test(name) || !fieldValue.test(value)) return null;
    fields.push(name.toLowerCase(), value.replaceAll(outerSpace, ""));
    at = end + 2;
  }
  return fields;
}

function valueIn(fields: readonly string[], name: string): string | undefined {
  let found: string | undefined;
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== name) continue;
    const value = fields[i + 1] ?? "";
    found = found === undefined ? value : `${found}, ${value}`;
  }
  return found;
}

function hasToken(list: string, token: string): boolean {
  if (list === "" || list === "keep-alive") return false;
  return list.split(",").some((one) => one.replaceAll(outerSpace, "") === token);
}

function bodyBytesOf(header: RequestHead["header"]): number | null | RequestProblem {
  const length = header("content-length");
  const coding = header("transfer-encoding");
  if (coding !== undefined) {
    if (length !== undefined) return problem("a length or chunks of the body, got both");
    const isChunked = /(?:^|,)[\t ]*chunked$/i.test(coding);
    return isChunked ? null : problem(`no Transfer-Encoding but chunked, got ${quote(coding)}`);
  }
  if (length === undefined) return 0;
  return lengthText.test(length)
    ? Number(length)
    : problem(`one Content-Length, got ${quote(length)}`);
}

/** The absolute form (RFC 9112, 3.2.2) names the server before the path. */
function splitTarget(target: string): [path: string, query: string] {
  const isPath = target.startsWith("/") || target === "*";
  const rest = isPath ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
  const question = rest.indexOf("?");
  if (question < 0) return [rest || "/", ""];
  return [rest.slice(0, question) || "/", rest.slice(question + 1)];
}
