// Composition of decoded streams: the gateway's keys and tiers, the relay's shreds, the node.

import { parseAddress } from "../core/addresses/addresses.ts";
import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import type { Logger } from "../core/log.ts";
import type { KeyRing } from "../gateway/accounts/key-ring.ts";
import type { Callers } from "../gateway/endpoints/callers.ts";
import { TlsCertificate } from "../gateway/http/tls-certificate.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import type { RelayService } from "../relay/relay-service.ts";
import type { StreamAccess } from "../relay/streams/stream-access.ts";
import { StreamService } from "../relay/streams/stream-service.ts";
import type { Tiers } from "../shreds/tiers/types.ts";

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
      const isAllowed = key.allowedRanges.length === 0 || keyRing.allows(key, parseAddress(peer));
      return isAllowed ? key : null;
    },
    tierOf: (accountId) => shreds?.tiers.tierOf(accountId) ?? null,
  };
}

interface StreamDependencies {
  readonly config: Config;
  readonly relay: RelayService;
  readonly access: StreamAccess;
  readonly clock: Clock;
  readonly log: Logger;
}

/** undefined: no section `streams`. */
export function openStreams({
  config,
  relay,
  access,
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
    chain: {
      slot: () => relay.slots.slotClock.slotAt(clock.nowNs()),
      ...(node && { call: (method, params) => node.call(method, params) }),
    },
    ...(node && { callNode: (method, params, bytesMax) => node.call(method, params, bytesMax) }),
    clock,
    log,
  });
}
