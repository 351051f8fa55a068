// UDP sockets of the control plane: opened by the addon, read and written by Node.js.
//
// node:dgram cannot set IP_MTU_DISCOVER, and without it a socket accepts forged ICMP messages about the
// path MTU. native/net/udp_socket.cc opens all sockets of the service with the same options, and Node.js
// takes over the descriptor here.

import { createSocket, type Socket, type SocketOptions } from "node:dgram";
import { closeSync } from "node:fs";
import { getSystemErrorName } from "node:util";
import { formatEndpoint, parseAddress } from "../../core/addresses/addresses.ts";
import { native, type OpenedDescriptor } from "./native.ts";
import { encodeEndpoint } from "./tables.ts";

interface UdpSocketOptions
  extends Pick<SocketOptions, "lookup" | "recvBufferSize" | "sendBufferSize"> {
  /** An address as a number, of either family; an IPv6 socket is IPv6-only. */
  readonly host: string;
  /** 0: the kernel chooses. */
  readonly port: number;
  /** False: it only sends, and the kernel drops what arrives. Default: true. */
  readonly receives?: boolean;
}

function descriptorOf(opened: OpenedDescriptor): number {
  if ("descriptor" in opened) return opened.descriptor;
  const { errorNumber, error } = opened;
  throw Object.assign(new Error(error), { code: getSystemErrorName(-errorNumber) });
}

/** The descriptor of a bound socket, which the caller owns. Throws like openUdpSocket. */
export function openUdpDescriptor(host: string, port: number, receives = true): number {
  const address = formatEndpoint({ bytes: parseAddress(host), port });
  const endpoint = encodeEndpoint(address, { allowPortZero: true });
  return descriptorOf(native().openBoundSocket(endpoint, receives));
}

/**
 * A second descriptor at the port of a bound one, with a buffer of its own. It receives the QUIC packets
 * with a long header, and the bound one receives all others. Throws like openUdpSocket.
 */
export function splitUdpPort(descriptor: number): number {
  return descriptorOf(native().splitPort(descriptor));
}

/** A socket for a bound descriptor, which it owns from now on. `host` gives the family. Throws an Error. */
export function adoptUdpSocket(
  descriptor: number,
  { host, ...options }: Omit<UdpSocketOptions, "port" | "receives">,
): Socket {
  const type = host.includes(":") ? "udp6" : "udp4";
  let socket: Socket | undefined;
  try {
    socket = createSocket({ ...options, type });
    socket.bind({ fd: descriptor, exclusive: true });
  } catch (error) {
    // Node.js rejected it, so this code still owns it.
    closeSync(descriptor);
    throw error;
  }
  if (native().refusePortSharing(descriptor)) return socket;
  socket.close();
  throw new Error(`cannot switch off SO_REUSEADDR for ${host}`);
}

/**
 * A bound socket that is already receiving. Throws an Error whose `code` is the name of the errno, such
 * as "EADDRINUSE", if the system rejects the socket or the address, and the errors of parseAddress.
 */
export function openUdpSocket({ host, port, receives, ...options }: UdpSocketOptions): Socket {
  return adoptUdpSocket(openUdpDescriptor(host, port, receives), { host, ...options });
}
