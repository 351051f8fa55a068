// HTTP and WebSocket as the handlers see them: plain requests in, plain answers out.
//
// Only types; server.ts is the one file that knows the web server behind it.

export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Raw, without "?"; empty when there is none. */
  readonly query: string;
  /** Lower-case name; undefined when absent. */
  header(name: string): string | undefined;
  /** Of the TCP peer, IPv4 also when it came mapped. */
  readonly remoteAddress: string;
  /** Empty for GET, HEAD and OPTIONS. */
  readonly body: Uint8Array;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Everything of a request but its body: what body limits and refusals are decided on. */
export type HttpHead = Omit<HttpRequest, "body">;

export interface WebSocketPeer {
  readonly remoteAddress: string;
  /** False when the peer reads too slowly and was closed, or is closed already. */
  send(text: string): boolean;
  close(code: number, reason: string): void;
}

export interface WebSocketRoute {
  /** Answers instead of accepting when it returns a response. */
  accept?(head: HttpHead): HttpResponse | undefined;
  readonly messageBytesMax: number;
  /** A peer that has so much waiting is closed. */
  readonly backpressureBytesMax: number;
  readonly idleSeconds: number;
  open(peer: WebSocketPeer, head: HttpHead): void;
  message(peer: WebSocketPeer, text: string): void;
  closed(peer: WebSocketPeer): void;
}

export interface HttpServerOptions {
  /** "ip:port" each; port 0: the kernel chooses. */
  readonly listen: readonly string[];
  /** Largest body of this request in bytes; more is answered 413 before it is read. */
  bodyBytesMax(head: HttpHead): number;
  /** May throw or reject: answered 500 with a reference number that the log has, too. */
  handle(request: HttpRequest): HttpResponse | Promise<HttpResponse>;
  /** By path; "*" for every path that has no own entry. */
  readonly webSockets?: Readonly<Record<string, WebSocketRoute>>;
  /** Sockets at once, HTTP and WebSocket together; more are closed at once. */
  readonly connectionsMax?: number;
}
