// The file descriptor of a TCP socket or server of Node.js, which have no public property for it.

import type { Server, Socket } from "node:net";
import { isObject } from "./values.ts";

/** Undefined: the socket is closed, or this version of Node.js does not tell. */
export function descriptorOf(socket: Socket | Server): number | undefined {
  const handle: unknown = Reflect.get(socket, "_handle");
  const descriptor = isObject(handle) ? handle["fd"] : undefined;
  return typeof descriptor === "number" && descriptor >= 0 ? descriptor : undefined;
}
