// Reads one HTTP/1.1 response of a partner from its bytes (RFC 9112).
//
// partner-connection.ts passes every piece that arrives, cut anywhere. Responses are untrusted: head and
// body are bounded, and what is not a response of RFC 9112 ends the connection.

const headBytesMax = 16 * 1024;
const bodyBytesMax = 64 * 1024;

export interface Response {
  readonly status: number;
  readonly body: Buffer;
  /** Header Retry-After of a 429; null: absent. */
  readonly retryAfter: string | null;
  /** The connection can take another request. */
  readonly isKeptAlive: boolean;
  /** Seconds that the partner keeps an idle connection; null: it does not say. */
  readonly keepAliveSeconds: number | null;
}

export interface ResponseProblem {
  readonly reason: "answer_invalid" | "answer_too_large" | "connection_lost";
  readonly text: string;
}

interface Head extends Omit<Response, "body"> {
  /** Length of the body; "chunked"; "until-close": the connection ends it. */
  readonly framing: number | "chunked" | "until-close";
}

const tooLarge: ResponseProblem = {
  reason: "answer_too_large",
  text: `expected a response of at most ${bodyBytesMax} bytes, got more`,
};

function invalid(text: string): ResponseProblem {
  return { reason: "answer_invalid", text };
}

export class ResponseReader {
  #bytes: Buffer = Buffer.alloc(0);
  #head: Head | null = null;

  /**
   * The response when it is complete; null: more bytes are needed. A connection with bytes behind it
   * takes no further request.
   */
  read(piece: Buffer): Response | ResponseProblem | null {
    this.#bytes = this.#bytes.length === 0 ? piece : Buffer.concat([this.#bytes, piece]);
    if (this.#head === null) {
      const end = this.#bytes.indexOf("\r\n\r\n", 0, "latin1");
      if (end > headBytesMax || (end < 0 && this.#bytes.length > headBytesMax)) {
        return invalid(`expected a head of at most ${headBytesMax} bytes, got more`);
      }
      if (end < 0) return null;
      const head = parseHead(this.#bytes.toString("latin1", 0, end));
      if ("reason" in head) return head;
      this.#bytes = this.#bytes.subarray(end + 4);
      this.#head = head;
    }
    return this.#body(this.#head);
  }

  /** No byte of the response has arrived. */
  get isEmpty(): boolean {
    return this.#head === null && this.#bytes.length === 0;
  }

  /** The partner has closed the connection: the response that this completes, if any. */
  end(): Response | null {
    if (this.#head?.framing !== "until-close") return null;
    return { ...this.#head, body: this.#bytes };
  }

  #body(head: Head): Response | ResponseProblem | null {
    const { framing } = head;
    if (framing === "chunked") {
      // Extensions and trailers may add as much as the body.
      if (this.#bytes.length > 2 * bodyBytesMax) return tooLarge;
      const read = dechunked(this.#bytes);
      if (read === null || "reason" in read) return read;
      return responseOf(head, read.body, this.#bytes.length - read.end);
    }
    if (
      this.#bytes.length > bodyBytesMax ||
      (framing !== "until-close" && framing > bodyBytesMax)
    ) {
      return tooLarge;
    }
    if (framing === "until-close" || this.#bytes.length < framing) return null;
    return responseOf(head, this.#bytes.subarray(0, framing), this.#bytes.length - framing);
  }
}

/** `left`: number of bytes behind the response. */
function responseOf(head: Head, body: Buffer, left: number): Response {
  const { status, retryAfter, isKeptAlive, keepAliveSeconds } = head;
  return { status, body, retryAfter, isKeptAlive: isKeptAlive && left === 0, keepAliveSeconds };
}

function parseHead(text: string): Head | ResponseProblem {
  const [line = "", ...lines] = text.split("\r\n");
  const [, minor, digits] =
    /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?$/.exec(line) ?? [];
  if (digits === undefined) return invalid("expected a status line of HTTP/1.1");
  const fields = new Map<string, string>();
  for (const field of lines) {
    const [, name, given] =
      /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t\x20-\x7e\x80-\xff]*)$/.exec(field) ?? [];
    if (name === undefined || given === undefined) return invalid("expected a header field");
    const key = name.toLowerCase();
    const value = given.replaceAll(/^[\t ]+|[\t ]+$/g, "");
    const before = fields.get(key);
    fields.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  const status = Number(digits);
  // No request asks for one.
  if (status < 200) return { reason: "connection_lost", text: `unexpected status ${status}` };
  const framing = framingOf(status, fields);
  if (typeof framing === "object") return framing;
  const connection = (fields.get("connection") ?? "").toLowerCase();
  const isKeptAlive =
    framing !== "until-close" &&
    !/(^|,)\s*close\s*(,|$)/.test(connection) &&
    (minor === "1" || /(^|,)\s*keep-alive\s*(,|$)/.test(connection));
  const [, seconds] = /timeout=([0-9]{1,6})/i.exec(fields.get("keep-alive") ?? "") ?? [];
  return {
    status,
    framing,
    isKeptAlive,
    retryAfter: status === 429 ? (fields.get("retry-after") ?? null) : null,
    keepAliveSeconds: seconds === undefined ? null : Number(seconds),
  };
}

function framingOf(
  status: number,
  fields: ReadonlyMap<string, string>,
): Head["framing"] | ResponseProblem {
  if (status === 204 || status === 304) return 0;
  const coding = fields.get("transfer-encoding");
  const length = fields.get("content-length");
  if (coding !== undefined && length !== undefined) {
    return invalid("expected a length or chunks of the body, got both");
  }
  if (coding !== undefined) {
    return /^chunked$/i.test(coding) ? "chunked" : invalid("expected no coding but chunked");
  }
  if (length === undefined) return "until-close";
  return /^[0-9]{1,15}$/.test(length) ? Number(length) : invalid("expected one Content-Length");
}

/** The body of complete chunks and the offset of its end; null: more bytes are needed. */
function dechunked(bytes: Buffer): { body: Buffer; end: number } | ResponseProblem | null {
  const parts: Buffer[] = [];
  let total = 0;
  let at = 0;
  for (;;) {
    const end = bytes.indexOf("\r\n", at, "latin1");
    if (end < 0) return null;
    const line = bytes.toString("latin1", at, end);
    const [, digits] = /^([0-9a-f]{1,8})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/i.exec(line) ?? [];
    if (digits === undefined) return invalid("expected the size of a chunk");
    const size = Number.parseInt(digits, 16);
    at = end + 2;
    if (size === 0) break;
    total += size;
    if (total > bodyBytesMax) return tooLarge;
    if (bytes.length < at + size + 2) return null;
    parts.push(bytes.subarray(at, at + size));
    if (bytes.toString("latin1", at + size, at + size + 2) !== "\r\n") {
      return invalid("expected a line break behind a chunk");
    }
    at += size + 2;
  }
  for (;;) {
    const end = bytes.indexOf("\r\n", at, "latin1");
    if (end < 0) return null;
    const isEmpty = end === at;
    at = end + 2;
    if (isEmpty) return { body: Buffer.concat(parts), end: at };
  }
}
