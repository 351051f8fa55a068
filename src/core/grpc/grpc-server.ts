// A gRPC server over HTTP/2 with or without TLS: calls with one request and one response, and streams.
//
// Callers are untrusted: connections, calls, message sizes and times are bounded. Handlers get the
// caller's address from the connection and throw GrpcError for a refusal.

import {
  constants,
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Server, Socket } from "node:net";
import { getSystemErrorMap } from "node:util";
import { type Endpoint, formatAddress, formatEndpoint } from "../addresses/addresses.ts";
import { callerOf, peerAddress } from "../addresses/caller.ts";
import type { Clock, Timer } from "../clock.ts";
import { messageOf, ShredwayError } from "../errors.ts";
import { KeyedBudgets } from "../keyed-budgets.ts";
import type { RateLimit } from "../rate-budget.ts";
import type { TlsMaterial } from "../tls-material.ts";
import { decompressFor, responseHeaders } from "./compression.ts";
import { GrpcStream } from "./grpc-stream.ts";
import { ProtobufError } from "./protobuf.ts";
import {
  encodeGrpcMessage,
  frameHeaderBytes,
  frameMessage,
  GrpcError,
  type GrpcStatus,
  numberOfStatus,
  unframeMessage,
} from "./status.ts";

export interface GrpcRequest {
  readonly message: Uint8Array;
  /** Address of the caller's end of the connection: canonical, or with its zone if it is link-local. */
  readonly peer: string;
  readonly headers: IncomingHttpHeaders;
}

/** The end of a call. */
export interface GrpcOutcome {
  readonly path: string;
  readonly peer: string;
  readonly status: GrpcStatus;
  /** Why the call was refused; empty: it was not. */
  readonly detail: string;
}

/**
 * Returns the response's message, or a promise of it. Throws or rejects with GrpcError, or with
 * ProtobufError for a malformed request.
 */
export type GrpcHandler = (request: GrpcRequest) => Uint8Array | Promise<Uint8Array>;

/** Decides what happens with a call; it may throw GrpcError. */
type GrpcStreamHandler = (stream: GrpcStream) => void;

interface GrpcLimits {
  /** Connections include those that have not finished their TLS handshake. */
  readonly connections: number;
  /** A quarter of all at most: a low limit of open files lowers `connections`. */
  readonly connectionsPerPeer: number;
  readonly callsPerConnection: number;
  /** Calls that one caller begins. */
  readonly callsPerPeer: RateLimit;
  /** Length of one message of a stream. */
  readonly streamRequestBytes: number;
}

interface GrpcServerOptions {
  readonly listen: Endpoint;
  /** Listening socket at this address, to take over; absent: a new one is opened. */
  readonly socket?: Server | undefined;
  /** Handlers by path, for example "/package.Service/Method". */
  readonly methods: Readonly<Record<string, GrpcHandler>>;
  /** Handlers of calls with streams, by path. */
  readonly streams?: Readonly<Record<string, GrpcStreamHandler>>;
  readonly limits?: Partial<GrpcLimits>;
  /** Interval of HTTP/2 pings; a connection without a response to one ends. Default: none. */
  readonly keepAliveMs?: number;
  readonly tls?: TlsMaterial | undefined;
  readonly clock: Clock;
  /** Called with the end of each call that was answered; default: none. */
  readonly onOutcome?: (outcome: GrpcOutcome) => void;
  /** Called with an exception of a handler, and with an error of the listening socket. */
  readonly report: (error: unknown) => void;
}

type Caller = Pick<GrpcOutcome, "path" | "peer">;

const requestBytesMax = 16 * 1024;
const defaultLimits: GrpcLimits = {
  connections: 1024,
  connectionsPerPeer: 16,
  callsPerConnection: 16,
  callsPerPeer: { perSecond: 500, burst: 5000 },
  streamRequestBytes: requestBytesMax,
};
const handshakeMs = 10_000;
/** A call without a stream ends after this time: its request is complete, and the caller has read the response. */
const callMs = 10_000;
/** At the end of the server, clients have this time to read the ends of their streams. */
const readEndsMs = 1000;
/** A connection whose caller goes on after so many refusals in a row ends: each of them costs time, too. */
const refusedCallsMax = 100;
/** Callers whose rates are known. */
const ratedCallersMax = 10_000;
/** A connection without a call ends after this time. */
const idleMs = 600_000;

/** No caller gets so many connections that it could keep all others out. */
function limitsOf(limits: GrpcLimits): GrpcLimits {
  const share = Math.ceil(limits.connections / 4);
  return { ...limits, connectionsPerPeer: Math.min(limits.connectionsPerPeer, share) };
}

export class GrpcServer {
  readonly #server: Http2Server | Http2SecureServer;
  readonly #options: GrpcServerOptions;
  readonly #limits: GrpcLimits;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #sockets = new Set<Socket>();
  readonly #calls = new WeakMap<Http2Session, Set<GrpcStream>>();
  /** Connections by caller. */
  readonly #perCaller = new Map<string, number>();
  /** Calls that callers begin: one could open and cancel calls without end, on many connections. */
  readonly #openings: KeyedBudgets;
  /** Calls that were refused in a row because of the rate of their caller. */
  readonly #refusedInRow = new WeakMap<Http2Session, number>();
  #refusedConnections = 0;
  #refusedCalls = 0;
  #ending: Timer | undefined;
  #address = "";

  private constructor(options: GrpcServerOptions) {
    this.#options = options;
    this.#limits = limitsOf({ ...defaultLimits, ...options.limits });
    const { tls, clock } = options;
    this.#openings = new KeyedBudgets(this.#limits.callsPerPeer, clock, ratedCallersMax);
    const settings = { settings: { maxConcurrentStreams: this.#limits.callsPerConnection } };
    this.#server = tls
      ? createSecureServer({
          ...settings,
          cert: tls.certificatePem,
          key: tls.keyPem,
          handshakeTimeout: handshakeMs,
        })
      : createServer(settings);
    this.#server.maxConnections = this.#limits.connections;
    this.#server.on("connection", (socket: Socket) => this.#admit(socket));
    this.#server.on("drop", () => this.#refusedConnections++);
    this.#server.on("session", (session) => this.#watch(session));
    this.#server.on("sessionError", () => {}); // the session closes
  }

  /** Throws ShredwayError "http_open" if it cannot listen. */
  static async open(options: GrpcServerOptions): Promise<GrpcServer> {
    const server = new GrpcServer(options);
    await server.#listen();
    return server;
  }

  /** Its address with the real port. */
  get address(): string {
    return this.#address;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Connections that were closed because of a limit. */
  get refusedConnections(): number {
    return this.#refusedConnections;
  }

  /** Calls that were refused because of the rate of their caller. */
  get refusedCalls(): number {
    return this.#refusedCalls;
  }

  /** New connections use this certificate. Throws Node's error if it cannot be used. */
  setCertificate({ certificatePem: cert, keyPem: key }: TlsMaterial): void {
    if ("setSecureContext" in this.#server) this.#server.setSecureContext({ cert, key });
  }

  /** Ends every connection. Clients with streams have a second to read how these ended. Idempotent. */
  close(): void {
    this.#server.close();
    const reading = new Set<string>();
    for (const session of this.#sessions) {
      if (session.destroyed) continue;
      if (this.#calls.get(session)?.size) {
        reading.add(remoteEndOf(session.socket));
        session.close();
      } else session.destroy();
    }
    // Some sockets have no session yet.
    for (const socket of this.#sockets) if (!reading.has(remoteEndOf(socket))) socket.destroy();
    if (reading.size === 0) return;
    this.#ending ??= this.#options.clock.after(readEndsMs, () => {
      for (const session of this.#sessions) session.destroy();
    });
  }

  #listen(): Promise<void> {
    const { socket, listen } = this.#options;
    const { bytes, port } = listen;
    return new Promise((resolve, reject) => {
      // Accepting a connection may fail later, too. Without a listener, such an error ends the process.
      this.#server.on("error", (error: NodeJS.ErrnoException) => {
        if (this.#address !== "") {
          this.#options.report(error);
          return;
        }
        const address = formatEndpoint(listen);
        const cause = getSystemErrorMap().get(error.errno ?? 0)?.[1] ?? messageOf(error);
        const text = `cannot listen on ${address}: ${cause}`;
        reject(new ShredwayError("http_open", text, { details: { address } }));
      });
      this.#server.listen(socket ?? { host: formatAddress(bytes), port }, () => {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
        const { port: real } = this.#server.address() as AddressInfo;
        this.#address = formatEndpoint({ bytes, port: real });
        resolve();
      });
    });
  }

  /** Bounds the connections of one caller, so that it cannot use all of them. */
  #admit(socket: Socket): void {
    const { remoteAddress = "" } = socket;
    const caller = remoteAddress === "" ? "" : callerOf(peerAddress(remoteAddress));
    const count = this.#perCaller.get(caller) ?? 0;
    if (count >= this.#limits.connectionsPerPeer) {
      this.#refusedConnections++;
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    this.#perCaller.set(caller, count + 1);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      const left = (this.#perCaller.get(caller) ?? 1) - 1;
      if (left > 0) this.#perCaller.set(caller, left);
      else this.#perCaller.delete(caller);
    });
  }

  #watch(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.on("error", () => {});
    const { clock, keepAliveMs } = this.#options;
    let open = 0;
    // A graceful end would wait for the caller. No call is under way then.
    const closeLater = () => clock.after(idleMs, () => session.destroy());
    let idle = closeLater();
    session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      this.#serve(session, stream, headers);
      idle.cancel();
      open++;
      stream.once("close", () => {
        if (--open === 0 && !session.closed) idle = closeLater();
      });
    });
    const keepAlive = keepAliveMs === undefined ? undefined : this.#keepAlive(session, keepAliveMs);
    session.on("close", () => {
      idle.cancel();
      keepAlive?.cancel();
      this.#sessions.delete(session);
      if (this.#sessions.size === 0) this.#ending?.cancel();
    });
  }

  /** Ends a connection whose client does not respond to a ping before the next one. */
  #keepAlive(session: ServerHttp2Session, intervalMs: number): Timer {
    let isWaiting = false;
    return this.#options.clock.every(intervalMs, () => {
      // A destroyed session reports its end later, and throws if it should send a ping.
      if (isWaiting || session.destroyed) {
        const detail = `silent: no answer to a ping within ${intervalMs / 1000} s`;
        for (const call of this.#calls.get(session) ?? []) call.endSilent(detail);
        session.destroy();
        return;
      }
      isWaiting = true;
      session.ping((error) => {
        isWaiting = error !== null;
      });
    });
  }

  #serve(session: Http2Session, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on("error", () => {}); // the caller is gone
    if (session.destroyed) return;
    const { remoteAddress } = session.socket;
    // Also a call that was cancelled before it is served; such a stream has no session any more.
    const isWithinRate = this.#countOpening(session, remoteAddress);
    if (stream.closed || session.destroyed) return;
    const peer = peerOf({ remoteAddress });
    const path = methodOf(headers[":path"] ?? "");
    if (!isWithinRate) {
      this.#refuse(stream, this.#rateRefusal(), { path, peer });
      return;
    }
    const { methods, streams = {} } = this.#options;
    const isCall =
      headers[":method"] === "POST" && headers["content-type"]?.startsWith("application/grpc");
    const streamHandler = isCall && Object.hasOwn(streams, path) ? streams[path] : undefined;
    if (streamHandler) {
      this.#serveStream(stream, { headers, peer, handler: streamHandler });
      return;
    }
    // Until the end of the call: a caller may also neither read the response nor reset the stream.
    const timer = this.#options.clock.after(callMs, () => stream.close(constants.NGHTTP2_CANCEL));
    stream.on("close", () => timer.cancel());
    if (!isCall) {
      stream.respond({ ":status": 415 }, { endStream: true });
      return;
    }
    const handler = Object.hasOwn(methods, path) ? methods[path] : undefined;
    if (!handler) {
      this.#refuse(stream, new GrpcError("UNIMPLEMENTED", "unknown method"), { path, peer });
      return;
    }
    const chunks: Buffer[] = [];
    let length = 0;
    stream.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= requestBytesMax + frameHeaderBytes) chunks.push(chunk);
    });
    stream.on("end", () => {
      this.#answer(stream, { path, peer }, () => {
        if (length > requestBytesMax + frameHeaderBytes) {
          const detail = `expected at most ${requestBytesMax} bytes, got ${length}`;
          throw new GrpcError("RESOURCE_EXHAUSTED", detail);
        }
        const decompress = decompressFor(headers);
        const message = unframeMessage(Buffer.concat(chunks), (body) =>
          decompress(body, requestBytesMax),
        );
        return handler({ message, peer, headers });
      });
    });
  }

  /** False: the call exceeds the rate of its caller. Ends the connection of a caller that goes on. */
  #countOpening(session: Http2Session, remoteAddress: string | undefined): boolean {
    const caller = remoteAddress === undefined ? "" : callerOf(peerAddress(remoteAddress));
    const budget = this.#openings.open(caller);
    if (budget) {
      budget.spend(1);
      this.#refusedInRow.delete(session);
      return true;
    }
    this.#refusedCalls++;
    const refused = (this.#refusedInRow.get(session) ?? 0) + 1;
    this.#refusedInRow.set(session, refused);
    if (refused > refusedCallsMax) {
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      session.destroy();
    }
    return false;
  }

  #rateRefusal(): GrpcError {
    const { perSecond, burst } = this.#limits.callsPerPeer;
    const detail =
      `rate limit exceeded: expected at most ${perSecond} new calls a second of one address ` +
      `(burst: ${burst}); retry in 1 s`;
    return new GrpcError("RESOURCE_EXHAUSTED", detail);
  }

  #serveStream(
    stream: ServerHttp2Stream,
    {
      headers,
      peer,
      handler,
    }: Pick<GrpcRequest, "headers" | "peer"> & { handler: GrpcStreamHandler },
  ): void {
    const { onOutcome, clock } = this.#options;
    const call = new GrpcStream({
      stream,
      path: methodOf(headers[":path"] ?? ""),
      peer,
      headers,
      requestBytesMax: this.#limits.streamRequestBytes,
      clock,
      onOutcome: (status, detail) =>
        onOutcome?.({ path: call.path, peer: call.peer, status, detail }),
      refusalOf: (error) => this.#refusalOf(error),
    });
    this.#addCall(call, stream);
    try {
      handler(call);
    } catch (error) {
      const { status, detail } = this.#refusalOf(error);
      call.end(status, detail);
    }
  }

  /** Adds a call to the open ones of its connection until it closes. */
  #addCall(call: GrpcStream, stream: ServerHttp2Stream): void {
    const { session } = stream;
    if (!session) return;
    const calls = this.#calls.get(session) ?? new Set();
    this.#calls.set(session, calls.add(call));
    stream.on("close", () => calls.delete(call));
  }

  #answer(
    stream: ServerHttp2Stream,
    caller: Caller,
    act: () => Uint8Array | Promise<Uint8Array>,
  ): void {
    // A reset without an error ends the request too, and nothing may be sent after it.
    if (stream.destroyed || stream.closed) return;
    try {
      const response = act();
      if (response instanceof Uint8Array) this.#respond(stream, response, caller);
      else {
        response.then(
          (message) => this.#respond(stream, message, caller),
          (error: unknown) => this.#refuse(stream, this.#refusalOf(error), caller),
        );
      }
    } catch (error) {
      this.#refuse(stream, this.#refusalOf(error), caller);
    }
  }

  #respond(stream: ServerHttp2Stream, response: Uint8Array, caller: Caller): void {
    if (stream.destroyed || stream.closed) return;
    this.#options.onOutcome?.({ ...caller, status: "OK", detail: "" });
    stream.respond(responseHeaders, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(frameMessage(response));
  }

  #refuse(stream: ServerHttp2Stream, error: GrpcError, caller: Caller): void {
    const { status, detail } = error;
    if (stream.destroyed || stream.closed) return;
    this.#options.onOutcome?.({ ...caller, status, detail });
    refuse(stream, error);
  }

  #refusalOf(error: unknown): GrpcError {
    if (error instanceof GrpcError) return error;
    if (error instanceof ProtobufError) {
      return new GrpcError("INVALID_ARGUMENT", `malformed request: ${error.message}`);
    }
    this.#options.report(error);
    return new GrpcError("INTERNAL", "internal error");
  }
}

/** "/package.Service/Method" of a path that a client's URL may have extended at both ends. */
function methodOf(path: string): string {
  const [name = ""] = path.split("?", 1);
  return /\/[^/]+\/[^/]+$/.exec(name)?.[0] ?? name;
}

/** Connections of one server differ in it. */
function remoteEndOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">) {
  return `${remoteAddress} ${remotePort}`;
}

function peerOf({ remoteAddress }: Pick<Socket, "remoteAddress">): string {
  return remoteAddress === undefined ? "" : formatAddress(peerAddress(remoteAddress));
}

function refuse(stream: ServerHttp2Stream, { status, detail }: GrpcError): void {
  stream.respond(
    {
      ...responseHeaders,
      "grpc-status": String(numberOfStatus(status)),
      "grpc-message": encodeGrpcMessage(detail),
    },
    { endStream: true },
  );
}
