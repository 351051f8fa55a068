// One gRPC call with a stream of responses, and of requests if the method takes them: the server's side.
//
// Created by grpc-server.ts. Requests are bounded in size, and in their rate if the method says so. Responses
// wait in a queue of this call until the client reads; the caller of `send` decides when the queue is too long.

import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Clock } from "../clock.ts";
import { decompressFor, responseHeaders } from "./compression.ts";
import { MessageQueue } from "./message-queue.ts";
import { type RequestPace, RequestReader } from "./request-reader.ts";
import { encodeGrpcMessage, type GrpcError, type GrpcStatus, numberOfStatus } from "./status.ts";

/** Bytes that are given to HTTP/2 at once; the rest can still be dropped when a call ends. */
const writeBytes = 256 * 1024;
/** A client that does not read the end of its call is disconnected after this time. */
const endMs = 10_000;

interface GrpcStreamDependencies {
  readonly stream: ServerHttp2Stream;
  readonly path: string;
  readonly peer: string;
  readonly headers: IncomingHttpHeaders;
  readonly requestBytesMax: number;
  readonly clock: Clock;
  /** Called once, with the end of the call. */
  readonly onOutcome: (status: GrpcStatus, detail: string) => void;
  /** The status for an exception of a listener. */
  readonly refusalOf: (error: unknown) => GrpcError;
}

interface RequestLimits {
  /** Below the limit of the server. */
  readonly requestBytesMax?: number;
  /** Absent: requests are handled as they come. */
  readonly pace?: RequestPace;
}

export class GrpcStream {
  /** "/package.Service/Method". */
  readonly path: string;
  /** Address of the caller's end of the connection. */
  readonly peer: string;
  readonly headers: IncomingHttpHeaders;
  /** Why the connection ended, if its caller did not answer a ping; else empty. */
  silence = "";
  /** Why the call ended, if a request of its client was invalid; else empty. */
  refusal = "";
  readonly #dependencies: GrpcStreamDependencies;
  readonly #stream: ServerHttp2Stream;
  #onClose: () => void = () => {};
  #onHandedOver: (messages: number) => void = () => {};
  readonly #queue = new MessageQueue();
  #requests: RequestReader | undefined;
  /** Messages before those that requests wait for; null: requests do not wait. */
  #heldMessages: number | null = null;
  /** Messages in the write that has not finished. */
  #writtenMessages = 0;
  readonly #onWritten = (error?: Error | null): void => {
    if (error) return;
    this.#onHandedOver(this.#writtenMessages);
    this.#flush();
  };
  #isEnded = false;
  #hasResponded = false;

  constructor(dependencies: GrpcStreamDependencies) {
    const { stream, path, peer, headers } = dependencies;
    this.#dependencies = dependencies;
    this.#stream = stream;
    this.path = path;
    this.peer = peer;
    this.headers = headers;
    stream.on("close", () => this.#finish("CANCELLED", ""));
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Bytes that wait for the client. */
  get waitingBytes(): number {
    return this.#queue.bytes + this.#stream.writableLength;
  }

  /** Messages that wait and were not given to the connection yet. */
  get waitingMessages(): number {
    return this.#queue.messages;
  }

  /** `listener` is called once, when the call has ended on this side or its client is gone. */
  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  /** `listener` is called after the kernel has got messages of `send`, with their number, oldest first. */
  onHandedOver(listener: (messages: number) => void): void {
    this.#onHandedOver = listener;
  }

  /**
   * Sends the headers of the response, and reads requests. An exception of a listener ends the call.
   * `onEnd` is called when the client sends no more.
   */
  accept(
    onMessage: (message: Uint8Array) => void,
    onEnd: () => void,
    { requestBytesMax = this.#dependencies.requestBytesMax, pace }: RequestLimits = {},
  ): void {
    if (this.#isEnded || this.#stream.destroyed || this.#stream.closed) return;
    this.#respond();
    this.#requests = new RequestReader({
      stream: this.#stream,
      requestBytesMax,
      decompress: decompressFor(this.headers),
      pace,
      onMessage,
      onEnd,
      guard: (act) => this.#guard(act),
    });
  }

  /**
   * Handles no further request until the connection has got what is queued now. A client that asks and never
   * reads then has one answer in the queue.
   */
  holdRequests(): void {
    if (this.#queue.messages === 0) return;
    this.#heldMessages = this.#queue.messages;
    this.#requests?.hold();
  }

  /** Queues framed messages (status.ts). Nothing is sent after the end. */
  send(framed: Uint8Array): void {
    if (!this.#isEnded) this.#queue.push(framed, this.#stream.writableLength > 0);
  }

  /** Gives queued messages to the connection. Called once after several `send`. */
  flush(): void {
    this.#flush();
  }

  /** Ends the call. What is queued is sent before an OK, and dropped before an error. */
  end(status: GrpcStatus, detail = ""): void {
    if (this.#isEnded) return;
    if (status === "OK") {
      const rest = this.#queue.take(Number.POSITIVE_INFINITY);
      if (rest.messages > 0) this.#stream.write(rest.bytes);
    }
    this.#queue.clear();
    this.#finish(status, detail);
    if (this.#stream.destroyed || this.#stream.closed) return;
    const trailers = {
      "grpc-status": String(numberOfStatus(status)),
      ...(detail !== "" && { "grpc-message": encodeGrpcMessage(detail) }),
    };
    const timer = this.#dependencies.clock.after(endMs, () =>
      this.#stream.close(constants.NGHTTP2_CANCEL),
    );
    this.#stream.on("close", () => timer.cancel());
    if (!this.#hasResponded) {
      this.#stream.respond({ ...responseHeaders, ...trailers }, { endStream: true });
      return;
    }
    // The client closes its side when it has read them. A reset could overtake them.
    this.#stream.once("wantTrailers", () => this.#stream.sendTrailers(trailers));
    this.#stream.end();
  }

  /** The caller did not answer a ping, so its connection ends. */
  endSilent(detail: string): void {
    if (this.#isEnded) return;
    this.silence = detail;
    this.#queue.clear();
    this.#finish("UNAVAILABLE", detail);
  }

  #respond(): void {
    this.#hasResponded = true;
    this.#stream.respond(responseHeaders, { waitForTrailers: true });
  }

  #finish(status: GrpcStatus, detail: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#requests?.close();
    this.#dependencies.onOutcome(status, detail);
    this.#onClose();
  }

  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      const { status, detail } = this.#dependencies.refusalOf(error);
      if (!this.#isEnded) this.refusal = detail;
      this.end(status, detail);
    }
  }

  /** One write at a time: what waits behind it would need more memory in the connection than in the queue. */
  #flush(): void {
    if (this.#queue.messages === 0 || this.#isEnded || this.#stream.writableLength > 0) return;
    const { bytes, messages } = this.#queue.take(writeBytes);
    this.#writtenMessages = messages;
    this.#stream.write(bytes, this.#onWritten);
    this.#release(messages);
  }

  /** `messages` were given to the connection. */
  #release(messages: number): void {
    if (this.#heldMessages === null) return;
    this.#heldMessages -= messages;
    if (this.#heldMessages > 0) return;
    this.#heldMessages = null;
    this.#requests?.release();
  }
}
