// A gRPC client for calls with one request and one response, over HTTP/2 with or without TLS.
//
// The connection opens at the first call and again at the first call after a loss. Every call has a
// deadline and ends with a message or a GrpcError.

import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import type { Clock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import { packageVersion } from "../version.ts";
import {
  decodeGrpcMessage,
  frameHeaderBytes,
  frameMessage,
  GrpcError,
  statusOfHttp,
  statusOfNumber,
  unframeMessage,
} from "./status.ts";

const responseBytesMax = 64 * 1024;
const userAgent = `shredway/${packageVersion()}`;

interface GrpcChannelOptions {
  /** "http://host:port": without TLS; "https://host:port": with TLS and the roots of Node.js. */
  readonly url: string;
  readonly clock: Clock;
  /** Certificates in PEM form that replace the roots of Node.js. */
  readonly certificateAuthorities?: string | undefined;
  /** Address family of the connection; absent: both. */
  readonly family?: 4 | 6 | undefined;
}

interface GrpcCall {
  /** "/package.Service/Method" */
  readonly path: string;
  readonly request: Uint8Array;
  readonly timeoutMs: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

export class GrpcChannel {
  readonly #options: GrpcChannelOptions;
  #session: ClientHttp2Session | undefined;
  #isClosed = false;

  constructor(options: GrpcChannelOptions) {
    this.#options = options;
  }

  /** Connects if necessary. Settles with the local address of the connection. Rejects with GrpcError. */
  async connect(timeoutMs: number): Promise<string> {
    const session = await this.#whenConnected(timeoutMs);
    const { localAddress } = session.socket;
    if (localAddress === undefined) throw this.#lost();
    return localAddress;
  }

  /** Settles with the response's message. Rejects with GrpcError. */
  call({ path, request, timeoutMs, metadata }: GrpcCall): Promise<Uint8Array> {
    const { clock } = this.#options;
    return new Promise((resolve, reject) => {
      const session = this.#connected();
      let stream: ClientHttp2Stream | undefined;
      const settle = (result: Uint8Array | GrpcError): void => {
        timer.cancel();
        session.off("close", lost);
        session.off("error", lost);
        stream?.close(constants.NGHTTP2_CANCEL);
        if (result instanceof GrpcError) reject(result);
        else resolve(result);
      };
      const lost = (error?: Error): void => settle(this.#lost(error));
      const timer = clock.after(timeoutMs, () => {
        // A connection on which nothing arrives is not used again.
        this.#forget(session);
        settle(new GrpcError("DEADLINE_EXCEEDED", `no response within ${timeoutMs} ms`));
      });
      session.once("error", lost);
      session.once("close", lost);
      try {
        stream = session.request(requestHeaders(path, timeoutMs, metadata));
      } catch (error) {
        lost(error instanceof Error ? error : undefined);
        return;
      }
      stream.on("error", lost);
      readResponse(stream, settle);
      stream.end(frameMessage(request));
    });
  }

  /** Pending calls fail. Idempotent. */
  close(): void {
    this.#isClosed = true;
    if (this.#session) this.#forget(this.#session);
  }

  #whenConnected(timeoutMs: number): Promise<ClientHttp2Session> {
    return new Promise((resolve, reject) => {
      const session = this.#connected();
      const settle = (error?: GrpcError): void => {
        timer.cancel();
        session.off("connect", succeeded).off("error", lost).off("close", lost);
        if (error) reject(error);
        else resolve(session);
      };
      const succeeded = (): void => settle();
      const lost = (error?: Error): void => settle(this.#lost(error));
      const timer = this.#options.clock.after(timeoutMs, () => {
        this.#forget(session);
        settle(new GrpcError("DEADLINE_EXCEEDED", `no connection within ${timeoutMs} ms`));
      });
      if (session.connecting) session.on("connect", succeeded).on("error", lost).on("close", lost);
      else succeeded();
    });
  }

  #lost(error?: Error): GrpcError {
    // The error of a stream names the loss of its connection as its cause.
    const cause = error?.cause instanceof Error ? error.cause : error;
    const why = cause ? messageOf(cause) : "the server closed it";
    const { host } = new URL(this.#options.url);
    return new GrpcError("UNAVAILABLE", `connection to ${host}: ${why}`);
  }

  #connected(): ClientHttp2Session {
    if (this.#isClosed) throw new GrpcError("CANCELLED", "the channel is closed");
    if (this.#session && !this.#session.closed && !this.#session.destroyed) return this.#session;
    const { url, certificateAuthorities: ca, family } = this.#options;
    const session = connect(url, {
      ...(ca !== undefined && { ca }),
      ...(family !== undefined && { family }),
      settings: { enablePush: false },
    });
    session.on("error", () => {}); // each pending call reports it
    session.on("goaway", () => session.close());
    session.on("close", () => {
      if (this.#session === session) this.#session = undefined;
    });
    this.#session = session;
    return session;
  }

  #forget(session: ClientHttp2Session): void {
    if (this.#session === session) this.#session = undefined;
    session.destroy();
  }
}

function requestHeaders(
  path: string,
  timeoutMs: number,
  metadata: GrpcCall["metadata"],
): Record<string, string> {
  return {
    [constants.HTTP2_HEADER_METHOD]: "POST",
    [constants.HTTP2_HEADER_PATH]: path,
    "content-type": "application/grpc",
    te: "trailers",
    "grpc-timeout": `${timeoutMs}m`,
    "user-agent": userAgent,
    ...metadata,
  };
}

function readResponse(
  stream: ClientHttp2Stream,
  settle: (result: Uint8Array | GrpcError) => void,
): void {
  const chunks: Buffer[] = [];
  let length = 0;
  let head: IncomingHttpHeaders | undefined;
  let trailers: IncomingHttpHeaders | undefined;
  stream.on("response", (headers) => {
    head = headers;
    // A response without a message has its gRPC status in the headers.
    if (headers["grpc-status"] !== undefined) trailers = headers;
  });
  stream.on("trailers", (headers: IncomingHttpHeaders) => {
    trailers = headers;
  });
  stream.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > responseBytesMax + frameHeaderBytes) {
      const detail = `expected a response of at most ${responseBytesMax} bytes, got more`;
      settle(new GrpcError("RESOURCE_EXHAUSTED", detail));
    } else chunks.push(chunk);
  });
  stream.on("close", () => settle(resultOf(head, trailers, Buffer.concat(chunks))));
}

function resultOf(
  head: IncomingHttpHeaders | undefined,
  trailers: IncomingHttpHeaders | undefined,
  body: Buffer,
): Uint8Array | GrpcError {
  if (!head) return new GrpcError("UNAVAILABLE", "the server ended the call without a response");
  const httpStatus = Number(head[":status"]);
  const number = trailers?.["grpc-status"];
  if (typeof number !== "string") {
    if (httpStatus !== 200) {
      return new GrpcError(statusOfHttp(httpStatus), `HTTP status ${httpStatus} without gRPC`);
    }
    return new GrpcError("INTERNAL", "the response has no gRPC status");
  }
  const status = statusOfNumber(number);
  if (status !== "OK") {
    const message = trailers?.["grpc-message"];
    return new GrpcError(status, typeof message === "string" ? decodeGrpcMessage(message) : "");
  }
  try {
    return Uint8Array.from(unframeMessage(body));
  } catch (error) {
    return error instanceof GrpcError ? error : new GrpcError("INTERNAL", messageOf(error));
  }
}
