// Composition of decoded streams: the gateway's keys and tiers, the relay's shreds, the node; and of the
// observation of write locks, which reads them too.

import { parseAddress } from "../core/addresses/addresses.ts";
import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import { connectionLimitsOf } from "../core/configuration/connection-limits.ts";
import { ShredwayError } from "../core/errors.ts";
import { openFilesLimit } from "../core/files.ts";
import type { Logger } from "../core/log.ts";
import type { KeyRing } from "../gateway/accounts/key-ring.ts";
import type { Callers } from "../gateway/endpoints/callers.ts";
import { TlsCertificate } from "../gateway/http/tls-certificate.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import { decodeBase58 } from "../relay/data-plane/base58.ts";
import { RelayStreams } from "../relay/data-plane/relay-streams.ts";
import type { RelayService } from "../relay/relay-service.ts";
import type { StreamAccess } from "../relay/streams/stream-access.ts";
import { StreamHub } from "../relay/streams/stream-hub.ts";
import { StreamService } from "../relay/streams/stream-service.ts";
import type { PushDestinations } from "../relay/streams/transaction-pushes.ts";
import { WriteLocks } from "../relay/streams/write-locks.ts";
import { unknownDestination } from "../shreds/destinations/destination-rules.ts";
import type { AccountDestination } from "../shreds/destinations/destination-types.ts";
import type { Tiers } from "../shreds/tiers/types.ts";
import type { ShredSalesService } from "./shred-sales.ts";

interface AccessDependencies {
  readonly keyRing: KeyRing;
  /** null: this service does not sell shreds, so no account has a tier. */
  readonly shreds: { readonly tiers: Pick<Tiers, "tierOf"> } | null;
  readonly clock: Clock;
}

/** `callers`: called after the start only. */
export function streamAccessOf(
  callers: () => Pick<Callers, "authenticate">,
  { keyRing, shreds, clock }: AccessDependencies,
): StreamAccess {
  return {
    authenticate: (peer, text) => callers().authenticate(peer, text),
    current: (keyId, peer) => {
      const key = keyRing.get(keyId, clock.nowNs());
      if (!key) return null;
      if (peer === null || key.allowedRanges.length === 0) return key;
      return keyRing.allows(key, parseAddress(peer)) ? key : null;
    },
    tierOf: (accountId) => shreds?.tiers.tierOf(accountId) ?? null,
  };
}

/** undefined: no shreds are sold, so accounts have no destinations. */
function pushDestinationsOf(shreds: ShredSalesService | null): PushDestinations | undefined {
  if (!shreds) return undefined;
  const { destinations } = shreds;
  const active = () =>
    new Map(destinations.active(shreds.region).map(({ id, address }) => [id, address]));
  return {
    active,
    pauseShreds: (ids) => shreds.pauseShreds(ids),
    addressOf: (accountId, id) => {
      const found = destinations.ofAccount(accountId).find((one) => one.id === id);
      if (!found) throw unknownDestination(id);
      const address = active().get(id);
      if (address !== undefined) return address;
      throw pushRefusal(found, shreds);
    },
  };
}

function pushRefusal(
  { id, region, state }: Pick<AccountDestination, "id" | "region" | "state">,
  { destinations, region: own }: Pick<ShredSalesService, "destinations" | "region">,
): ShredwayError {
  const refusal = destinations.refusalOf(id);
  const problem =
    region !== own
      ? `is in region ${region}; expected one in region ${own}: call the service of region ${region}`
      : refusal === null
        ? `is ${state}; expected an active one: verify it with challengeDestination first`
        : `is not served: ${refusal}`;
  return new ShredwayError("destination_refused", `destination ${id} ${problem}`);
}

interface StreamDependencies {
  readonly config: Config;
  readonly relay: RelayService;
  readonly access: StreamAccess;
  /** null: this service sells no shreds. */
  readonly shreds: ShredSalesService | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** undefined: no section `streams`. */
export function openStreams({
  config,
  relay,
  access,
  shreds,
  clock,
  log,
}: StreamDependencies): StreamService | undefined {
  const { streams, solana } = config;
  if (!streams) return undefined;
  const node = solana && new RpcClient(solana.rpc);
  return new StreamService({
    config: streams,
    streams: relay.relay.streams,
    certificate: streams.tls && new TlsCertificate(streams.tls, { clock, log, section: "streams" }),
    access,
    connectionsMax: connectionLimitsOf(config, openFilesLimit()).streams,
    destinations: pushDestinationsOf(shreds),
    chain: {
      slot: () => relay.slots.slotClock.slotAt(clock.nowNs()),
      ...(node && { call: (method, params) => node.call(method, params) }),
    },
    ...(node && { callNode: (method, params, bytesMax) => node.call(method, params, bytesMax) }),
    clock,
    log,
  });
}

export interface OpenWriteLocks {
  readonly observer: WriteLocks;
  close(): void;
}

type WriteLockDependencies = Pick<StreamDependencies, "config" | "relay" | "clock" | "log"> & {
  readonly streams: StreamService | undefined;
};

/** undefined: the relay decodes no transactions. */
export function openWriteLocks({
  config,
  relay,
  streams,
  clock,
  log,
}: WriteLockDependencies): OpenWriteLocks | undefined {
  const { deshred, tiers } = config.relay;
  const tier = tiers.at(-1);
  if (!deshred || tier === undefined) return undefined;
  // One hub reads the streams of a relay: that of the subscribers, if there are some.
  const own = streams
    ? null
    : new StreamHub({
        streams: relay.relay.streams,
        limits: RelayStreams.limits(),
        hasHistory: false,
        clock,
        log,
      });
  const hub = streams?.hub ?? own;
  if (!hub) return undefined;
  const observer = new WriteLocks({ hub, tier, decode: decodeBase58, clock });
  return {
    observer,
    close: () => {
      observer.close();
      own?.close();
    },
  };
}
