// Rule of the UDP addresses of ownership challenges and transaction pushes: the service can open them beside
// each other and beside those of the relay and the QUIC ingress, which other rules compare.
//
// Called by rules.ts. Without it, the start would report that another program uses the port.

import { parseEndpoint } from "../addresses/addresses.ts";
import { type BoundListener, checkExclusion } from "./bound-listeners.ts";
import { listenersAt, quicListenersOf } from "./rules-quic.ts";
import type { Config } from "./schema.ts";
import { sellsShreds } from "./shred-tips.ts";

type Report = (path: readonly (string | number)[], message: string) => void;

function senderAt(path: readonly string[], address: string): BoundListener {
  const endpoint = parseEndpoint(address, { allowPortZero: true });
  return { path, place: path.join("."), address, endpoint };
}

/** Addresses that the service opens only if accounts can have destinations. */
function sendersOf(config: Config): BoundListener[] {
  const { http, delivery, streams } = config;
  if (!http || !sellsShreds(config)) return [];
  const { listen, listenIpv6 } = delivery.proof;
  const pushes = streams && [
    senderAt(["streams", "push", "from"], streams.push.from),
    senderAt(["streams", "push", "fromIpv6"], streams.push.fromIpv6),
  ];
  return [
    senderAt(["delivery", "proof", "listen"], listen),
    senderAt(["delivery", "proof", "listenIpv6"], listenIpv6),
    ...(pushes ?? []),
  ];
}

export function checkUdpListeners(config: Config, report: Report): void {
  const { relay, quic } = config;
  const earlier = [
    ...listenersAt("relay", "listen", relay.listen),
    ...(quic ? quicListenersOf(quic) : []),
  ];
  checkExclusion({ earlier, own: sendersOf(config) }, { takesBothFamilies: false }, report);
}
