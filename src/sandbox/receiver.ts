// Receivers of the sandbox: relays without destinations, which verify shreds and count duplicates.
//
// Opened by open-sandbox.ts and shredstream.ts.

import { parseEndpoint } from "../core/addresses/addresses.ts";
import { Relay } from "../relay/data-plane/relay.ts";
import { sandboxBufferBytes, sandboxPace, sandboxTiers } from "./plan.ts";

const loopback = "127.0.0.1";

export interface SandboxReceiver {
  readonly name: string;
  readonly tier: string;
  readonly address: string;
  readonly relay: Relay;
}

interface ReceiverOptions {
  readonly name: string;
  readonly tier: string;
  /** IPv4 address at which it receives; default: 127.0.0.1. */
  readonly host?: string;
}

/** Its only source has the name "relay". */
export function openReceiver({ name, tier, host }: ReceiverOptions): SandboxReceiver {
  const relay = Relay.open({
    listen: [`${host ?? loopback}:0`],
    workers: 1,
    tiers: sandboxTiers,
    authentication: "leader-schedule",
    shredVersion: sandboxPace.shredVersion,
    receive: { bufferBytes: sandboxBufferBytes },
    prefault: false,
    deshred: false,
  });
  const address = relay.addresses[0] ?? "";
  relay.publishSources([{ name: "relay", port: parseEndpoint(address).port, tier }]);
  return { name, tier, address, relay };
}
