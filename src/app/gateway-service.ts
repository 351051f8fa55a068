// The gateway as a service: start, drain and close, reload of keys and settings, snapshots for metrics.
//
// Created by compose-gateway.ts, run by service.ts. It restores submissions before the first request, and
// answers all requests before the store closes.

import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import { connectionLimitsOf } from "../core/configuration/connection-limits.ts";
import { messageOf } from "../core/errors.ts";
import { openFilesLimit } from "../core/files.ts";
import type { Logger } from "../core/log.ts";
import type { KeyRing } from "../gateway/accounts/key-ring.ts";
import { KeyUpdates } from "../gateway/accounts/key-updates.ts";
import type { PublicKeys } from "../gateway/accounts/public-keys.ts";
import type { KeyStore } from "../gateway/accounts/types.ts";
import { endpointGroups } from "../gateway/endpoints/endpoint-groups.ts";
import type { Gateway } from "../gateway/endpoints/gateway.ts";
import type { FastPath, FastPathSnapshot } from "../gateway/fast-path/fast-path.ts";
import type { HttpServerGroup } from "../gateway/http/server-group.ts";
import type { TlsCertificate } from "../gateway/http/tls-certificate.ts";
import type { NonceService, NonceServiceSnapshot } from "../gateway/nonces/nonce-service.ts";
import type { SigningKeys } from "../gateway/receipts/signing-keys.ts";
import type { RouteTable } from "../gateway/routes/route-table.ts";
import { TpuRoute } from "../gateway/routes/tpu-route.ts";
import type { Pipeline, PipelineSnapshot } from "../gateway/submission/pipeline.ts";
import type { SubmissionFailover } from "../gateway/submission/submission-failover.ts";
import type { RouteSnapshot, Submissions } from "../gateway/submission/types.ts";
import type { Tracker } from "../gateway/tracker/types.ts";
import type { SignatureVerifier } from "../gateway/transactions/transaction-checks.ts";
import type { GatewayPartFacts } from "../platform/metrics/list.ts";
import { addTpuCounts, type TpuRouteFacts } from "../platform/metrics/route-list.ts";
import { RunningTotals } from "../platform/metrics/running-totals.ts";
import type { Store } from "../platform/store/store.ts";
import type { LandingWatchList } from "../relay/landing-watch-list.ts";
import type { StreamAccess } from "../relay/streams/stream-access.ts";
import type { StreamSnapshot } from "../relay/streams/stream-records.ts";
import type { StreamService } from "../relay/streams/stream-service.ts";
import type { TipStatistics } from "../tips/tip-statistics.ts";
import type { QuicService } from "./compose-quic.ts";
import { streamAccessOf } from "./compose-streams.ts";
import { databaseChangeWarning, gatewayRestartKeys, inForceAfter } from "./gateway-settings.ts";
import type { NodeDirectory } from "./node-directory.ts";
import type { ReadinessFacts } from "./readiness.ts";
import type { ShredSalesService, ShredSalesSnapshot } from "./shred-sales.ts";

export interface GatewaySnapshot {
  readonly connections: number;
  readonly submissions: PipelineSnapshot;
  readonly routes: readonly RouteSnapshot[];
  /** null: this service does not sell shreds. */
  readonly shreds: ShredSalesSnapshot | null;
  /** Tips that landed in the last 15 minutes. */
  readonly landedTips: number;
  /** null: the fast path is off. */
  readonly fastPath: FastPathSnapshot | null;
  /** null: no node is configured. */
  readonly nonces: NonceServiceSnapshot | null;
}

/** Settings that a reload changes without a restart. */
interface LiveSettings {
  /** Checks the new settings; the returned function applies them and cannot fail. Throws ShredwayError. */
  prepare(config: Config): () => void;
}

/** A configuration that was checked. Call exactly one of the two. */
export interface PreparedReload {
  /** Applies the changes that need no restart, and returns the configuration keys that do. */
  apply(): readonly string[];
  /** Closes what was opened for it. */
  abandon(): void;
}

const drainPollMs = 10;

/** Settles with the promise, or after `graceMs`. No timer remains. */
async function settledWithin(work: Promise<void>, graceMs: number, clock: Clock): Promise<void> {
  const waiting = new AbortController();
  await Promise.race([work, clock.sleep(graceMs, waiting.signal)]);
  waiting.abort();
}

interface Closable {
  close(): void | Promise<void>;
}

interface GatewayServiceDependencies {
  readonly config: Config;
  readonly store: Store;
  /** null: no other node uses the database. */
  readonly nodes: Pick<NodeDirectory, "differences" | "close"> | null;
  readonly keyRing: KeyRing;
  readonly publicKeys: PublicKeys;
  readonly signingKeys: Pick<SigningKeys, "close">;
  readonly routes: RouteTable;
  readonly pipeline: Pipeline;
  /** null: the relay does not decode transactions. */
  readonly landings: LandingWatchList | null;
  readonly tips: TipStatistics;
  /** null: this service does not sell shreds. */
  readonly shreds: ShredSalesService | null;
  /** null: no node is configured. */
  readonly nonces: NonceService | null;
  /** null: no other node uses the database. */
  readonly failover: SubmissionFailover | null;
  readonly live: LiveSettings;
  readonly gateway: Pick<Gateway, "counts" | "submissionLimit" | "submissionQueue" | "callers">;
  /** null: requests are sent after they were read. */
  readonly fastPath: Pick<FastPath, "pause" | "snapshot"> | null;
  /** null: the native verifier is not used. */
  readonly verifier: Pick<SignatureVerifier, "pending"> | null;
  readonly tracker: Tracker;
  readonly openServer: () => Promise<HttpServerGroup>;
  /** null: no section `quic`. */
  readonly quic: QuicService | null;
  /** null: no TLS. */
  readonly certificate: Pick<TlsCertificate, "material" | "problem"> | null;
  /** These are closed last, in this order. */
  readonly others: readonly Closable[];
  readonly log: Logger;
  readonly clock: Clock;
}

export class GatewayService {
  readonly #dependencies: GatewayServiceDependencies;
  readonly #keyUpdates: KeyUpdates;
  #config: Config;
  #server: HttpServerGroup | undefined;
  #streams: Pick<StreamService, "snapshot" | "certificateProblem"> | undefined;
  readonly #tpuTotals = new RunningTotals();
  #closing: Promise<void> | undefined;

  constructor(dependencies: GatewayServiceDependencies) {
    this.#dependencies = dependencies;
    this.#config = dependencies.config;
    const { clock, log, store, keyRing, publicKeys } = dependencies;
    this.#keyUpdates = new KeyUpdates({
      clock,
      log,
      store: store.keys,
      keyRing,
      publicKeyStore: store.publicKeys,
      publicKeys,
    });
  }

  /** Continues the open submissions of an earlier process, then opens HTTP. Throws ShredwayError. */
  async start(): Promise<void> {
    const { pipeline, log, shreds, failover } = this.#dependencies;
    await this.#keyUpdates.refresh();
    await shreds?.start();
    const restored = await pipeline.restore();
    if (restored > 0) log.info({ transactions: restored }, "gateway: restored open submissions");
    failover?.start();
    this.#server = await this.#dependencies.openServer();
    await this.#dependencies.quic?.ingress.start();
  }

  /** Addresses in the order of http.listen; empty before `start`. */
  get addresses(): readonly string[] {
    return this.#server?.addresses ?? [];
  }

  /** The same for http.tls.listen. */
  get tlsAddresses(): readonly string[] {
    return this.#server?.tlsAddresses ?? [];
  }

  /** SHA-256 of the certificate of the QUIC ingress; null: no section `quic`. */
  get quicFingerprint(): string | null {
    return this.#dependencies.quic?.fingerprint ?? null;
  }

  /** UDP addresses of the QUIC ingress; empty before `start`, or if it is off. */
  get quicAddresses(): readonly string[] {
    return this.#dependencies.quic?.ingress.addresses ?? [];
  }

  /** URL of the portal; null before `start`, if the portal is off, or if no listener serves it. */
  get portalUrl(): string | null {
    const { portal, http } = this.#dependencies.config;
    const served = [
      http?.serves ?? endpointGroups,
      ...(http?.split ?? []).map((one) => one.serves),
    ];
    // One server for http.listen, then one for each entry of http.split.
    const server = served.findIndex((groups) => groups.includes("portal"));
    const address = this.#server?.addressesByServer[server]?.[0];
    return portal.enabled && address !== undefined ? `http://${address}/portal/` : null;
  }

  get submissions(): Submissions {
    return this.#dependencies.pipeline;
  }

  get publicKeys(): PublicKeys {
    return this.#dependencies.publicKeys;
  }

  get shreds(): ShredSalesService | null {
    return this.#dependencies.shreds;
  }

  /** The portal and the readiness include these streams from now on. */
  showStreams(streams: Pick<StreamService, "snapshot" | "certificateProblem">): void {
    this.#streams = streams;
  }

  /** Decoded streams of all accounts; empty without the section `streams`. */
  streamSnapshot(): StreamSnapshot {
    return this.#streams?.snapshot() ?? { open: [], ended: [] };
  }

  /** Decides which calls may open decoded streams. */
  get streamAccess(): StreamAccess {
    return streamAccessOf(() => this.#dependencies.gateway.callers, this.#dependencies);
  }

  get tipFloor(): TipStatistics {
    return this.#dependencies.tips;
  }

  get landings(): LandingWatchList | null {
    return this.#dependencies.landings;
  }

  /**
   * A new key is valid after `refreshKeys`. A key that another process created is valid within a
   * second.
   */
  get keys(): KeyStore {
    return this.#dependencies.store.keys;
  }

  refreshKeys(): Promise<void> {
    return this.#keyUpdates.refresh();
  }

  warnings(): string[] {
    const { store, keyRing, shreds } = this.#dependencies;
    const { routes, solana } = this.#config;
    const warnings = [...store.warnings];
    if (keyRing.size === 0) {
      warnings.push(
        "gateway: no API key exists: every call is rejected; create a key with: shredway keys create",
      );
    }
    if (routes.length === 0) {
      warnings.push(
        "gateway: routes is empty: every submission is rejected with no_route; configure a route to accept submissions",
      );
    }
    if (!shreds) {
      warnings.push(
        "tips: tips.shredAddresses is empty: this service sells no shreds, so accounts get no tier and have no destinations",
      );
    }
    if (!solana) {
      warnings.push(
        "gateway: solana.rpc is not configured: read methods are rejected, and transaction statuses come " +
          "from the relay's shreds only",
      );
      if (shreds) {
        warnings.push(
          "tips: solana.rpc is not configured: registered tips count immediately, without a check of their landing",
        );
      }
    }
    return warnings;
  }

  /** Checks `wanted` and opens its new routes. Throws ShredwayError; then nothing changed. */
  prepare(wanted: Config): PreparedReload {
    const { live, routes, log } = this.#dependencies;
    const inForce = inForceAfter(this.#config, wanted);
    const applySettings = live.prepare(inForce);
    const newRoutes = routes.prepare(wanted.routes);
    const closing = (closed: Promise<void>): void => {
      closed.catch((error: unknown) =>
        log.error(`routes: could not close a route: ${messageOf(error)}`),
      );
    };
    return {
      apply: () => {
        applySettings();
        closing(newRoutes.apply());
        const restart = gatewayRestartKeys(this.#config, wanted);
        this.#apply(inForce, restart);
        return restart;
      },
      abandon: () => closing(newRoutes.abandon()),
    };
  }

  #apply(inForce: Config, restart: readonly string[]): void {
    const { log, shreds } = this.#dependencies;
    shreds?.apply(inForce);
    const databaseChange = databaseChangeWarning(restart);
    if (databaseChange !== null) log.warn(databaseChange);
    this.#config = inForce;
    log.info({ routes: inForce.routes.length }, "gateway: reloaded routes, tips and limits");
  }

  snapshot(): GatewaySnapshot {
    const { pipeline, routes, shreds, tips, nonces } = this.#dependencies;
    return {
      connections: this.#server?.connections ?? 0,
      submissions: pipeline.snapshot(),
      routes: routes.snapshots(),
      shreds: shreds?.snapshot() ?? null,
      landedTips: tips.size,
      fastPath: this.#dependencies.fastPath?.snapshot() ?? null,
      nonces: nonces?.snapshot() ?? null,
    };
  }

  /** Rejects if the database does not answer. */
  pingStore(): Promise<void> {
    return this.#dependencies.store.ping();
  }

  readiness(): NonNullable<ReadinessFacts["gateway"]> {
    const { routes, keyRing, clock, store, nodes, certificate, quic } = this.#dependencies;
    const certificateProblems = [
      certificate?.problem,
      quic?.certificate?.problem,
      this.#streams?.certificateProblem,
    ].flatMap((problem) => problem ?? []);
    const { states } = keyRing.counts(clock.nowNs());
    const { isReachable, isWriteFailing } = store.numbers();
    return {
      nodeDifferences: nodes?.differences ?? null,
      routes: routes.snapshots(),
      keysInForce: states.get("in_force") ?? 0,
      unusableKeys: this.#keyUpdates.unusable,
      quicIsUp: quic?.ingress.snapshot().isUp ?? null,
      certificateProblems,
      store: { isReachable, isWriteFailing, isOnFile: store.isOnFile },
    };
  }

  /** Counts for the metrics. */
  facts(): GatewayPartFacts {
    const { gateway: endpoints, verifier, pipeline, store, certificate } = this.#dependencies;
    const { gateway } = this.#config;
    return {
      gateway: {
        requests: endpoints.counts,
        connections: this.#server?.connections ?? 0,
        connectionsMax: connectionLimitsOf(this.#config, openFilesLimit()).http,
        connectionsOverLimit: this.#server?.connectionsOverLimit ?? 0,
        certificateExpiresMs: certificate?.material.expiresMs ?? null,
        webSockets: this.#server?.webSockets ?? [],
        webSocketsOverLimit: this.#server?.webSocketsOverLimit ?? [],
        submissionsUnderWay: endpoints.submissionLimit.underWay,
        submissionsUnderWayMax: endpoints.submissionLimit.max,
        submissionQueue: endpoints.submissionQueue.counts,
        checksPending: verifier?.pending ?? null,
        checksPendingMax: gateway.checkQueueMax,
        fastPath: this.#dependencies.fastPath?.snapshot() ?? null,
        pipeline: pipeline.snapshot(),
        openMax: gateway.openMax,
      },
      quic: this.#dependencies.quic?.ingress.snapshot() ?? null,
      routes: this.#routeFacts(),
      accounts: this.#accountFacts(),
      store: {
        kind: store.isOnFile ? "sqlite" : "postgres",
        node: store.node,
        ...store.numbers(),
      },
    };
  }

  #routeFacts(): GatewayPartFacts["routes"] {
    const { routes } = this.#dependencies;
    const tpu: TpuRouteFacts[] = routes
      .routes()
      .filter((route) => route instanceof TpuRoute)
      .map((route) => ({
        name: route.capabilities.name,
        leaders: route.leaders(),
        process: route.process,
      }));
    addTpuCounts(this.#tpuTotals, tpu);
    return { routes: routes.snapshots(), tpu, tpuTotals: this.#tpuTotals.totals };
  }

  #accountFacts(): GatewayPartFacts["accounts"] {
    const { keyRing, clock, tips, shreds, nonces, tracker } = this.#dependencies;
    const { states, accounts } = keyRing.counts(clock.nowNs());
    const next = tracker.next(null);
    return {
      keys: states,
      accounts,
      landedTips: tips.size,
      tipFloor: tips.snapshot,
      shreds: shreds?.facts() ?? null,
      nonces: nonces?.snapshot() ?? null,
      trackerMembers: tracker.memberSet().size,
      trackerSlotsAhead: next && next.leaderSlot - next.contextSlot,
    };
  }

  /**
   * Answers requests in progress, then lets the routes send their queues. Takes at most `graceMs`.
   */
  async drain(graceMs: number): Promise<void> {
    const { clock, routes } = this.#dependencies;
    const endNs = clock.monotonicNs() + BigInt(graceMs) * 1_000_000n;
    this.#dependencies.fastPath?.pause();
    const quicDrained = this.#dependencies.quic?.ingress.drain();
    await this.#server?.drain(graceMs, clock);
    const restMs = Number((endNs - clock.monotonicNs()) / 1_000_000n);
    if (quicDrained) await settledWithin(quicDrained, Math.max(0, restMs), clock);
    const isBusy = () => routes.snapshots().some(({ queued, inFlight }) => queued + inFlight > 0);
    while (isBusy() && clock.monotonicNs() < endNs) await clock.sleep(drainPollMs);
  }

  /** Settles when all acknowledged submissions are durable and every file is closed. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { pipeline, routes, store, nodes, others, shreds, tips, nonces, failover, signingKeys } =
      this.#dependencies;
    this.#keyUpdates.close();
    this.#dependencies.fastPath?.pause();
    this.#server?.close();
    await this.#dependencies.quic?.close();
    pipeline.stop();
    const failoverClosed = failover?.close(); // the next process resumes the submissions that are still open
    await routes.close();
    pipeline.close();
    await shreds?.close();
    await tips.close();
    await nonces?.close();
    await failoverClosed;
    await nodes?.close();
    await signingKeys.close();
    await store.close();
    for (const part of others) await part.close();
  }
}
