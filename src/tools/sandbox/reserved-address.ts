// A listening TCP socket at an address that the user did not choose.
//
// Used by sandbox.ts. Several sandboxes on one machine then need no option for this address: the first one has
// the usual one. The service takes the socket over, so no other program can take the address before it.

import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { formatAddress, formatEndpoint, parseEndpoint } from "../../core/addresses/addresses.ts";

interface ReservedAddress {
  /** "ip:port". */
  readonly address: string;
  /** Refuses connections until another server listens on it. */
  readonly socket: Server;
}

/** Reserves the address, or another port of its IP address if it is in use. */
export async function reserveAddress(preferred: string): Promise<ReservedAddress> {
  const { bytes, port } = parseEndpoint(preferred, { allowPortZero: true });
  const host = formatAddress(bytes);
  const socket = (await listening(host, port).catch(() => undefined)) ?? (await listening(host, 0));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const { port: real } = socket.address() as AddressInfo;
  return { address: formatEndpoint({ bytes, port: real }), socket };
}

async function listening(host: string, port: number): Promise<Server> {
  const server = createServer((socket: Socket) => socket.destroy());
  server.listen({ host, port });
  await once(server, "listening"); // rejects with the error
  return server;
}
