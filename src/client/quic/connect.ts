// connectQuic: opens a client for submissions over QUIC.
//
// Needs Node.js and the optional package @matrixai/quic. Every attempt to connect resolves the name again
// and uses a new socket; failed attempts go through the addresses of the name.

import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { isIPv6 } from "node:net";
import { type Clock, systemClock } from "../../core/clock.ts";
import { credentialsOf, newEcdsaCredentials } from "../../core/quic/certificate.ts";
import { type Dialect, findDialect } from "../../core/quic/dialects.ts";
import {
  buildQuicheConfig,
  loadQuiche,
  packetBytesMax,
  type Quiche,
  type QuicheCredentials,
  quicheHint,
  quicheProblem,
} from "../../core/quic/quiche.ts";
import { ShredwayCallError } from "../error.ts";
import { ClientConnection, type ConnectionEvents, responseBytesMax } from "./client-connection.ts";
import type { QuicClientOptions } from "./options.ts";
import { QuicClient } from "./quic-client.ts";
import { type ServerCheck, serverCheckOf } from "./server-check.ts";

const timeoutMsDefault = 10_000;
const keepAliveMsDefault = 10_000;
/** The service closes a connection that is idle for 30 s. */
const keepAliveMsMax = 25_000;
const idleTimeoutMs = 60_000;
const keyBytesMax = 256;
const seedBytes = 32;
/** Responses of the streams that the service permits at once. */
const connectionBytesMax = 1 << 20;

interface Target {
  readonly host: string;
  readonly port: number;
}

function targetOf(address: string): Target {
  const [, bracketed, plain, digits] =
    /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(address) ?? [];
  const host = bracketed ?? plain ?? "";
  const port = Number(digits);
  if (host !== "" && port >= 1 && port <= 65_535) return { host, port };
  throw new TypeError(
    `address: expected "host:port" or "[IPv6 address]:port", got ${JSON.stringify(address.slice(0, 100))}`,
  );
}

function dialectOf({ dialect = "shredway-tpu" }: QuicClientOptions): Dialect {
  const found = findDialect(dialect);
  if (found) return found;
  throw new TypeError(`dialect: unknown name ${JSON.stringify(dialect)}; docs/quic.md lists them`);
}

/** The client's certificate, which identifies it. Throws TypeError. */
function credentialsFor(options: QuicClientOptions, { identity, protocol }: Dialect) {
  const { apiKey = "", keyPair, mevProtect = false } = options;
  if (identity === "commonName") {
    if (apiKey === "" || apiKey.length > keyBytesMax) {
      throw new TypeError(`apiKey: expected an API key, got ${apiKey.length} characters`);
    }
    return newEcdsaCredentials(apiKey, { isProtected: mevProtect });
  }
  if (mevProtect) throw new TypeError(`mevProtect: not available with the dialect "${protocol}"`);
  if (keyPair?.length !== seedBytes && keyPair?.length !== 2 * seedBytes) {
    throw new TypeError(`keyPair: expected 32 or 64 bytes, got ${keyPair?.length ?? "nothing"}`);
  }
  return credentialsOf(keyPair.subarray(0, seedBytes));
}

function milliseconds(name: string, value: number, max: number): number {
  if (value >= 1 && value <= max) return value;
  throw new TypeError(`${name}: expected 1 to ${max} milliseconds, got ${value}`);
}

function needQuiche(): Quiche {
  const quiche = loadQuiche();
  if (quiche) return quiche;
  const message = `quic_missing: requires the optional package @matrixai/quic: ${quicheProblem()}; ${quicheHint}`;
  throw new ShredwayCallError(message, { reason: "quic_missing" });
}

/** Connected, so that the kernel drops packets of others and reports a closed port. */
async function socketTo({ host, port }: Target): Promise<Socket> {
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  try {
    socket.connect(port, host);
    await once(socket, "connect");
    return socket;
  } catch (error) {
    socket.close();
    throw error;
  }
}

interface OpenOptions {
  readonly options: QuicClientOptions;
  readonly clock: Clock;
  readonly dialect: Dialect;
  readonly check: ServerCheck;
  readonly credentials: QuicheCredentials;
  readonly timeoutMs: number;
  readonly keepAliveMs: number;
}

/** Returns the function that opens one connection. */
function opener({ options, check, credentials, ...rest }: OpenOptions) {
  const quiche = needQuiche();
  const target = targetOf(options.address);
  const config = buildQuicheConfig(quiche, {
    credentials,
    authorities: check.authorities ?? undefined,
    applicationProtocol: rest.dialect.protocol,
    idleTimeoutMs,
    packetBytesMax,
    connectionBytesMax,
    streamBytesMax: 0,
    streamsMax: 0,
    responseBytesMax,
  });
  let attempts = 0;
  return async (events: ConnectionEvents): Promise<ClientConnection> => {
    const found = await lookup(target.host, { all: true });
    const { address: host } = found[attempts++ % found.length] ?? { address: target.host };
    const remote = { host, port: target.port };
    const socket = await socketTo(remote);
    try {
      return new ClientConnection({ ...rest, quiche, config, check, socket, remote, events });
    } catch (error) {
      socket.close();
      throw error;
    }
  };
}

/** `connectQuic` with another clock and randomness, for tests. */
export async function openQuicClient(
  options: QuicClientOptions,
  { clock, random }: { readonly clock: Clock; readonly random: () => number },
): Promise<QuicClient> {
  const dialect = dialectOf(options);
  const check = serverCheckOf(options.server, targetOf(options.address).host);
  const timeoutMs = milliseconds("timeoutMs", options.timeoutMs ?? timeoutMsDefault, 2 ** 31 - 1);
  const keepAlive = options.keepAliveMs ?? keepAliveMsDefault;
  const keepAliveMs = milliseconds("keepAliveMs", keepAlive, keepAliveMsMax);
  const credentials = credentialsFor(options, dialect);
  const open = opener({ options, clock, dialect, check, credentials, timeoutMs, keepAliveMs });
  const client = new QuicClient({ clock, random, dialect, options, timeoutMs, open });
  await client.start();
  return client;
}

/**
 * Connects and keeps the connection until `close`. Throws TypeError for an invalid option. Rejects with
 * ShredwayCallError if the first attempt fails; later ones are repeated. An invalid key does not reject: with
 * TLS 1.3, the handshake is complete before the service checks the key. `onClosed` and the next `send` then report
 * "unauthorized".
 */
export function connectQuic(options: QuicClientOptions): Promise<QuicClient> {
  return openQuicClient(options, { clock: systemClock, random: Math.random });
}
