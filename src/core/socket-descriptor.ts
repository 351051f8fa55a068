// The file descriptor of a TCP socket or server of Node.js, which have no public property for it.

import { isObject } from "./values.ts";

/** `socket`: a Socket or Server of node:net. Undefined: it is closed, or this version of Node.js does not tell. */
export function descriptorOf(socket: object): number | undefined {
  const handle: unknown = Reflect.get(socket, "_handle");
  const descriptor = isObject(handle) ? handle["fd"] : undefined;
  return typeof descriptor === "number" && descriptor >= 0 ? descriptor : undefined;
}
