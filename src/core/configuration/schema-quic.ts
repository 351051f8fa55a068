// Configuration of the QUIC ingress: its keys, with their ranges, units, defaults and meanings.
//
// A part of schema.ts.

import { z } from "zod";
import { integer, key, parsed, parseEndpointOrPortZero, tlsFiles } from "./schema-keys.ts";

const listenersMax = 16;
const listExpects = (example: string) =>
  `an address and port such as ${example}, or a list of at most ${listenersMax}`;

function listeners(defaults: string[]) {
  return z
    .preprocess(
      (value) => (Array.isArray(value) ? value : [value]),
      z.array(parsed(parseEndpointOrPortZero)).max(listenersMax),
    )
    .default(defaults);
}

const tls = z.strictObject(
  tlsFiles("A change is picked up within two seconds, for new connections."),
);

export const quic = z.strictObject({
  listen: key(listeners(["0.0.0.0:7000", "[::]:7000"]), {
    expects: listExpects("0.0.0.0:7000 or [::]:7000"),
    meaning:
      "UDP addresses for transactions without protection, unless the client's certificate asks for it. " +
      "`[::]` is skipped on a machine without IPv6. On a machine with several addresses, list " +
      "those that clients use.",
  }),
  protectedListen: key(listeners(["0.0.0.0:9000", "[::]:9000"]), {
    expects: listExpects("0.0.0.0:9000 or [::]:9000"),
    meaning:
      "UDP addresses where every transaction has the option `mevProtect`. `[]`: no such address.",
  }),
  swqosOnlyListen: key(listeners([]), {
    expects: listExpects("0.0.0.0:7001 or [::]:7001"),
    meaning:
      "UDP addresses where every transaction has the option `swqosOnly`. `[]`: no such address.",
  }),
  tls: key(tls.exactOptional(), {
    expects: "a mapping with the keys certificate and key",
    meaning: "Certificate of the server.",
    absent:
      "a self-signed certificate, created at the first start as `quic-certificate.pem` in `data.directory`",
  }),
  connectionsMax: key(integer(1, 20_000).default(2000), {
    expects: "an integer 1 to 20000",
    unit: "connections",
    meaning: "Maximum number of open connections of all clients. Further ones are closed.",
  }),
  connectionsPerKeyMax: key(integer(1, 1000).default(10), {
    expects: "an integer 1 to 1000",
    unit: "connections",
    meaning: "Maximum number of open connections of an API key. Further ones are closed.",
  }),
  streamsMax: key(integer(1, 1024).default(64), {
    expects: "an integer 1 to 1024",
    unit: "streams",
    meaning:
      "Maximum number of concurrent streams of each kind on a connection. Further ones wait in the client.",
  }),
  streamTimeoutMs: key(integer(10, 60_000).default(750), {
    expects: "an integer 10 to 60000",
    unit: "ms",
    meaning: "Time from the first byte of a stream to its last one. Later streams are dropped.",
  }),
  idleSeconds: key(integer(5, 600).default(30), {
    expects: "an integer 5 to 600",
    unit: "seconds",
    meaning:
      "A connection without packets for this long is closed. Clients send keep-alive packets at 25 s or sooner.",
  }),
  handshakesPerMinute: key(integer(1, 1_000_000).default(60), {
    expects: "an integer 1 to 1000000",
    unit: "connections",
    meaning:
      "Maximum number of new connections of an address (IPv6: of a /64) in a minute. Further ones must prove their address, and then get no answer.",
  }),
});
