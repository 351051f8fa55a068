// One gRPC call with a stream of responses, and of requests if the method takes them: the server's side.
//
// Created by grpc-server.ts. Requests are bounded in size. Responses wait in a queue of this call until
// the client reads; the caller of `send` decides when the queue is too long.

import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Clock } from "../clock.ts";
import { FrameReader } from "./frame-reader.ts";
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

export class GrpcStream {
  /** "/package.Service/Method". */
  readonly path: string;
  /** Address of the caller's end of the connection. */
  readonly peer: string;
  readonly headers: IncomingHttpHeaders;
  /** Why the connection ended, if its caller did not answer a ping; else empty. */
  silence = "";
  readonly #dependencies: GrpcStreamDependencies;
  readonly #stream: ServerHttp2Stream;
  #onClose: () => void = () => {};
  #onHandedOver: (messages: number) => void = () => {};
  #queue: Uint8Array[] = [];
  #queueBytes = 0;
  /** Messages in each write that has not finished. */
  readonly #writes: number[] = [];
  readonly #onWritten = (error?: Error | null): void => {
    const messages = this.#writes.shift() ?? 0;
    if (!error) this.#onHandedOver(messages);
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
    stream.on("drain", () => this.#flush());
    stream.on("close", () => this.#finish("CANCELLED", ""));
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Bytes that wait for the client. */
  get waitingBytes(): number {
    return this.#queueBytes + this.#stream.writableLength;
  }

  /** Messages that wait and were not given to the connection yet. */
  get waitingMessages(): number {
    return this.#queue.length;
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
   * `onEnd` is called when the client sends no more. `requestBytesMax`: below the limit of the server.
   */
  accept(
    onMessage: (message: Uint8Array) => void,
    onEnd: () => void,
    requestBytesMax = this.#dependencies.requestBytesMax,
  ): void {
    if (this.#isEnded || this.#stream.destroyed || this.#stream.closed) return;
    this.#respond();
    const frames = new FrameReader(requestBytesMax);
    this.#stream.on("data", (chunk: Buffer) => {
      if (this.#isEnded) return;
      this.#guard(() => this.#pass(frames.add(chunk), onMessage));
    });
    this.#stream.on("end", () => {
      if (!this.#isEnded) this.#guard(onEnd);
    });
  }

  /** Queues framed messages (status.ts). Nothing is sent after the end. */
  send(framed: Uint8Array): void {
    if (this.#isEnded) return;
    this.#queue.push(framed);
    this.#queueBytes += framed.length;
  }

  /** Gives queued messages to the connection. Called once after several `send`. */
  flush(): void {
    if (!this.#stream.writableNeedDrain) this.#flush();
  }

  /** Ends the call. What is queued is sent before an OK, and dropped before an error. */
  end(status: GrpcStatus, detail = ""): void {
    if (this.#isEnded) return;
    if (status === "OK") {
      const rest = Buffer.concat(this.#queue);
      if (rest.length > 0) this.#stream.write(rest);
    }
    this.#queue = [];
    this.#queueBytes = 0;
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
      this.#stream.respond(
        { ":status": 200, "content-type": "application/grpc", ...trailers },
        { endStream: true },
      );
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
    this.#queue = [];
    this.#queueBytes = 0;
    this.#finish("UNAVAILABLE", detail);
  }

  #respond(): void {
    this.#hasResponded = true;
    this.#stream.respond(
      { ":status": 200, "content-type": "application/grpc" },
      { waitForTrailers: true },
    );
  }

  #finish(status: GrpcStatus, detail: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#dependencies.onOutcome(status, detail);
    this.#onClose();
  }

  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      const { status, detail } = this.#dependencies.refusalOf(error);
      this.end(status, detail);
    }
  }

  #pass(messages: Iterable<Uint8Array>, onMessage: (message: Uint8Array) => void): void {
    for (const message of messages) {
      if (this.#isEnded) return;
      onMessage(message);
    }
  }

  #flush(): void {
    while (this.#queue.length > 0 && !this.#isEnded && !this.#stream.writableNeedDrain) {
      let bytes = 0;
      let count = 0;
      for (; count < this.#queue.length && bytes < writeBytes; count++) {
        bytes += this.#queue[count]?.length ?? 0;
      }
      const parts = this.#queue.splice(0, count);
      this.#queueBytes -= bytes;
      this.#writes.push(count);
      this.#stream.write(
        parts.length === 1 ? parts[0] : Buffer.concat(parts, bytes),
        this.#onWritten,
      );
    }
  }
}
