// Reads the HTTP/1.1 requests of one connection from its bytes (RFC 9112).
//
// http1-connection.ts passes every piece that arrives, cut anywhere. The reader is strict: whatever two
// programs could understand in different ways (a bare line feed, folded headers, two lengths, a length
// beside chunks) is an error, after which nothing more is read. Memory is bounded by the size of a head.

import { parseRequestHead, type RequestHead, type RequestProblem } from "./request-head.ts";

export const headBytesMax = 20_480;
/** Size of a chunk with its extensions, and all trailers of a body. */
const chunkLineBytesMax = 4096;
const trailerBytesMax = headBytesMax;
const carriageReturn = 13;
const lineFeed = 10;

/** Calls of the reader, in the order of the bytes. */
interface RequestReaderListener {
  /**
   * A head, before its body. `bytes` without the empty line; repetitions have the same object. `begin`: its
   * place among all bytes of the connection.
   */
  head(head: RequestHead, bytes: Uint8Array, begin: number): void;
  /** The piece is valid until the call returns. A request without a body has one empty piece. */
  body(piece: Uint8Array, isLast: boolean): void;
}

const noBytes = Buffer.alloc(0);
const tooLong: RequestProblem = {
  status: 431,
  expected: `a head of at most ${headBytesMax} bytes`,
};
const badChunk: RequestProblem = { status: 400, expected: "chunks of RFC 9112" };

type State = "head" | "fixed" | "chunk-size" | "chunk-data" | "chunk-end" | "trailers" | "stopped";

export class RequestReader {
  readonly #listener: RequestReaderListener;
  #state: State = "head";
  /** The part of a head that has arrived; empty: none. */
  #partial: Buffer = noBytes;
  #partialBytes = 0;
  /** Bytes of the connection before the present piece. */
  #earlierBytes = 0;
  #readBytes = 0;
  /** The newest head and its bytes: clients repeat their heads, and a repeated one is not parsed again. */
  #lastHead: RequestHead | undefined;
  #lastBytes: Buffer = noBytes;
  /** Bytes of the body or of the chunk that have not arrived. */
  #left = 0;
  #line = "";
  #trailerBytes = 0;
  #keepsRest = false;
  #rest: Buffer = noBytes;

  constructor(listener: RequestReaderListener) {
    this.#listener = listener;
  }

  /** Whether a head has begun and not ended. */
  get isInHead(): boolean {
    return this.#state === "head" && this.#partialBytes > 0;
  }

  /** Whether the body of the newest request has not ended. */
  get isInBody(): boolean {
    return this.#state !== "head" && this.#state !== "stopped";
  }

  /** Bytes of the connection up to the end of the newest head or part of a body; its piece may have more. */
  get readBytes(): number {
    return this.#readBytes;
  }

  /** Nothing behind the newest head or body is read. May be called by the listener. */
  stop({ keepsRest = false } = {}): void {
    this.#state = "stopped";
    this.#keepsRest = keepsRest;
    if (!keepsRest) this.#rest = noBytes;
  }

  /** The bytes behind the head after which `stop` was called, if it keeps them. */
  get rest(): Buffer {
    return this.#rest;
  }

  /** Returns the problem after which nothing more is read; null: none. */
  read(piece: Buffer): RequestProblem | null {
    const problem = this.#readPiece(piece);
    this.#earlierBytes += piece.length;
    return problem;
  }

  #readPiece(piece: Buffer): RequestProblem | null {
    let at = 0;
    while (at < piece.length) {
      if (this.#state === "stopped") {
        if (this.#keepsRest) this.#rest = Buffer.concat([this.#rest, piece.subarray(at)]);
        return null;
      }
      const next = this.#step(piece, at);
      if (typeof next !== "number") {
        this.#state = "stopped";
        return next;
      }
      at = next;
    }
    return null;
  }

  /** Reads from `at`; returns where to continue. */
  #step(piece: Buffer, at: number): number | RequestProblem {
    switch (this.#state) {
      case "head":
        return this.#readHead(piece, at);
      case "fixed":
      case "chunk-data":
        return this.#readData(piece, at);
      case "chunk-end":
        return this.#readChunkEnd(piece, at);
      case "chunk-size":
      case "trailers":
        return this.#readLine(piece, at);
      case "stopped":
        return piece.length;
    }
  }

  #readHead(piece: Buffer, begin: number): number | RequestProblem {
    if (this.#partialBytes > 0) return this.#continueHead(piece, begin);
    let at = begin;
    // Empty lines before a request are skipped (RFC 9112, 2.2).
    while (piece[at] === carriageReturn && piece[at + 1] === lineFeed) at += 2;
    if (at >= piece.length) return at;
    const end = piece.indexOf("\r\n\r\n", at, "latin1");
    if (end >= 0) return this.#headEnded(piece.subarray(at, end), at, end + 4);
    if (piece.length - at > headBytesMax + 4) return tooLong;
    this.#keep(piece.subarray(at));
    return piece.length;
  }

  #continueHead(piece: Buffer, begin: number): number | RequestProblem {
    const before = this.#partialBytes;
    // More than the longest head is never needed.
    const added = piece.subarray(begin, begin + headBytesMax + 4);
    this.#keep(added);
    const bytes = this.#partial.subarray(0, this.#partialBytes);
    const first = bytes[0] === carriageReturn && bytes[1] === lineFeed ? 2 : 0;
    const end = bytes.indexOf("\r\n\r\n", Math.max(first, before - 3), "latin1");
    if (end < 0) return bytes.length > headBytesMax + 4 ? tooLong : begin + added.length;
    this.#partialBytes = 0;
    return this.#headEnded(
      bytes.subarray(first, end),
      begin + first - before,
      begin + end + 4 - before,
    );
  }

  #keep(bytes: Buffer): void {
    const length = this.#partialBytes + bytes.length;
    if (length > this.#partial.length) {
      const capacity = Math.max(1024, length, Math.min(2 * this.#partial.length, headBytesMax));
      const grown = Buffer.allocUnsafe(capacity);
      this.#partial.copy(grown, 0, 0, this.#partialBytes);
      this.#partial = grown;
    }
    bytes.copy(this.#partial, this.#partialBytes);
    this.#partialBytes = length;
  }

  /** `begin` and `next`: places in the present piece; a head may begin before it. */
  #headEnded(bytes: Buffer, begin: number, next: number): number | RequestProblem {
    if (bytes.length > headBytesMax) return tooLong;
    const head = this.#headOf(bytes);
    if ("status" in head) return head;
    const { bodyBytes } = head;
    this.#left = bodyBytes ?? 0;
    this.#state = bodyBytes === null ? "chunk-size" : "fixed";
    if (bodyBytes === 0) this.#state = "head";
    this.#readBytes = this.#earlierBytes + next;
    this.#listener.head(head, this.#lastBytes, this.#earlierBytes + begin);
    if (bodyBytes === 0) this.#listener.body(noBytes, true);
    return next;
  }

  #headOf(bytes: Buffer): RequestHead | RequestProblem {
    if (this.#lastHead && bytes.equals(this.#lastBytes)) return this.#lastHead;
    const head = parseRequestHead(bytes.toString("latin1"));
    if ("status" in head) return head;
    this.#lastHead = head;
    this.#lastBytes = Buffer.from(bytes); // a copy: the piece may be overwritten
    return head;
  }

  #readData(piece: Buffer, at: number): number {
    const end = Math.min(piece.length, at + this.#left);
    const part = piece.subarray(at, end);
    this.#left -= part.length;
    const isLast = this.#left === 0 && this.#state === "fixed";
    if (isLast) this.#state = "head";
    else if (this.#left === 0) this.#state = "chunk-end";
    this.#readBytes = this.#earlierBytes + end;
    this.#listener.body(part, isLast);
    return end;
  }

  /** The line break behind the data of a chunk. */
  #readChunkEnd(piece: Buffer, at: number): number | RequestProblem {
    this.#line += String.fromCharCode(piece[at] ?? 0);
    if (!"\r\n".startsWith(this.#line)) return badChunk;
    if (this.#line.length < 2) return at + 1;
    this.#line = "";
    this.#state = "chunk-size";
    return at + 1;
  }

  /** The size of a chunk, or a trailer. */
  #readLine(piece: Buffer, at: number): number | RequestProblem {
    const end = piece.indexOf(lineFeed, at);
    const stop = end < 0 ? piece.length : end + 1;
    if (this.#line.length + stop - at > chunkLineBytesMax) return badChunk;
    this.#line += piece.toString("latin1", at, stop);
    if (end < 0) return stop;
    const line = this.#line;
    this.#line = "";
    if (!line.endsWith("\r\n")) return badChunk;
    this.#readBytes = this.#earlierBytes + stop;
    const problem = this.#state === "trailers" ? this.#trailer(line) : this.#chunkSize(line);
    return problem ?? stop;
  }

  #chunkSize(line: string): RequestProblem | null {
    const [, digits] = /^([0-9a-f]{1,8})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n$/i.exec(line) ?? [];
    if (digits === undefined) return badChunk;
    this.#left = Number.parseInt(digits, 16);
    this.#trailerBytes = 0;
    this.#state = this.#left === 0 ? "trailers" : "chunk-data";
    return null;
  }

  #trailer(line: string): RequestProblem | null {
    this.#trailerBytes += line.length;
    if (line === "\r\n") {
      this.#state = "head";
      this.#listener.body(noBytes, true);
      return null;
    }
    const isField = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n$/.test(line);
    return isField && this.#trailerBytes <= trailerBytesMax ? null : badChunk;
  }
}
