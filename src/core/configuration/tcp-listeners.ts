// TCP listeners of a configuration, each with its key. Pure.
//
// Called by the errors of the startup and by the doctor, so that both name the same keys. It contains the
// listeners at derived addresses too.

import { formatEndpoint, parseEndpoint } from "../addresses/addresses.ts";
import type { Config } from "./configuration.ts";
import { addressAbove } from "./derived.ts";

export interface TcpListener {
  /** With port 0 the kernel chooses the port. */
  readonly address: string;
  /** The key that contains the address, or that replaces a derived one. */
  readonly key: string;
  /** How the address follows from another one; absent: it is the value of the key. */
  readonly derivation?: string;
  /** Callers authenticate with API keys, or sign in to the portal. */
  readonly takesApiKeys: boolean;
  readonly hasTls: boolean;
}

type HttpConfig = NonNullable<Config["http"]>;

/** Endpoint groups with callers that authenticate; the other groups are public. */
const groupsWithKeys: readonly string[] = ["gateway", "portal"];

function takesApiKeys(served: readonly string[]): boolean {
  return served.some((group) => groupsWithKeys.includes(group));
}

function listenersAt(
  addresses: readonly string[],
  listener: Omit<TcpListener, "address">,
): TcpListener[] {
  return addresses.map((text) => ({
    address: formatEndpoint(parseEndpoint(text, { allowPortZero: true })),
    ...listener,
  }));
}

/** Each address once, because the gateway opens it once. */
function distinct(listeners: readonly TcpListener[]): TcpListener[] {
  const isFirst = ({ address }: TcpListener, index: number) =>
    listeners.findIndex((other) => other.address === address) === index;
  return listeners.filter(isFirst);
}

function plainListenersOf({ listen, webSocketListen, serves }: HttpConfig): TcpListener[] {
  const plain = { takesApiKeys: takesApiKeys(serves), hasTls: false };
  const webSocket = { key: "http.webSocketListen", ...plain };
  const derivation = "default: the port after http.listen";
  return distinct([
    ...listenersAt(listen, { key: "http.listen", ...plain }),
    ...(webSocketListen
      ? listenersAt(webSocketListen, webSocket)
      : listenersAt(addressAbove(listen), { ...webSocket, derivation })),
  ]);
}

function tlsListenersOf({ tls, serves }: HttpConfig): TcpListener[] {
  const listen = tls?.listen ?? [];
  const listener = { key: "http.tls.listen", takesApiKeys: takesApiKeys(serves), hasTls: true };
  const derivation = "the port after its first address";
  return distinct([
    ...listenersAt(listen, listener),
    ...listenersAt(addressAbove(listen), { ...listener, derivation }),
  ]);
}

function splitListenersOf({ split }: HttpConfig): TcpListener[] {
  return split.flatMap(({ listen, serves }, index) =>
    listenersAt(listen, {
      key: `http.split[${index}].listen`,
      takesApiKeys: takesApiKeys(serves),
      hasTls: false,
    }),
  );
}

/** Every TCP listener of the service, in the order of the sections that open them. */
export function tcpListenersOf({ http, operations, streams, shredstream }: Config): TcpListener[] {
  const withoutKeys = { takesApiKeys: false, hasTls: false };
  return [
    ...(http
      ? [...plainListenersOf(http), ...tlsListenersOf(http), ...splitListenersOf(http)]
      : []),
    ...listenersAt(operations.listen ?? [], { key: "operations.listen", ...withoutKeys }),
    ...listenersAt(streams ? [streams.listen] : [], {
      key: "streams.listen",
      takesApiKeys: true,
      hasTls: streams?.tls !== undefined,
    }),
    ...listenersAt(shredstream ? [shredstream.listen] : [], {
      key: "shredstream.listen",
      takesApiKeys: false,
      hasTls: shredstream?.tls !== undefined,
    }),
  ];
}

/** The key, and in parentheses how the address follows from another one. */
export function describeListenerKey({ key, derivation }: TcpListener): string {
  return derivation === undefined ? key : `${key} (${derivation})`;
}
