// Rules of sources of kind "shredstream": which keys they need, and their UDP port.
//
// Called by rules.ts.

import { familyOf, parseAddress, parseEndpoint } from "../addresses/addresses.ts";
import type { RelayConfig } from "./schema.ts";

type Source = RelayConfig["sources"][number];
type Report = (path: readonly (string | number)[], message: string) => void;

function listeningPorts(relay: Pick<RelayConfig, "listen">): number[] {
  const ports = relay.listen.map((text) => parseEndpoint(text, { allowPortZero: true }).port);
  return [...new Set(ports)];
}

function checkSource(
  { kind, address, shredstream }: Source,
  report: (path: readonly string[], message: string) => void,
): void {
  if (kind !== "shredstream") {
    if (shredstream)
      report(["shredstream"], `unexpected with kind: ${kind ?? "udp"}; expected kind: shredstream`);
    return;
  }
  if (!shredstream) {
    report(
      [],
      "missing shredstream; expected a mapping with url, keyFile and regions, because kind is shredstream",
    );
  }
  if (address !== undefined) {
    report(
      ["address"],
      `unexpected address ${address} with kind: shredstream; expected none, because a block engine sends ` +
        "from changing addresses and its shreds are recognised by the leader's signature",
    );
  }
}

/** Reports sources with wrong or missing keys. */
export function checkShredstream(relay: RelayConfig, report: Report): void {
  const ports = listeningPorts(relay);
  for (const [index, source] of relay.sources.entries()) {
    const inSource = (path: readonly string[], message: string) =>
      report(["sources", index, ...path], message);
    checkSource(source, inSource);
    if (source.kind !== "shredstream") continue;
    if (source.port === undefined && ports.length > 1) {
      inSource([], `missing port; expected one of relay.listen: ${ports.join(", ")}`);
    }
    if (relay.authentication === "off") {
      inSource(
        ["kind"],
        "shredstream is not possible with relay.authentication: off, because every host could send forged " +
          "shreds to its port; expected relay.authentication: leader-schedule",
      );
    }
    const given = source.shredstream?.publicAddress;
    if (given !== undefined && !isReachable(relay, parseAddress(given), source.port)) {
      inSource(
        ["shredstream", "publicAddress"],
        `${given} has another address family than relay.listen for this source; expected an address of a ` +
          "listening address family",
      );
    }
  }
}

function isReachable(relay: RelayConfig, address: Uint8Array, port: number | undefined): boolean {
  return relay.listen
    .map((text) => parseEndpoint(text, { allowPortZero: true }))
    .filter((endpoint) => port === undefined || endpoint.port === port)
    .some(({ family }) => family === familyOf(address));
}
