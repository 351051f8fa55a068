// Rules of the QUIC ingress: it has addresses, and the service can open all of them beside those of the relay.
//
// Called by rules.ts.

import { type Endpoint, parseEndpoint } from "../addresses/addresses.ts";
import { excludeEachOther } from "../addresses/bound-endpoints.ts";
import type { Config } from "./schema.ts";

type Path = readonly (string | number)[];
type Report = (path: Path, message: string) => void;

const keys = ["listen", "protectedListen", "swqosOnlyListen"] as const;

interface UdpListener {
  readonly section: "relay" | "quic";
  readonly key: string;
  readonly index: number;
  readonly text: string;
  readonly endpoint: Endpoint;
}

function listenersAt(
  section: UdpListener["section"],
  key: string,
  addresses: readonly string[],
): UdpListener[] {
  return addresses.map((text, index) => {
    return { section, key, index, text, endpoint: parseEndpoint(text, { allowPortZero: true }) };
  });
}

/** The QUIC addresses differ from each other and from those of the relay, which rules.ts compares. */
export function checkQuic({ http, quic, relay }: Config, report: Report): void {
  if (!quic) return;
  if (!http) report(["quic"], "requires http, because the keys and limits of both are the same");
  const own = keys.flatMap((key) => listenersAt("quic", key, quic[key]));
  if (own.length === 0) report(["quic"], `no address; expected at least one in ${listed(keys)}`);
  const all = [...listenersAt("relay", "listen", relay.listen), ...own];
  for (const [place, { section, key, index, text, endpoint }] of all.entries()) {
    const binding = { takesBothFamilies: false };
    const first = all
      .slice(0, place)
      .find((other) => excludeEachOther(other.endpoint, endpoint, binding));
    if (section !== "quic" || !first) continue;
    const also = `also ${first.section}.${first.key}[${first.index}]`;
    const wider = text === first.text ? "" : ` ${first.text}`;
    report(
      ["quic", key, index],
      `duplicate address ${text} (${also}${wider}); expected different addresses`,
    );
  }
}

function listed([first, second, third]: typeof keys): string {
  return `${first}, ${second} or ${third}`;
}
