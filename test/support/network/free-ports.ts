// Ports for those who cannot leave the choice to the kernel: two in a row, or one that is given up
// and taken again.
//
// From below the range from which the kernel gives ports to everybody who asks for any: in there, a
// connection of a neighbour could take the port between the look and its use, or a client that is
// refused connect to itself. Apart for each process, so that test files do not meet.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

const lowest = 10_000;
const below = 32_768; // net.ipv4.ip_local_port_range
const ofOneProcess = 20;

let next = lowest + (process.pid % Math.floor((below - lowest) / ofOneProcess)) * ofOneProcess;

async function isTcpFree(port: number): Promise<boolean> {
  const server = createServer();
  const opened = once(server, "listening").then(
    () => true,
    () => false,
  );
  server.listen({ port, host: "127.0.0.1", exclusive: true });
  if (!(await opened)) return false;
  server.close();
  await once(server, "close");
  return true;
}

async function isUdpFree(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  const opened = once(socket, "listening").then(
    () => true,
    () => false,
  );
  socket.bind({ port, address: "127.0.0.1", exclusive: true });
  const isFree = await opened;
  const closed = once(socket, "close");
  socket.close();
  await closed;
  return isFree;
}

async function freePorts(
  count: number,
  isFree: (port: number) => Promise<boolean>,
): Promise<number> {
  let first = next;
  while (next - first < count) {
    if (next >= below) first = next = lowest;
    if (await isFree(next++)) continue;
    first = next;
  }
  return first;
}

/** A TCP port of loopback that is free. */
export function freePort(): Promise<number> {
  return freePorts(1, isTcpFree);
}

/** A TCP port of loopback that is free, and the one above it. */
export function freePortPair(): Promise<number> {
  return freePorts(2, isTcpFree);
}

/** A UDP port of loopback that is free. */
export function freeUdpPort(): Promise<number> {
  return freePorts(1, isUdpFree);
}
