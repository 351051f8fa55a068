// Endpoints that sockets are bound to: whether the system refuses the second of two.

import { type Endpoint, familyOf, formatAddress, formatEndpoint } from "./addresses.ts";

export interface Binding {
  /** Whether a socket at "::" also takes IPv4, as Node.js opens TCP listeners. UDP sockets here do not. */
  readonly takesBothFamilies: boolean;
}

/** Whether a socket at `wide` also gets what is sent to `other`. */
function includes(wide: Endpoint, other: Endpoint, { takesBothFamilies }: Binding): boolean {
  const text = formatAddress(wide.bytes);
  const family = familyOf(other.bytes);
  if (text === "::") return takesBothFamilies || family === "ipv6";
  return text === "0.0.0.0" && family === "ipv4";
}

/** Whether sockets at both exclude each other. At port 0 the system chooses the port. */
export function excludeEachOther(one: Endpoint, other: Endpoint, binding: Binding): boolean {
  if (one.port === 0 || one.port !== other.port) return false;
  return (
    formatEndpoint(one) === formatEndpoint(other) ||
    includes(one, other, binding) ||
    includes(other, one, binding)
  );
}
