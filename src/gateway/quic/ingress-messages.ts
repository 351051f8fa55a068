// Messages between the gateway and the process of the QUIC ingress, as frames. Pure.
//
// Streams and answers are frequent, so they are binary; everything else is JSON. The gateway decodes
// messages of a process that an attacker may control: anything unexpected throws a RangeError or a
// SyntaxError, and every text and list is bounded.

import { isObject } from "../../core/values.ts";
import { bodyAt, jsonFrame, newFrame } from "../tpu/frames.ts";
import {
  countNames,
  dropNames,
  type IngressAnswer,
  type IngressConnection,
  type IngressCounts,
  type IngressProcessAnswer,
  type IngressRequest,
  type IngressStream,
} from "./types.ts";

const requestKinds = [
  "open",
  "answers",
  "admit",
  "offer",
  "dismiss",
  "identify",
  "ping",
  "close",
] as const;
const answerKinds = [
  "opened",
  "pong",
  "refused",
  "trouble",
  "listening",
  "connected",
  "streams",
  "ended",
  "counts",
] as const satisfies IngressProcessAnswer["kind"][];

/** Connection, stream, time, sequence, length. */
const streamHeadBytes = 8 + 8 + 8 + 8 + 2;
/** Connection, stream, status, length. */
const answerHeadBytes = 8 + 8 + 2 + 2;
const textCharsMax = 500;
const hostCharsMax = 64;
const nameCharsMax = 256;
const addressesMax = 64;
/** All connections that the process may have between two reports. */
const connectionCountsMax = 1_000_000;
export const requestBytesMax = 1 << 30;
/** A batch of streams is bounded by what connections may have in flight. */
export const answerBytesMax = 256 << 20;

function answersFrame(kind: number, answers: readonly IngressAnswer[]): Buffer {
  const bodies = answers.map(({ body }) => Buffer.from(body));
  const length = bodies.reduce((sum, body) => sum + answerHeadBytes + body.length, 0);
  const frame = newFrame(kind, length);
  let at = bodyAt;
  for (const [i, { connection, stream, status }] of answers.entries()) {
    const body = bodies[i] ?? Buffer.alloc(0);
    frame.writeDoubleLE(connection, at);
    frame.writeDoubleLE(stream, at + 8);
    frame.writeUInt16LE(status, at + 16);
    frame.writeUInt16LE(body.length, at + 18);
    frame.set(body, at + answerHeadBytes);
    at += answerHeadBytes + body.length;
  }
  return frame;
}

function answersIn(body: Buffer): IngressAnswer[] {
  const answers: IngressAnswer[] = [];
  for (let at = 0; at < body.length; ) {
    const textAt = at + answerHeadBytes;
    const end = textAt + body.readUInt16LE(at + 18);
    answers.push({
      connection: body.readDoubleLE(at),
      stream: body.readDoubleLE(at + 8),
      status: body.readUInt16LE(at + 16),
      body: body.toString("utf8", textAt, end),
    });
    at = end;
  }
  return answers;
}

export function encodeRequest(request: IngressRequest): Buffer {
  const kind = requestKinds.indexOf(request.kind);
  return request.kind === "answers"
    ? answersFrame(kind, request.answers)
    : jsonFrame(kind, request);
}

/** Trusts its input, because the gateway wrote it. */
export function decodeRequest(kind: number, body: Buffer): IngressRequest {
  if (requestKinds[kind] === "answers") return { kind: "answers", answers: answersIn(body) };
  const request: IngressRequest = JSON.parse(body.toString());
  return request;
}

function streamsFrame(kind: number, streams: readonly IngressStream[]): Buffer {
  const length = streams.reduce((sum, { bytes }) => sum + streamHeadBytes + bytes.length, 0);
  const frame = newFrame(kind, length);
  let at = bodyAt;
  for (const { connection, stream, receivedNs, sequence, bytes } of streams) {
    frame.writeDoubleLE(connection, at);
    frame.writeDoubleLE(stream, at + 8);
    frame.writeBigInt64LE(receivedNs, at + 16);
    frame.writeDoubleLE(sequence, at + 24);
    frame.writeUInt16LE(bytes.length, at + 32);
    frame.set(bytes, at + streamHeadBytes);
    at += streamHeadBytes + bytes.length;
  }
  return frame;
}

function sequenceIn(number: number): number {
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new RangeError(`expected a sequence number, got ${number}`);
}

/** Their bytes are views of `body`. */
function streamsIn(body: Buffer): IngressStream[] {
  const streams: IngressStream[] = [];
  for (let at = 0; at < body.length; ) {
    const bytesAt = at + streamHeadBytes;
    const end = bytesAt + body.readUInt16LE(at + 32);
    if (end > body.length) throw new RangeError(`expected a stream up to ${end}, got its start`);
    streams.push({
      connection: body.readDoubleLE(at),
      stream: body.readDoubleLE(at + 8),
      receivedNs: body.readBigInt64LE(at + 16),
      sequence: sequenceIn(body.readDoubleLE(at + 24)),
      bytes: body.subarray(bytesAt, end),
    });
    at = end;
  }
  return streams;
}

export function encodeAnswer(answer: IngressProcessAnswer): Buffer {
  const kind = answerKinds.indexOf(answer.kind);
  if (answer.kind === "streams") return streamsFrame(kind, answer.streams);
  if (answer.kind === "connected") {
    const { ed25519Key, ...facts } = answer.connection;
    const key = ed25519Key === null ? null : Buffer.from(ed25519Key).toString("hex");
    return jsonFrame(kind, { ...facts, ed25519Key: key });
  }
  if (answer.kind === "counts") {
    const { counts, connectionDrops } = answer;
    return jsonFrame(kind, { ...counts, connectionDrops });
  }
  return jsonFrame(kind, answer);
}

/** The fields of a JSON object, each checked when it is read. */
class Fields {
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(value: unknown) {
    if (!isObject(value)) throw new RangeError(`expected an object, got ${typeof value}`);
    this.#fields = value;
  }

  text(name: string, charsMax: number): string {
    const value = this.#fields[name];
    if (typeof value === "string") return value.slice(0, charsMax);
    throw new RangeError(`expected a text as ${name}, got ${typeof value}`);
  }

  textOrNull(name: string, charsMax: number): string | null {
    return this.#fields[name] === null ? null : this.text(name, charsMax);
  }

  count(name: string): number {
    const value = this.#fields[name];
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
    throw new RangeError(`expected a count as ${name}, got ${typeof value}`);
  }

  counts<Name extends string>(names: readonly Name[]): Record<Name, number> {
    const entries = names.map((name) => [name, this.count(name)] as const);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every name is a key
    return Object.fromEntries(entries) as Record<Name, number>;
  }

  texts(name: string, charsMax: number): string[] {
    const value = this.#fields[name];
    if (!Array.isArray(value) || value.length > addressesMax) {
      throw new RangeError(`expected a list of at most ${addressesMax} texts as ${name}`);
    }
    return value.map((text) => new Fields({ text }).text("text", charsMax));
  }

  protection(): IngressConnection["protection"] {
    const value = this.#fields["protection"];
    if (typeof value === "boolean" || value === "invalid") return value;
    throw new RangeError(`expected a protection, got ${typeof value}`);
  }

  /** Pairs of a number of a connection and a count. */
  connectionCounts(name: string): [number, number][] {
    const value = this.#fields[name];
    if (!Array.isArray(value) || value.length > connectionCountsMax) {
      throw new RangeError(`expected at most ${connectionCountsMax} pairs as ${name}`);
    }
    return value.map((pair) => {
      const [connection, count]: unknown[] = Array.isArray(pair) ? pair : [];
      const fields = new Fields({ connection, count });
      return [fields.count("connection"), fields.count("count")];
    });
  }

  inner(name: string): Fields {
    return new Fields(this.#fields[name]);
  }
}

function connectionIn(fields: Fields): IngressConnection {
  const key = fields.textOrNull("ed25519Key", 64);
  if (key !== null && !/^[0-9a-f]{64}$/.test(key)) {
    throw new RangeError("expected a public key in hexadecimal, got another text");
  }
  return {
    id: fields.count("id"),
    listener: fields.count("listener"),
    protocol: fields.text("protocol", nameCharsMax),
    host: fields.text("host", hostCharsMax),
    commonName: fields.textOrNull("commonName", nameCharsMax),
    ed25519Key: key === null ? null : Uint8Array.from(Buffer.from(key, "hex")),
    protection: fields.protection(),
  };
}

function countsIn(fields: Fields): IngressCounts {
  return { ...fields.counts(countNames), drops: fields.inner("drops").counts(dropNames) };
}

/** Throws a RangeError or a SyntaxError for anything that `encodeAnswer` does not write. */
export function decodeAnswer(kind: number, body: Buffer): IngressProcessAnswer {
  const name = answerKinds[kind];
  if (name === undefined) throw new RangeError(`expected a kind of answer, got ${kind}`);
  if (name === "streams") return { kind: name, streams: streamsIn(body) };
  const fields = new Fields(JSON.parse(body.toString()));
  switch (name) {
    case "listening":
      return { kind: name, addresses: fields.texts("addresses", nameCharsMax) };
    case "connected":
      return { kind: name, connection: connectionIn(fields) };
    case "ended": {
      const end = fields.text("end", textCharsMax);
      return { kind: name, connection: fields.count("connection"), end };
    }
    case "counts":
      return {
        kind: name,
        counts: countsIn(fields),
        connectionDrops: fields.connectionCounts("connectionDrops"),
      };
    case "opened":
      return { kind: name, unconfined: fields.text("unconfined", textCharsMax) };
    case "refused":
    case "trouble":
      return { kind: name, message: fields.text("message", textCharsMax) };
    case "pong":
      return { kind: name };
  }
}
