// One gRPC call with a stream of responses, on a connection of its own: the client's side.
//
// The call ends once, with the status of the server or with a failure of the connection. HTTP/2 pings find
// a connection on which nothing arrives any more. A failure names what the endpoint probably expects.

import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import type { Clock, Timer } from "../clock.ts";
import { messageOf } from "../errors.ts";
import { packageVersion } from "../version.ts";
import { FrameReader } from "./frame-reader.ts";
import {
  decodeGrpcMessage,
  frameMessage,
  GrpcError,
  type GrpcStatus,
  statusOfHttp,
  statusOfNumber,
} from "./status.ts";

/** How a call ended. */
export interface GrpcEnd {
  readonly status: GrpcStatus;
  /** Bounded, without control characters; empty for OK without a message. */
  readonly detail: string;
  /** false: the connection failed, or the response was invalid. */
  readonly isFromServer: boolean;
}

interface GrpcStreamCallOptions {
  /** "http://host:port" or "https://host:port"; a path in it precedes the path of the method. */
  readonly url: string;
  /** "/package.Service/Method" */
  readonly path: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Certificates in PEM form that replace the roots of Node.js. */
  readonly certificateAuthorities?: string | undefined;
  /** Length of the longest message of the server. */
  readonly messageBytesMax: number;
  readonly clock: Clock;
  /** The server has accepted the call. */
  readonly onOpen: () => void;
  /** `message` is a view that is valid during the call. */
  readonly onMessage: (message: Uint8Array) => void;
  /** Called once. */
  readonly onEnd: (end: GrpcEnd) => void;
}

const connectMs = 10_000;
const keepAliveMs = 10_000;
/** Bytes that the server may send before this side confirms them. The default is 64 KiB. */
const windowBytes = 8 << 20;
const userAgent = `shredway/${packageVersion()}`;

export class GrpcStreamCall {
  readonly #options: GrpcStreamCallOptions;
  readonly #session: ClientHttp2Session;
  readonly #frames: FrameReader;
  readonly #timer: Timer;
  #keepAlive: Timer | undefined;
  #stream: ClientHttp2Stream | undefined;
  #speaksHttp2 = false;
  #isPingOpen = false;
  #isEnded = false;

  constructor(options: GrpcStreamCallOptions) {
    const { url, certificateAuthorities: ca, messageBytesMax, clock } = options;
    this.#options = options;
    this.#frames = new FrameReader(messageBytesMax);
    this.#session = connect(new URL(url).origin, {
      ...(ca !== undefined && { ca }),
      settings: { enablePush: false, initialWindowSize: windowBytes },
    });
    this.#timer = clock.after(connectMs, () => this.#lost(`no answer within ${connectMs} ms`));
    this.#session.on("connect", () => {
      if (!this.#isEnded) this.#session.setLocalWindowSize(windowBytes);
    });
    this.#session.on("remoteSettings", () => this.#connected());
    this.#session.on("error", (error) => this.#failed(error));
    this.#session.on("close", () => this.#failed());
    this.#request();
  }

  send(message: Uint8Array): void {
    if (!this.#isEnded) this.#stream?.write(frameMessage(message));
  }

  /** No more messages follow. */
  finish(): void {
    if (!this.#isEnded) this.#stream?.end();
  }

  /** Ends the call without `onEnd`. Idempotent. */
  close(): void {
    this.#isEnded = true;
    this.#timer.cancel();
    this.#keepAlive?.cancel();
    this.#session.destroy();
  }

  #request(): void {
    const { url, path, metadata } = this.#options;
    const prefix = new URL(url).pathname.replace(/\/+$/, "");
    const stream = this.#session.request({
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: prefix + path,
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": userAgent,
      ...metadata,
    });
    this.#stream = stream;
    let head: IncomingHttpHeaders | undefined;
    let trailers: IncomingHttpHeaders | undefined;
    stream.on("response", (headers) => {
      head = headers;
      // A response without a message has its gRPC status in the headers.
      if (headers["grpc-status"] !== undefined) trailers = headers;
      else if (headers[":status"] === 200 && !this.#isEnded) this.#options.onOpen();
    });
    stream.on("trailers", (headers: IncomingHttpHeaders) => {
      trailers = headers;
    });
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("error", (error) => this.#failed(error));
    // The client sends nothing more when the server has ended the call.
    stream.on("end", () => stream.end());
    stream.on("close", () => {
      const end = endOf(head, trailers);
      if (end) this.#end(end);
      else this.#failed();
    });
  }

  #receive(chunk: Buffer): void {
    try {
      for (const message of this.#frames.add(chunk)) {
        if (this.#isEnded) return;
        this.#options.onMessage(message);
      }
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      this.#end({ status: error.status, detail: error.detail, isFromServer: false });
    }
  }

  #connected(): void {
    if (this.#speaksHttp2) return;
    this.#speaksHttp2 = true;
    this.#timer.cancel();
    this.#keepAlive = this.#options.clock.every(keepAliveMs, () => this.#ping());
  }

  #ping(): void {
    if (this.#session.destroyed) return;
    if (this.#isPingOpen) {
      this.#lost(`no answer to a ping within ${keepAliveMs} ms`);
      return;
    }
    this.#isPingOpen = this.#session.ping((error) => {
      if (!error) this.#isPingOpen = false;
    });
  }

  #failed(error?: Error): void {
    // The error of a stream names the loss of its connection as its cause.
    const cause = error?.cause instanceof Error ? error.cause : error;
    this.#lost(reasonOf(cause) + this.#hintFor(cause));
  }

  #lost(why: string): void {
    const { host } = new URL(this.#options.url);
    const { detail } = new GrpcError("UNAVAILABLE", `connection to ${host}: ${why}`);
    this.#end({ status: "UNAVAILABLE", detail, isFromServer: false });
  }

  #hintFor(error: Error | undefined): string {
    if (this.#speaksHttp2 || isUnreachable(error)) return "";
    const { protocol, host } = new URL(this.#options.url);
    if (protocol === "http:") {
      return `; expected HTTP/2 without TLS; if the endpoint uses TLS, write https://${host}`;
    }
    if (isCertificateError(error)) return "; expected a certificate that this client trusts";
    return `; expected HTTP/2 with TLS; if the endpoint has no TLS, write http://${host}`;
  }

  #end(end: GrpcEnd): void {
    if (this.#isEnded) return;
    this.close();
    this.#options.onEnd(end);
  }
}

function codeOf(error: Error | undefined): string {
  return error && "code" in error ? String(error.code) : "";
}

function reasonOf(error: Error | undefined): string {
  if (!error) return "the endpoint closed it";
  // Several addresses of one name failed.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  // The message of an error of OpenSSL contains source lines.
  if (first instanceof Error && "reason" in first) return String(first.reason);
  return messageOf(first);
}

/** Nothing answered, so the protocol is not the reason. */
function isUnreachable(error: Error | undefined): boolean {
  return /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/.test(
    codeOf(error),
  );
}

function isCertificateError(error: Error | undefined): boolean {
  return /CERT|UNABLE_TO_VERIFY/.test(codeOf(error));
}

/** undefined: the server sent no status. */
function endOf(
  head: IncomingHttpHeaders | undefined,
  trailers: IncomingHttpHeaders | undefined,
): GrpcEnd | undefined {
  const number = trailers?.["grpc-status"];
  if (typeof number === "string") {
    const status = statusOfNumber(number);
    const message = trailers?.["grpc-message"];
    const text = typeof message === "string" ? decodeGrpcMessage(message) : "";
    if (status === "OK" && text === "") return { status, detail: "", isFromServer: true };
    return { status, detail: new GrpcError(status, text).detail, isFromServer: true };
  }
  const httpStatus = Number(head?.[":status"] ?? 200);
  if (httpStatus === 200) return undefined;
  const status = statusOfHttp(httpStatus);
  return { status, detail: `HTTP status ${httpStatus} without gRPC`, isFromServer: true };
}
