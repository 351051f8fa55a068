// TCP listeners of a configuration, each with its key. Pure.
//
// Called by the rules of the configuration, the errors of the startup and the doctor, so that all name the
// same keys. It contains the listeners at derived addresses too.

import { formatEndpoint, parseEndpoint } from "../addresses/addresses.ts";
import { addressAbove } from "./derived.ts";
import type { Config } from "./schema.ts";

export interface TcpListener {
  /** With port 0 the kernel chooses the port. */
  readonly address: string;
  /** The key that contains the address, or that replaces a derived one. */
  readonly key: string;
  /** Place of the address in the list of the key; absent: it is derived, or the key has no list. */
  readonly index?: number;
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

/** Everything about a listener, except its address. */
type Purpose = Omit<TcpListener, "address" | "index">;

function listenerAt(text: string, purpose: Purpose): TcpListener {
  return { address: formatEndpoint(parseEndpoint(text, { allowPortZero: true })), ...purpose };
}

function listenersAt(addresses: readonly string[], purpose: Purpose): TcpListener[] {
  return addresses.map((text, index) => ({ ...listenerAt(text, purpose), index }));
}

function derivedListeners(listen: readonly string[], purpose: Purpose): TcpListener[] {
  return addressAbove(listen).map((text) => listenerAt(text, purpose));
}

/** Both, without further listeners at the same addresses: the gateway opens each once. */
function withFurther(
  listeners: readonly TcpListener[],
  further: readonly TcpListener[],
): TcpListener[] {
  const known = new Set(listeners.map(({ address }) => address));
  return [...listeners, ...further.filter(({ address }) => !known.has(address))];
}

function plainListenersOf({ listen, webSocketListen, serves }: HttpConfig): TcpListener[] {
  const plain = { takesApiKeys: takesApiKeys(serves), hasTls: false };
  const webSocket = { key: "http.webSocketListen", ...plain };
  const derivation = "default: the port after http.listen";
  return withFurther(
    listenersAt(listen, { key: "http.listen", ...plain }),
    webSocketListen
      ? listenersAt(webSocketListen, webSocket)
      : derivedListeners(listen, { ...webSocket, derivation }),
  );
}

function tlsListenersOf({ tls, serves }: HttpConfig): TcpListener[] {
  const listen = tls?.listen ?? [];
  const listener = { key: "http.tls.listen", takesApiKeys: takesApiKeys(serves), hasTls: true };
  const derivation = "the port after its first address";
  return withFurther(
    listenersAt(listen, listener),
    derivedListeners(listen, { ...listener, derivation }),
  );
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
    ...(streams
      ? [
          listenerAt(streams.listen, {
            key: "streams.listen",
            takesApiKeys: true,
            hasTls: streams.tls !== undefined,
          }),
        ]
      : []),
    ...(shredstream
      ? [
          listenerAt(shredstream.listen, {
            key: "shredstream.listen",
            takesApiKeys: false,
            hasTls: shredstream.tls !== undefined,
          }),
        ]
      : []),
  ];
}

/** The key, and in parentheses how the address follows from another one. */
export function describeListenerKey({ key, derivation }: TcpListener): string {
  return derivation === undefined ? key : `${key} (${derivation})`;
}
