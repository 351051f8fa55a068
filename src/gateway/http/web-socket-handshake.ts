// Checks of WebSocket handshakes (RFC 6455, 4.2.1) beyond the headers that make a request one.
//
// server.ts calls it before an engine accepts a handshake: the engines themselves answer invalid ones
// with a plain text, or accept them.

import { quote, type Reason } from "../../core/errors.ts";
import type { Refusal } from "./answer.ts";
import type { HttpHead, HttpResponse } from "./types.ts";

const reason: Reason = "request_invalid";
/** 16 bytes in base64. */
const keyText = /^[+/0-9A-Za-z]{22}==$/;
const protocolText = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function got(value: string | undefined): string {
  return value === undefined ? "got none" : `got ${quote(value)}`;
}

function areProtocols(text: string): boolean {
  const names = text.split(",").map((name) => name.trim());
  return names.every((name) => protocolText.test(name)) && new Set(names).size === names.length;
}

/** The response to an invalid handshake; undefined: it is valid. */
export function handshakeAnswer({ header }: HttpHead, refusal: Refusal): HttpResponse | undefined {
  const key = header("sec-websocket-key");
  if (key === undefined || !keyText.test(key)) {
    return refusal(400, reason, `Sec-WebSocket-Key: expected 16 bytes in base64, ${got(key)}`);
  }
  const version = header("sec-websocket-version");
  if (version !== "13" && version !== "8") {
    const answer = refusal(426, reason, `Sec-WebSocket-Version: expected 13, ${got(version)}`);
    const headers = { upgrade: "websocket", "sec-websocket-version": "13" };
    return { ...answer, headers: { ...answer.headers, ...headers } };
  }
  const protocols = header("sec-websocket-protocol");
  if (protocols === undefined || areProtocols(protocols)) return undefined;
  const expected = "Sec-WebSocket-Protocol: expected different names, separated by commas";
  return refusal(400, reason, `${expected}, ${got(protocols)}`);
}
