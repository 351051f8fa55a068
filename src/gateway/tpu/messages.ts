// Messages between the gateway and the process of the QUIC connections, as frames. Pure.
//
// Transactions and events are frequent, so they are binary; everything else is JSON. The gateway
// decodes answers of a process that an attacker may control: anything unexpected throws a
// RangeError or a SyntaxError, and every text and list is bounded.

import { bodyAt, jsonFrame, newFrame } from "./frames.ts";
import { leaderStatesIn } from "./leader-states.ts";
import type { ProcessAnswer, ProcessRequest, TpuEvent, TpuSendRequest } from "./types.ts";

const requestKinds = ["open", "send", "aim", "identify", "ping", "close"] as const;
const answerKinds = [
  "opened",
  "pong",
  "refused",
  "events",
  "leaders",
  "trouble",
] as const satisfies ProcessAnswer["kind"][];
const eventKinds = ["sent", "acknowledged", "failed", "dropped"] as const;

/** Id, remaining time, port, lengths of the host and of the transaction. */
const sendHeadBytes = 8 + 8 + 2 + 1 + 2;
/** Kind, id, time, length of the reason. */
const eventHeadBytes = 1 + 8 + 8 + 1;
const reasonBytesMax = 255;
const textCharsMax = 500;
/** A transaction of 4,096 bytes for each place of the largest queue never comes in one turn. */
export const requestBytesMax = 1 << 30;
export const answerBytesMax = 4 << 20;

function sendsFrame(kind: number, requests: readonly TpuSendRequest[]): Buffer {
  let length = 0;
  for (const { bytes, address } of requests) {
    length += sendHeadBytes + address.host.length + bytes.length;
  }
  const frame = newFrame(kind, length);
  let at = bodyAt;
  for (const { id, restMs, address, bytes } of requests) {
    const { host, port } = address;
    frame.writeDoubleLE(id, at);
    frame.writeDoubleLE(restMs, at + 8);
    frame.writeUInt16LE(port, at + 16);
    frame.writeUInt8(host.length, at + 18);
    frame.writeUInt16LE(bytes.length, at + 19);
    at += sendHeadBytes;
    at += frame.write(host, at, "latin1");
    frame.set(bytes, at);
    at += bytes.length;
  }
  return frame;
}

function sendsIn(body: Buffer): TpuSendRequest[] {
  const requests: TpuSendRequest[] = [];
  for (let at = 0; at < body.length; ) {
    const id = body.readDoubleLE(at);
    const restMs = body.readDoubleLE(at + 8);
    const port = body.readUInt16LE(at + 16);
    const hostAt = at + sendHeadBytes;
    const bytesAt = hostAt + body.readUInt8(at + 18);
    const end = bytesAt + body.readUInt16LE(at + 19);
    const host = body.toString("latin1", hostAt, bytesAt);
    requests.push({ id, restMs, address: { host, port }, bytes: body.subarray(bytesAt, end) });
    at = end;
  }
  return requests;
}

export function encodeRequest(request: ProcessRequest): Buffer {
  const kind = requestKinds.indexOf(request.kind);
  return request.kind === "send" ? sendsFrame(kind, request.requests) : jsonFrame(kind, request);
}

/** Trusts its input, because the gateway wrote it. */
export function decodeRequest(kind: number, body: Buffer): ProcessRequest {
  if (requestKinds[kind] === "send") return { kind: "send", requests: sendsIn(body) };
  const request: ProcessRequest = JSON.parse(body.toString());
  return request;
}

function reasonOf(event: TpuEvent): Buffer {
  return Buffer.from("reason" in event ? event.reason : "").subarray(0, reasonBytesMax);
}

function eventsFrame(kind: number, events: readonly TpuEvent[]): Buffer {
  const reasons = events.map(reasonOf);
  let length = 0;
  for (const reason of reasons) length += eventHeadBytes + reason.length;
  const frame = newFrame(kind, length);
  let at = bodyAt;
  for (const [i, event] of events.entries()) {
    const reason = reasons[i] ?? Buffer.alloc(0);
    frame.writeUInt8(eventKinds.indexOf(event.kind), at);
    frame.writeDoubleLE(event.id, at + 1);
    frame.writeBigInt64LE(event.atNs, at + 9);
    frame.writeUInt8(reason.length, at + 17);
    frame.set(reason, at + eventHeadBytes);
    at += eventHeadBytes + reason.length;
  }
  return frame;
}

function eventsIn(body: Buffer): TpuEvent[] {
  const events: TpuEvent[] = [];
  for (let at = 0; at < body.length; ) {
    const kind = eventKinds[body.readUInt8(at)];
    const id = body.readDoubleLE(at + 1);
    const atNs = body.readBigInt64LE(at + 9);
    const reasonAt = at + eventHeadBytes;
    const end = reasonAt + body.readUInt8(at + 17);
    if (kind === undefined || end > body.length) {
      throw new RangeError(`expected an event, got ${body.readUInt8(at)} at ${at}`);
    }
    const reason = body.toString("utf8", reasonAt, end);
    if (kind === "sent" || kind === "acknowledged") events.push({ kind, id, atNs });
    else events.push({ kind, id, atNs, reason });
    at = end;
  }
  return events;
}

export function encodeAnswer(answer: ProcessAnswer): Buffer {
  const kind = answerKinds.indexOf(answer.kind);
  if (answer.kind === "events") return eventsFrame(kind, answer.events);
  if (answer.kind === "leaders") return jsonFrame(kind, answer.leaders);
  if (answer.kind === "opened") return jsonFrame(kind, answer.unconfined);
  return jsonFrame(kind, "message" in answer ? answer.message : "");
}

function textIn(body: Buffer): string {
  const text: unknown = JSON.parse(body.toString());
  if (typeof text !== "string") throw new RangeError(`expected a text, got ${typeof text}`);
  return text.slice(0, textCharsMax);
}

/** Throws a RangeError or a SyntaxError for anything that `encodeAnswer` does not write. */
export function decodeAnswer(kind: number, body: Buffer): ProcessAnswer {
  const name = answerKinds[kind];
  switch (name) {
    case "events":
      return { kind: name, events: eventsIn(body) };
    case "leaders":
      return { kind: name, leaders: leaderStatesIn(JSON.parse(body.toString())) };
    case "opened":
      return { kind: name, unconfined: textIn(body) };
    case "refused":
    case "trouble":
      return { kind: name, message: textIn(body) };
    case "pong":
      return { kind: name };
    case undefined:
      break;
  }
  throw new RangeError(`expected a kind of answer, got ${kind}`);
}
