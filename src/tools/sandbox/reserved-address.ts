// A listening TCP socket at an address that the user did not choose.
//
// Used by sandbox.ts. Several sandboxes on one machine then need no option for this address: the first one has
// the usual one. The service takes the socket over, so no other program can take the address before it.

import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { formatAddress, formatEndpoint, parseEndpoint } from "../../core/addresses/addresses.ts";
import { codeOf, messageOf, ShredwayError } from "../../core/errors.ts";

interface ReservedAddress {
  /** "ip:port". */
  readonly address: string;
  /** Refuses connections until another server listens on it. */
  readonly socket: Server;
}

/**
 * Reserves the address, or another port of its IP address if it is in use. Throws ShredwayError "http_open" if
 * the machine does not have the IP address.
 */
export async function reserveAddress(preferred: string): Promise<ReservedAddress> {
  const { bytes, port } = parseEndpoint(preferred, { allowPortZero: true });
  const host = formatAddress(bytes);
  const atPort = await listening(host, port).catch(() => undefined);
  const socket = atPort ?? (await listening(host, 0).catch((error) => refuse(host, error)));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const { port: real } = socket.address() as AddressInfo;
  return { address: formatEndpoint({ bytes, port: real }), socket };
}

function refuse(host: string, error: unknown): never {
  if (codeOf(error) !== "EADDRNOTAVAIL") throw error;
  throw new ShredwayError(
    "http_open",
    `cannot listen on ${host}: ${messageOf(error)}; expected the loopback interface: run "ip link set lo up"`,
    { cause: error },
  );
}

async function listening(host: string, port: number): Promise<Server> {
  const server = createServer((socket: Socket) => socket.destroy());
  server.listen({ host, port });
  await once(server, "listening"); // rejects with the error
  return server;
}
