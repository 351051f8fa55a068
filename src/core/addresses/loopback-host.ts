// Whether a host in a URL or an address is this machine. Pure.

import { isIPv4 } from "node:net";

/** `host`: a name, or an address with or without brackets. Resolves nothing. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return name === "localhost" || name === "::1" || (isIPv4(name) && name.startsWith("127."));
}
