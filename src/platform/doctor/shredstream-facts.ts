// Facts about the sources of kind "shredstream": whether the block engine is reachable, and from where.
//
// Called by src/tools/commands/doctor.ts. It only connects, because a heartbeat would redirect a running
// service's shreds to this process.

import { connect } from "node:net";
import { destinationRefusal } from "../../core/addresses/address-classes.ts";
import { formatAddress, parseAddress } from "../../core/addresses/addresses.ts";
import { canonicalAddresses, readOwnAddresses } from "../../core/addresses/own-addresses.ts";
import type { Clock } from "../../core/clock.ts";
import type { RelayConfig } from "../../core/configuration/configuration.ts";
import { messageOf } from "../../core/errors.ts";

export interface ShredstreamFact {
  readonly name: string;
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

const connectTimeoutMs = 3000;

export function readShredstreamFacts(
  { sources }: RelayConfig,
  clock: Clock,
): Promise<ShredstreamFact[]> {
  const own = new Set(canonicalAddresses(readOwnAddresses()));
  const all = sources.flatMap(({ name, shredstream }) => {
    if (!shredstream) return [];
    const { url, authUrl = url, publicAddress } = shredstream;
    return [...new Set([url, authUrl])].map((one) =>
      fact({ name, url: one, publicAddress, own }, clock),
    );
  });
  return Promise.all(all);
}

interface Target {
  readonly name: string;
  readonly url: string;
  readonly publicAddress: string | undefined;
  readonly own: ReadonlySet<string>;
}

async function fact(target: Target, clock: Clock): Promise<ShredstreamFact> {
  const { name, url, publicAddress, own } = target;
  const { protocol, hostname, port: written } = new URL(url);
  const host = hostname.replaceAll(/[[\]]/g, "");
  const port = written === "" ? (protocol === "https:" ? 443 : 80) : Number(written);
  const beganNs = clock.monotonicNs();
  const { error, local } = await connection(host, port, clock);
  const address = publicAddress ?? local;
  const bytes = address === undefined ? null : parseAddress(address);
  return {
    name,
    target: `${hostname}:${port}`,
    error,
    connectMs: Number(clock.monotonicNs() - beganNs) / 1e6,
    address: bytes && formatAddress(bytes),
    isOwn: bytes !== null && own.has(formatAddress(bytes)),
    refusal: (bytes && destinationRefusal(bytes, false)) ?? null,
  };
}

function connection(
  host: string,
  port: number,
  clock: Clock,
): Promise<{ error: string | null; local?: string | undefined }> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (error: string | null) => {
      timer.cancel();
      const local = socket.localAddress;
      socket.destroy();
      resolve({ error, local });
    };
    const timer = clock.after(connectTimeoutMs, () =>
      end(`no connection within ${connectTimeoutMs} ms`),
    );
    socket.once("connect", () => end(null));
    socket.once("error", (error) => end(messageOf(error)));
  });
}
