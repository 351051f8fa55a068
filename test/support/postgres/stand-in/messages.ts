// Messages of PostgreSQL's protocol, version 3: those of clients, and those that the stand-in writes itself.

const startupLengthMin = 8;
const headerLength = 5;
const sslRequest = 80_877_103;
const protocolVersion = 196_608;

export interface Message {
  readonly type: string;
  /** With its header. */
  readonly bytes: Buffer;
}

/** Complete messages that have a type. */
export function* messagesIn(bytes: Buffer): Generator<Message> {
  let from = 0;
  while (bytes.length - from >= headerLength) {
    const end = from + 1 + bytes.readInt32BE(from + 1);
    if (end > bytes.length) return;
    yield { type: String.fromCharCode(bytes[from] ?? 0), bytes: bytes.subarray(from, end) };
    from = end;
  }
}

function message(type: string, ...parts: readonly (Buffer | string)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => (typeof part === "string" ? Buffer.from(`${part}\0`) : part)),
  );
  const header = Buffer.alloc(headerLength);
  header.write(type, 0, "latin1");
  header.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([header, body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export function queryMessage(sql: string): Buffer {
  return message("Q", sql);
}

/** Forgets prepared statements, also those that failed. */
export function closeMessages(statements: readonly string[]): Buffer {
  const closes = statements.map((name) => message("C", Buffer.from("S"), name));
  return Buffer.concat([...closes, message("S")]);
}

/** The answer to a start-up packet. */
export function startedMessages(pid: number): Buffer {
  return Buffer.concat([
    message("R", int32(0)),
    message("S", "server_version", "18.7"),
    message("S", "server_encoding", "UTF8"),
    message("S", "client_encoding", "UTF8"),
    message("S", "standard_conforming_strings", "on"),
    message("K", int32(pid), int32(0)),
    message("Z", Buffer.from("I")),
  ]);
}

/** The last message of a session. */
export function fatalMessage(code: string, text: string): Buffer {
  const fields = ["SFATAL", "VFATAL", `C${code}`, `M${text}`];
  return message("E", ...fields, Buffer.alloc(1));
}

/** A request of a client. One answer ends each request except for the start and the end. */
export type Request =
  | { readonly kind: "start"; readonly parameters: ReadonlyMap<string, string> }
  | { readonly kind: "ssl" }
  | { readonly kind: "end" }
  | {
      readonly kind: "run";
      /** The messages up to Sync, with names of statements that are unique among all sessions. */
      readonly bytes: Buffer;
      /** The text of its statement. */
      readonly sql: string;
      /** Texts, and "" for a null. */
      readonly params: readonly string[];
    };

export type RunRequest = Extract<Request, { kind: "run" }>;

/** The text up to the next NUL, and the place behind it. */
function textAt(bytes: Buffer, from: number): [text: string, end: number] {
  const end = bytes.indexOf(0, from);
  return [bytes.toString("utf8", from, end), end + 1];
}

function parametersOf(bytes: Buffer): Map<string, string> {
  const parameters = new Map<string, string>();
  for (let at = startupLengthMin; bytes[at] !== 0 && at < bytes.length; ) {
    const [name, middle] = textAt(bytes, at);
    const [value, end] = textAt(bytes, middle);
    parameters.set(name, value);
    at = end;
  }
  return parameters;
}

/** Parameters of a Bind message, from the number of their formats on. */
function boundAt(bytes: Buffer, from: number): string[] {
  let at = from + 2 + 2 * bytes.readInt16BE(from);
  const count = bytes.readInt16BE(at);
  at += 2;
  const params: string[] = [];
  for (let i = 0; i < count; i++) {
    const length = Math.max(0, bytes.readInt32BE(at));
    params.push(bytes.toString("utf8", at + 4, at + 4 + length));
    at += 4 + length;
  }
  return params;
}

/** The bytes of one client as requests. */
export class RequestReader {
  /** Texts of its prepared statements, by their unique names. */
  readonly statements = new Map<string, string>();
  readonly #prefix: string;
  #rest: Buffer = Buffer.alloc(0);
  #isStarted = false;
  #parts: Buffer[] = [];
  #sql = "";
  #params: readonly string[] = [];

  /** `prefix` makes the names of statements unique. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  *read(bytes: Buffer): Generator<Request> {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (!this.#isStarted) {
      if (this.#rest.length < startupLengthMin) return;
      const length = this.#rest.readInt32BE(0);
      if (this.#rest.length < length) return;
      const packet = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      const code = packet.readInt32BE(4);
      if (code === sslRequest) {
        yield { kind: "ssl" };
        continue;
      }
      if (code !== protocolVersion) throw new Error(`expected protocol 3.0, got ${code}`);
      this.#isStarted = true;
      yield { kind: "start", parameters: parametersOf(packet) };
    }
    let length = 0;
    for (const part of messagesIn(this.#rest)) {
      length += part.bytes.length;
      const request = this.#take(part);
      if (request) yield request;
    }
    this.#rest = this.#rest.subarray(length);
  }

  #take({ type, bytes }: Message): Request | null {
    if (type === "X") return { kind: "end" };
    if (type === "Q")
      return { kind: "run", bytes, sql: textAt(bytes, headerLength)[0], params: [] };
    this.#parts.push(this.#renamed(type, bytes));
    if (type !== "S") return null;
    const request = { bytes: Buffer.concat(this.#parts), sql: this.#sql, params: this.#params };
    this.#parts = [];
    return { kind: "run", ...request };
  }

  #renamed(type: string, bytes: Buffer): Buffer {
    switch (type) {
      case "P": {
        const [name, middle] = textAt(bytes, headerLength);
        const [sql] = textAt(bytes, middle);
        const known = this.#uniqueOf(name);
        this.statements.set(known, sql);
        return message(type, known, bytes.subarray(middle));
      }
      case "B": {
        const [portal, middle] = textAt(bytes, headerLength);
        const [name, end] = textAt(bytes, middle);
        const known = this.#uniqueOf(name);
        this.#sql = this.statements.get(known) ?? "";
        this.#params = boundAt(bytes, end);
        return message(type, portal, known, bytes.subarray(end));
      }
      case "C":
      case "D": {
        if (bytes[headerLength] !== "S".charCodeAt(0)) return bytes;
        const [name] = textAt(bytes, headerLength + 1);
        return message(type, bytes.subarray(headerLength, headerLength + 1), this.#uniqueOf(name));
      }
      default:
        return bytes;
    }
  }

  #uniqueOf(name: string): string {
    return name === "" ? "" : `${this.#prefix}${name}`;
  }
}
