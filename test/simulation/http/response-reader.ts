// Reads the responses of one connection as a strict client does (RFC 9112). It shares no code with the gateway.

import { Violation } from "../relay-checks.ts";

export interface ReadResponse {
  readonly status: number;
  /** Values by names in lower case. */
  readonly fields: ReadonlyMap<string, string>;
  readonly body: string;
  /** The gateway keeps the connection. */
  readonly isKeptAlive: boolean;
}

const statusLine = /^HTTP\/1\.1 ([2-5][0-9]{2}) [ -~]+$/;
const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([ -~]*)$/;
const date =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$/;
const headEnd = "\r\n\r\n";
const continueHead = "HTTP/1.1 100 Continue\r\n\r\n";

function fail(text: string): never {
  throw new Violation("a response is valid HTTP", text.slice(0, 300));
}

function fieldsOf(lines: readonly string[]): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of lines) {
    const [, name = "", value = ""] = field.exec(line) ?? fail(line);
    const key = name.toLowerCase();
    if (fields.has(key)) fail(`${name} twice`);
    fields.set(key, value);
  }
  return fields;
}

function headOf(text: string): Omit<ReadResponse, "body"> & { readonly bytes: number } {
  const [first = "", ...lines] = text.split("\r\n");
  const [, status = ""] = statusLine.exec(first) ?? fail(first);
  const fields = fieldsOf(lines);
  const length = fields.get("content-length") ?? fail(`no length: ${text}`);
  if (!/^(0|[1-9][0-9]*)$/.test(length)) fail(`length ${length}`);
  if (fields.has("transfer-encoding")) fail("a coding");
  const connection = fields.get("connection") ?? "";
  if (connection !== "keep-alive" && connection !== "close") fail(`connection ${connection}`);
  const written = fields.get("date");
  if (written !== undefined && !date.test(written)) fail(`date ${written}`);
  const isKeptAlive = connection === "keep-alive";
  return { status: Number(status), fields, isKeptAlive, bytes: Number(length) };
}

export class ResponseReader {
  #bytes: Buffer = Buffer.alloc(0);

  /** Whether a response has begun and not ended. */
  get isInside(): boolean {
    return this.#bytes.length > 0;
  }

  /** The responses that are complete now. Throws Violation. */
  read(piece: Buffer): ReadResponse[] {
    this.#bytes = Buffer.concat([this.#bytes, piece]);
    const read: ReadResponse[] = [];
    for (let next = this.#next(); next; next = this.#next()) read.push(next);
    return read;
  }

  #next(): ReadResponse | null {
    if (this.#bytes.toString("latin1", 0, continueHead.length) === continueHead)
      this.#bytes = this.#bytes.subarray(continueHead.length);
    const end = this.#bytes.indexOf(headEnd);
    if (end < 0) return null;
    const { bytes, ...head } = headOf(this.#bytes.toString("latin1", 0, end));
    const begin = end + headEnd.length;
    if (this.#bytes.length < begin + bytes) return null;
    const body = this.#bytes.toString("utf8", begin, begin + bytes);
    this.#bytes = this.#bytes.subarray(begin + bytes);
    return { ...head, body };
  }
}
