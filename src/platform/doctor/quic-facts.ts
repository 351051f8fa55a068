// Facts about the QUIC ingress of a configuration: buffers that its sockets get, and rules of the packet filter.
//
// Called by src/tools/commands/doctor.ts. Opens and closes one socket on a loopback address.

import { classifyAddress } from "../../core/addresses/address-classes.ts";
import { parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Config } from "../../core/configuration/configuration.ts";
import { ingressBufferBytes } from "../../gateway/quic/udp-buffers.ts";
import { openUdpSocket } from "../../relay/data-plane/udp-socket.ts";
import type { SystemReader } from "./reader.ts";

/** The certificate that clients may pin. */
export interface QuicCertificateFact {
  readonly path: string;
  /** SHA-256 in hex with colons; null: the file does not exist yet, or `error`. */
  readonly fingerprint: string | null;
  readonly error: string | null;
}

export interface QuicFacts {
  readonly wantedBytes: number;
  /** Limits of the kernel that suffice for these sockets and for the relay's. */
  readonly limits: { readonly receiveBytes: number; readonly sendBytes: number };
  /** null: no socket could be opened. */
  readonly granted: { readonly receiveBytes: number; readonly sendBytes: number } | null;
  /** UDP ports of listeners that other machines reach. */
  readonly ports: readonly number[];
  /** Rules of nftables; null: not readable by this user, or not installed. */
  readonly ruleset: string | null;
}

/** null: no section `quic`. */
export function readQuicFacts({ quic, relay }: Config, reader: SystemReader): QuicFacts | null {
  if (!quic) return null;
  const { listen, protectedListen, swqosOnlyListen } = quic;
  const endpoints = [...listen, ...protectedListen, ...swqosOnlyListen].map((text) =>
    parseEndpoint(text, { allowPortZero: true }),
  );
  const open = endpoints.filter(({ bytes }) => classifyAddress(bytes) !== "loopback");
  return {
    wantedBytes: ingressBufferBytes,
    limits: {
      receiveBytes: Math.max(ingressBufferBytes, relay.receive.bufferBytes),
      sendBytes: Math.max(ingressBufferBytes, relay.send.bufferBytes),
    },
    granted: grantedBytes(),
    ports: [...new Set(open.map(({ port }) => port))].filter((port) => port !== 0),
    ruleset: open.length === 0 ? null : reader.run("nft", "list", "ruleset"),
  };
}

/** The kernel returns twice the size. */
function grantedBytes(): QuicFacts["granted"] {
  try {
    const socket = openUdpSocket({
      host: "127.0.0.1",
      port: 0,
      recvBufferSize: ingressBufferBytes,
      sendBufferSize: ingressBufferBytes,
    });
    const receiveBytes = socket.getRecvBufferSize() / 2;
    const sendBytes = socket.getSendBufferSize() / 2;
    socket.close();
    return { receiveBytes, sendBytes };
  } catch {
    return null;
  }
}
