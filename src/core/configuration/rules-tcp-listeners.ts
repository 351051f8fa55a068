// Rule of the TCP listeners: the service can open all of them.
//
// Called by rules.ts and file-problems.ts. Without it, the start would report that this process itself uses
// the port.

import { type Endpoint, parseEndpoint } from "../addresses/addresses.ts";
import { excludeEachOther } from "../addresses/bound-endpoints.ts";
import { checkExclusion } from "./bound-listeners.ts";
import { addressAbove } from "./derived.ts";
import type { Config } from "./schema.ts";
import { type TcpListener, tcpListenersOf } from "./tcp-listeners.ts";

type Path = readonly (string | number)[];
type Report = (path: Path, message: string) => void;

const binding = { takesBothFamilies: true };

function endpointOf({ address }: Pick<TcpListener, "address">): Endpoint {
  return parseEndpoint(address, { allowPortZero: true });
}

/** The key with the place in its list, as messages name it. */
function placeOf({ key, index }: TcpListener): string {
  return index === undefined ? key : `${key}[${index}]`;
}

function pathOf({ key, index }: TcpListener): Path {
  const names = key
    .split(/[.[\]]+/)
    .filter((name) => name !== "")
    .map((name) => (/^\d+$/.test(name) ? Number(name) : name));
  return index === undefined ? names : [...names, index];
}

/**
 * Leaves the derived port of WebSockets to a listener that the file puts there. Returns a warning if clients
 * need the port for WebSockets.
 */
export function deriveWebSocketListen(config: Config): string[] {
  const { http } = config;
  const [derived] = addressAbove(http?.listen ?? []).map((address) => endpointOf({ address }));
  if (!http || http.webSocketListen || !derived) return [];
  const written = tcpListenersOf({ ...config, http: { ...http, webSocketListen: [] } });
  const user = written.find((listener) => excludeEachOther(endpointOf(listener), derived, binding));
  if (!user) return [];
  http.webSocketListen = [];
  if (user.key === "http.listen") return [];
  return [
    `configuration: ${placeOf(user)} is ${user.address}, the port after http.listen, where @solana/web3.js opens ` +
      "its WebSocket; so these clients get no WebSocket: change this port, or set http.webSocketListen",
  ];
}

export function checkTcpListeners(config: Config, report: Report): void {
  const own = tcpListenersOf(config).map((listener) => ({
    path: pathOf(listener),
    place: placeOf(listener),
    address: listener.address,
    endpoint: endpointOf(listener),
  }));
  checkExclusion({ own }, binding, report);
}
