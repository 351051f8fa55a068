// Composition of the gateway: store, keys, checks, routes, pipeline, node, HTTP.
//
// Called by open-service.ts if the configuration has a section `http`, and by the bench. If a step fails,
// everything that was opened before it is closed.

import { hostname } from "node:os";
import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import { connectionLimitsOf } from "../core/configuration/connection-limits.ts";
import { addressAbove } from "../core/configuration/derived.ts";
import { nodeNameOf } from "../core/configuration/node-name.ts";
import { openFilesLimit } from "../core/files.ts";
import type { Logger } from "../core/log.ts";
import { KeyRing } from "../gateway/accounts/key-ring.ts";
import { PublicKeys } from "../gateway/accounts/public-keys.ts";
import { RateLimits } from "../gateway/accounts/rate-limits.ts";
import { type EndpointGroup, endpointGroups } from "../gateway/endpoints/endpoint-groups.ts";
import {
  type GatewayDependencies as EndpointGroupDependencies,
  Gateway,
} from "../gateway/endpoints/gateway.ts";
import { readMethodsOf } from "../gateway/endpoints/read-methods.ts";
import { FastPath } from "../gateway/fast-path/fast-path.ts";
import { HttpServerGroup } from "../gateway/http/server-group.ts";
import { TlsCertificate } from "../gateway/http/tls-certificate.ts";
import type { HttpServerOptions } from "../gateway/http/types.ts";
import type { Pages } from "../gateway/methods/dependencies.ts";
import { preflightOf } from "../gateway/methods/preflight.ts";
import type { NonceService } from "../gateway/nonces/nonce-service.ts";
import { SigningKeys } from "../gateway/receipts/signing-keys.ts";
import type { RouteTable } from "../gateway/routes/route-table.ts";
import { NodeBundleCommitments } from "../gateway/submission/bundle-commitments.ts";
import { Pipeline } from "../gateway/submission/pipeline.ts";
import { StatusReader } from "../gateway/submission/status-reader.ts";
import { SubmissionFailover } from "../gateway/submission/submission-failover.ts";
import type { TakenRequest } from "../gateway/submission/taken-request.ts";
import type { BundleCommitments } from "../gateway/submission/types.ts";
import type { UpcomingLeaders } from "../gateway/tpu/leader-selection.ts";
import type { Tracker } from "../gateway/tracker/types.ts";
import { PromptVerifier } from "../gateway/transactions/prompt-verifier.ts";
import { SignatureVerifier } from "../gateway/transactions/transaction-checks.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import { ensureSigningKey } from "../platform/solana/signing-key-file.ts";
import { Upstream } from "../platform/solana/upstream.ts";
import { Store } from "../platform/store/store.ts";
import { decodeBase58, encodeBase58 } from "../relay/data-plane/base58.ts";
import { LandingWatchList } from "../relay/landing-watch-list.ts";
import type { RelayService } from "../relay/relay-service.ts";
import type { StreamService } from "../relay/streams/stream-service.ts";
import type { WriteLocks } from "../relay/streams/write-locks.ts";
import { TipStatistics } from "../tips/tip-statistics.ts";
import { openNonces, TrackerPart } from "./compose-partners.ts";
import { openPortal } from "./compose-portal.ts";
import { openQuic, type QuicService } from "./compose-quic.ts";
import { openRoutes } from "./compose-routes.ts";
import { openShredSales } from "./compose-shreds.ts";
import { GatewayService } from "./gateway-service.ts";
import { rateLimitOf } from "./gateway-settings.ts";
import { GatewayTables } from "./gateway-tables.ts";
import { NodeDirectory } from "./node-directory.ts";
import { nodeSettingsOf } from "./node-settings.ts";
import type { ShredSalesService } from "./shred-sales.ts";

interface GatewayOptions {
  readonly config: Config;
  /** Source of leaders and landings. If absent, neither is known. */
  readonly relay?: RelayService;
  /** Metrics and readiness pages. If absent, the gateway serves none. */
  readonly pages?: Pages;
  readonly log: Logger;
  readonly clock: Clock;
  /** Clock of the tiers only; default: `clock`. */
  readonly tierClock?: Clock;
  /** Default: the native verifier. One bench section accepts every signature instead. */
  readonly verifier?: Pick<SignatureVerifier, "verify" | "close">;
  /** Decoded streams, called after the start; undefined: they are off. */
  readonly streams?: () => StreamService | undefined;
  /** Like `streams`; undefined: the relay decodes no transactions. */
  readonly writeLocks?: () => WriteLocks | undefined;
  /** Leaders of the TPU routes. Default: those of the relay. One bench section has leaders without a chain. */
  readonly leaders?: UpcomingLeaders;
  /** See Store.open. */
  readonly interrupted?: AbortSignal | undefined;
}

/**
 * Maximum number of callers with a rate-limit entry. Above it, the least recently active caller is
 * dropped.
 */
const callersMax = 100_000;
const msPerHour = 3_600_000;

/** One address for each entry of http.listen. By default, WebSockets use the next port. */
function listenersOf({ http }: Config): string[] {
  const listen = http?.listen ?? [];
  return [...new Set([...listen, ...(http?.webSocketListen ?? addressAbove(listen))])];
}

function tlsListenersOf(listen: readonly string[]): string[] {
  return [...new Set([...listen, ...addressAbove(listen)])];
}

interface GatewayComponents {
  readonly options: GatewayOptions;
  readonly tables: GatewayTables;
  /** null: requests are sent after they were read. */
  readonly fastPath: FastPath | null;
  readonly store: Store;
  /** null: no other node uses the database. */
  readonly nodes: NodeDirectory | null;
  readonly keyRing: KeyRing;
  readonly publicKeys: PublicKeys;
  readonly signingKeys: SigningKeys;
  readonly routes: RouteTable;
  readonly verifier: Pick<SignatureVerifier, "verify" | "close">;
  readonly landings: LandingWatchList | null;
  readonly upstream: Upstream | null;
  readonly tips: TipStatistics;
  /** null: no shred-tip address is configured. */
  readonly shreds: ShredSalesService | null;
  readonly tracker: Tracker;
  /** null: no node is configured. */
  readonly nonces: NonceService | null;
}

function makePipeline(components: GatewayComponents): Pipeline {
  const { options, tables, store, routes, landings, tips, nonces, fastPath } = components;
  const { config, relay, clock, log } = options;
  const { resendMs, openMax, openPerAccountMax } = config.gateway;
  return new Pipeline(
    {
      clock,
      log,
      routes: () => routes.routes(),
      closingRoutes: () => routes.closingRoutes(),
      policy: () => tables.policy,
      store: store.submissions,
      landings: landings,
      outcomes: config.solana ? new RpcClient(config.solana.rpc) : null,
      leaders: () => relay?.leaders() ?? { slot: null, current: null, next: null },
      slotNs: () => relay?.slots.slotClock.now(clock.nowNs())?.slotNs ?? null,
      inspect: (wire) => tables.inspector.inspect(wire),
      landedTips: tips,
      ...(nonces && { nonces }),
      ...(fastPath && {
        submitted: (signature: string) => fastPath.note(signature),
        storeFailing: () => fastPath.forgetAll(),
      }),
    },
    { resendMs, openMax, openPerAccountMax, historyMs: config.data.historyHours * msPerHour },
  );
}

function makeBundleCommitments({ config, clock, log }: GatewayOptions): BundleCommitments {
  const { solana } = config;
  const warn = (text: string): void => log.warn(text);
  const reader = solana
    ? new StatusReader({ clock, node: new RpcClient(solana.rpc), log: { warn } })
    : null;
  return new NodeBundleCommitments({ clock, reader });
}

function createGateway(
  components: GatewayComponents,
  pipeline: Pipeline,
  pages: readonly Pages[],
): Gateway {
  const rates = new RateLimits(callersMax);
  const {
    options,
    tables,
    keyRing,
    publicKeys,
    verifier,
    upstream,
    shreds,
    tips,
    nonces,
    tracker,
    fastPath,
  } = components;
  const { clock, log, relay, streams, writeLocks } = options;
  const take: EndpointGroupDependencies["limits"]["take"] = (key, nowNs) => {
    const verdict = rates.take(key.id, rateLimitOf(tables.config, key), nowNs);
    fastPath?.allow(key.id, verdict.remaining);
    return verdict;
  };
  return new Gateway(
    {
      clock,
      log,
      keys: keyRing,
      publicKeys,
      limits: { take },
      inspector: { inspect: (wire) => tables.inspector.inspect(wire) },
      verifier:
        verifier instanceof SignatureVerifier ? new PromptVerifier(verifier, clock) : verifier,
      base58: { decode: decodeBase58, encode: encodeBase58 },
      submissions: pipeline,
      ...(fastPath && {
        fastSends: {
          mayTake: (accountId: string) => pipeline.mayTake(accountId),
          isKnown: (signature: string) => pipeline.isKnown(signature),
          send: (wire: Uint8Array) => fastPath.send(wire),
          abandoned: (taken: TakenRequest) => fastPath.abandoned(taken),
        },
      }),
      bundleCommitments: makeBundleCommitments(options),
      signer: components.signingKeys,
      preflight: upstream && preflightOf(upstream),
      reads: readMethodsOf(upstream, () => tables.settings.readMethods),
      sockets: upstream,
      shreds,
      tipFloor: tips,
      tipHistory: tips.history,
      nonces,
      tracker,
      ...(streams && { streams }),
      ...(writeLocks && { writeLocks }),
      pages,
      slot: () => relay?.leaders().slot ?? null,
    },
    tables.settings,
  );
}

/** Whether other nodes may use the same database. */
function isShared({ data }: Config): boolean {
  return data.postgres !== undefined;
}

function openSigningKeys(
  { config, clock, log }: GatewayOptions,
  { signingKeys, node }: Store,
): Promise<SigningKeys> {
  const readKey = () => ensureSigningKey(config.data.directory);
  return SigningKeys.open({ store: signingKeys, readKey, node, clock, log });
}

function openTips({ config, clock, log }: GatewayOptions, store: Store): Promise<TipStatistics> {
  return TipStatistics.open({ clock, log, store: store.landedTips, isShared: isShared(config) });
}

/** null: no other node uses the database. */
function submissionFailoverOf(
  { options, store }: GatewayComponents,
  pipeline: Pipeline,
): SubmissionFailover | null {
  if (!isShared(options.config)) return null;
  const { clock, log } = options;
  return new SubmissionFailover({
    clock,
    log,
    store: store.submissions,
    locks: store.locks,
    node: store.node,
    resume: (records) => pipeline.resume(records),
  });
}

function openStore({ config, clock, log, interrupted }: GatewayOptions): Promise<Store> {
  const { directory, postgres, durableSubmissions = postgres !== undefined } = config.data;
  const node = nodeNameOf(config.data.node, hostname());
  const options = { directory, postgres, node, durableSubmissions };
  return Store.open({ ...options, isService: true, clock, log, interrupted });
}

/** null: no other node uses the database. Throws ShredwayError "config_invalid" for a grave difference. */
async function openNodeDirectory(
  { config, clock, log }: GatewayOptions,
  { nodes: store, locks, node }: Store,
  tables: GatewayTables,
): Promise<NodeDirectory | null> {
  if (!isShared(config)) return null;
  const dependencies = { store, locks, node, clock, log };
  const nodes = await NodeDirectory.open(dependencies, nodeSettingsOf(config));
  tables.follow(nodes);
  return nodes;
}

/** null: no shred-tip address is configured. */
async function openShreds({
  options,
  tables,
  store,
  nodes,
  verifier,
  landings,
}: Pick<GatewayComponents, "options" | "tables" | "store" | "nodes" | "verifier" | "landings">) {
  if (tables.shredTipAddresses.size === 0) return null;
  const { config, relay, clock, tierClock = clock, log } = options;
  return openShredSales({
    config,
    relay,
    store,
    verifier,
    landings,
    inspector: () => tables.shredInspector,
    addresses: () => tables.shredTipAddresses,
    knownAddresses: () => tables.knownShredTipAddresses,
    ...(nodes && {
      refreshAddresses: () => nodes.refresh(),
      regionProblem: (region: string) => nodes.regionProblem(region),
      isServedElsewhere: (region: string) => nodes.isServedElsewhere(region),
    }),
    clock,
    tierClock,
    log,
  });
}

function openVerifier({ gateway }: Config): SignatureVerifier {
  const { checkThreads, checkQueueMax } = gateway;
  return SignatureVerifier.open({ threads: checkThreads, queueMax: checkQueueMax });
}

/** null: no TLS. Throws ShredwayError. */
function openCertificate({ config, clock, log }: GatewayOptions): TlsCertificate | null {
  const { tls } = config.http ?? {};
  return tls ? new TlsCertificate(tls, { clock, log }) : null;
}

/** The options of http that apply to every server. Without http: the server's defaults. */
function serverLimits(config: Config): Partial<HttpServerOptions> {
  const { http } = config;
  if (!http) return {};
  const { engine, keepAliveSeconds } = http;
  const connectionsMax = connectionLimitsOf(config, openFilesLimit()).http;
  return { connectionsMax, engine, ...(keepAliveSeconds !== undefined && { keepAliveSeconds }) };
}

interface Servers {
  readonly gateway: Gateway;
  readonly fastPath: FastPath | null;
  readonly config: Config;
  /** null: no TLS. */
  readonly certificate: TlsCertificate | null;
  readonly log: Logger;
}

/** One server for http.listen and http.tls, and one for each entry of http.split. */
function openServers({
  gateway,
  fastPath,
  config,
  certificate,
  log,
}: Servers): Promise<HttpServerGroup> {
  const { serves = endpointGroups, split = [], tls } = config.http ?? {};
  const serverOf = (
    listen: readonly string[],
    served: readonly EndpointGroup[],
  ): HttpServerOptions => ({
    ...gateway.serverOptions(new Set(served)),
    listen,
    ...serverLimits(config),
    ...(fastPath && { fastPath }),
  });
  const tlsListeners =
    tls && certificate ? { listen: tlsListenersOf(tls.listen), certificate } : undefined;
  const servers = [
    { ...serverOf(listenersOf(config), serves), tls: tlsListeners },
    ...split.map((one) => serverOf(one.listen, one.serves)),
  ];
  return HttpServerGroup.open(servers, log);
}

function publicKeysOf(
  { clock, log }: GatewayOptions,
  { store, keyRing }: Pick<GatewayComponents, "store" | "keyRing">,
  refresh: () => Promise<void>,
): PublicKeys {
  const apiKey = (id: string) => keyRing.get(id, clock.nowNs());
  return new PublicKeys({ store: store.publicKeys, apiKey, refresh, clock, log });
}

/** null: the configuration has it off, or nothing could use it. Throws Error if the system refuses it. */
function openFastPath({ config, verifier, log }: GatewayOptions): FastPath | null {
  // A substitute for the verifier decides differently.
  const isUsable = config.http?.engine !== "uws" && verifier === undefined;
  return config.gateway.fastPath && isUsable ? new FastPath(log) : null;
}

interface Closable {
  close(): void | Promise<void>;
}

interface ServiceOptions {
  /** null: no section `quic`. */
  readonly openQuic: (gateway: () => Gateway) => QuicService | null;
  readonly addresses: Closable;
  readonly partners: TrackerPart;
  readonly certificate: TlsCertificate | null;
}

function createService(
  components: GatewayComponents,
  { openQuic: openIngress, addresses, partners, certificate }: ServiceOptions,
): GatewayService {
  const { options, tables, fastPath, verifier, upstream } = components;
  const { config, clock, log } = options;
  const quic = openIngress(() => gateway);
  const pipeline = makePipeline(components);
  const late = { gateway: () => gateway, service: () => service, inForce: () => tables.config };
  const { settings } = tables;
  const portal = openPortal({ ...options, ...components, ...late, pipeline, settings, quic });
  const pages = [options.pages, portal].filter((each) => each !== undefined && each !== null);
  const gateway: Gateway = createGateway(components, pipeline, pages);
  const service: GatewayService = new GatewayService({
    ...components,
    quic,
    config,
    pipeline,
    failover: submissionFailoverOf(components, pipeline),
    live: tables,
    gateway,
    verifier: verifier instanceof SignatureVerifier ? verifier : null,
    openServer: () => openServers({ gateway, fastPath, config, certificate, log }),
    others: [portal, addresses, partners, verifier, certificate, upstream, fastPath].filter(
      (one) => !!one,
    ),
    certificate,
    log,
    clock,
  });
  tables.setFastPathRules();
  return service;
}

/** Throws ShredwayError, after closing everything that it opened. */
export async function openGateway(options: GatewayOptions): Promise<GatewayService> {
  const { config, relay, clock, log } = options;
  const partners = new TrackerPart({ config, relay, clock, log });
  const opened: Closable[] = [partners];
  const keep = <T extends Closable | null>(part: T): T => {
    if (part) opened.push(part);
    return part;
  };
  try {
    const fastPath = keep(openFastPath(options));
    const tables = new GatewayTables(config, partners, fastPath);
    const certificate = keep(openCertificate(options));
    const store = keep(await openStore(options));
    const signingKeys = keep(await openSigningKeys(options, store));
    const nodes = keep(await openNodeDirectory(options, store, tables));
    const verifier = keep(options.verifier ?? openVerifier(config));
    const upstream = keep(config.solana ? Upstream.open({ ...config.solana, log, clock }) : null);
    const { tracker } = partners;
    const { table: routes, addresses } = await openRoutes({
      ...options,
      relay,
      tracker,
      fastPath: fastPath ?? undefined,
    });
    opened.push(addresses, routes);
    const keyRing = new KeyRing(() => fastPath?.forgetAll());
    const publicKeys = publicKeysOf(options, { store, keyRing }, () => service.refreshKeys());
    const landings = relay?.config.deshred ? new LandingWatchList(relay.relay, log) : null;
    const tips = keep(await openTips(options, store));
    const shreds = keep(await openShreds({ options, tables, store, nodes, verifier, landings }));
    const nonces = keep(await openNonces({ config, store, clock, log }));
    const components = {
      options,
      tables,
      fastPath,
      store,
      nodes,
      keyRing,
      publicKeys,
      signingKeys,
      routes,
      verifier,
      landings,
      upstream,
      tips,
      shreds,
      tracker,
      nonces,
    };
    const service: GatewayService = createService(components, {
      openQuic: (gateway) => keep(openQuic({ ...options, gateway, keyRing, publicKeys, fastPath })),
      addresses,
      partners,
      certificate,
    });
    return service;
  } catch (error) {
    for (const part of opened.toReversed()) await part.close();
    throw error;
  }
}
