// Rules of the QUIC ingress: it has addresses, and the service can open all of them beside those of the relay.
//
// Called by rules.ts; its addresses also by rules-udp-listeners.ts.

import { parseEndpoint } from "../addresses/addresses.ts";
import { type BoundListener, checkExclusion } from "./bound-listeners.ts";
import type { Config } from "./schema.ts";

type Report = (path: readonly (string | number)[], message: string) => void;

const keys = ["listen", "protectedListen", "swqosOnlyListen"] as const;

export function listenersAt(
  section: string,
  key: string,
  addresses: readonly string[],
): BoundListener[] {
  return addresses.map((address, index) => ({
    path: [section, key, index],
    place: `${section}.${key}[${index}]`,
    address,
    endpoint: parseEndpoint(address, { allowPortZero: true }),
  }));
}

export function quicListenersOf(quic: NonNullable<Config["quic"]>): BoundListener[] {
  return keys.flatMap((key) => listenersAt("quic", key, quic[key]));
}

/** The QUIC addresses differ from each other and from those of the relay, which rules.ts compares. */
export function checkQuic({ http, quic, relay }: Config, report: Report): void {
  if (!quic) return;
  if (!http) report(["quic"], "requires http, because the keys and limits of both are the same");
  const own = quicListenersOf(quic);
  if (own.length === 0) {
    report(
      ["quic"],
      "no address; expected at least one in listen, protectedListen or swqosOnlyListen",
    );
  }
  const earlier = listenersAt("relay", "listen", relay.listen);
  checkExclusion({ earlier, own }, { takesBothFamilies: false }, report);
}
