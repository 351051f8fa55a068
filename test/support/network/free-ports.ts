// Free ports, for cases in which the kernel cannot choose: two consecutive ports, or one that is
// closed and opened again.
//
// The ports are below the kernel's ephemeral range. Inside that range, another connection could use
// the port between the check and its use, or a refused client could connect to itself. Each process
// has its own range, so that test files do not collide.

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

/** A free TCP port of loopback. */
export function freePort(): Promise<number> {
  return freePorts(1, isTcpFree);
}

/** A free TCP port of loopback, where the next port is free as well. */
export function freePortPair(): Promise<number> {
  return freePorts(2, isTcpFree);
}

/** A free UDP port of loopback. */
export function freeUdpPort(): Promise<number> {
  return freePorts(1, isUdpFree);
}
