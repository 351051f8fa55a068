// Facts about the sources of kind "shredstream": whether the block engine is reachable, and from where.
//
// Called by src/tools/commands/doctor.ts. It only connects, because a heartbeat would redirect a running
// service's shreds to this process.

import { destinationRefusal } from "../../core/addresses/address-classes.ts";
import { formatAddress, parseAddress } from "../../core/addresses/addresses.ts";
import { canonicalAddresses, readOwnAddresses } from "../../core/addresses/own-addresses.ts";
import type { Clock } from "../../core/clock.ts";
import type { RelayConfig } from "../../core/configuration/configuration.ts";
import { subscriptionFamily } from "../../relay/shredstream/shredstream-sources.ts";
import { connectFact, hostAndPortOf } from "./connect-fact.ts";

export interface ShredstreamFact {
  readonly name: string;
  /** The key of the source's mapping `shredstream` that names the target. */
  readonly key: "url" | "authUrl";
  /** "host:port" of the block engine or of its authentication service. */
  readonly target: string;
  /** null: connected. */
  readonly error: string | null;
  readonly connectMs: number;
  /** The address that the block engine is asked to send to; null: unknown. */
  readonly address: string | null;
  /** Whether an interface of this machine has the address. */
  readonly isOwn: boolean;
  /** Why the address is not reachable from the internet; null: it may be. */
  readonly refusal: string | null;
}

export function readShredstreamFacts(
  { sources, listen }: RelayConfig,
  clock: Clock,
): Promise<ShredstreamFact[]> {
  const own = new Set(canonicalAddresses(readOwnAddresses()));
  const all = sources.flatMap(({ name, port, shredstream }) => {
    if (!shredstream) return [];
    const { url, authUrl = url, publicAddress } = shredstream;
    // The service uses the same family, because the address of the connection is that for the shreds.
    const family = subscriptionFamily(listen, port);
    const targets: Pick<Target, "key" | "url">[] = [{ key: "url", url }];
    if (authUrl !== url) targets.push({ key: "authUrl", url: authUrl });
    return targets.map((target) => fact({ ...target, name, publicAddress, family, own }, clock));
  });
  return Promise.all(all);
}

interface Target {
  readonly name: string;
  readonly key: "url" | "authUrl";
  readonly url: string;
  readonly publicAddress: string | undefined;
  readonly family: 4 | 6 | undefined;
  readonly own: ReadonlySet<string>;
}

async function fact(target: Target, clock: Clock): Promise<ShredstreamFact> {
  const { name, key, url, publicAddress, family, own } = target;
  const { host, port } = hostAndPortOf(url);
  const { error, connectMs, localAddress } = await connectFact(url, clock, family);
  const address = publicAddress ?? localAddress;
  const bytes = address === null ? null : parseAddress(address);
  return {
    name,
    key,
    target: `${host.includes(":") ? `[${host}]` : host}:${port}`,
    error,
    connectMs,
    address: bytes && formatAddress(bytes),
    isOwn: bytes !== null && own.has(formatAddress(bytes)),
    refusal: (bytes && destinationRefusal(bytes, false)) ?? null,
  };
}
