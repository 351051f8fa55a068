// The gateway in one life of the service: the real key checks, methods, submission pipeline, routes and store.
// The node, the partners and the connections of callers are simulated.

import { createHash } from "node:crypto";
import { rateLimitOf } from "../../../src/app/gateway-settings.ts";
import { GatewayTables } from "../../../src/app/gateway-tables.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { type Config, completeConfig } from "../../../src/core/configuration/configuration.ts";
import { KeyPair } from "../../../src/core/key-pair.ts";
import type { Logger } from "../../../src/core/log.ts";
import { KeyRing } from "../../../src/gateway/accounts/key-ring.ts";
import { KeyUpdates } from "../../../src/gateway/accounts/key-updates.ts";
import { PublicKeys } from "../../../src/gateway/accounts/public-keys.ts";
import { RateLimits } from "../../../src/gateway/accounts/rate-limits.ts";
import { endpointGroups } from "../../../src/gateway/endpoints/endpoint-groups.ts";
import { Gateway } from "../../../src/gateway/endpoints/gateway.ts";
import { FastPath, type FastPathSnapshot } from "../../../src/gateway/fast-path/fast-path.ts";
import { HttpServer } from "../../../src/gateway/http/server.ts";
import { managedNonceLimits } from "../../../src/gateway/nonces/managed-nonces.ts";
import {
  NonceService,
  type NonceServiceLimits,
  nonceServiceLimitsFor,
} from "../../../src/gateway/nonces/nonce-service.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import type { PartnerNetwork } from "../../../src/gateway/routes/partner-network.ts";
import { RouteTable } from "../../../src/gateway/routes/route-table.ts";
import { TpuRoute } from "../../../src/gateway/routes/tpu-route.ts";
import { NodeBundleCommitments } from "../../../src/gateway/submission/bundle-commitments.ts";
import { Pipeline, type PipelineSnapshot } from "../../../src/gateway/submission/pipeline.ts";
import type { RouteSnapshot, SubmissionStore } from "../../../src/gateway/submission/types.ts";
import type { SupervisedChild } from "../../../src/gateway/tpu/confined-process.ts";
import { NodeAddresses } from "../../../src/gateway/tpu/node-addresses.ts";
import { PartnerTracker } from "../../../src/gateway/tracker/partner-tracker.ts";
import { NativeCoSigningCheck } from "../../../src/gateway/transactions/co-signing.ts";
import { PromptVerifier } from "../../../src/gateway/transactions/prompt-verifier.ts";
import type { SignatureVerifier } from "../../../src/gateway/transactions/transaction-checks.ts";
import { nonceKeysOf } from "../../../src/platform/solana/key-file.ts";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { JournaledSubmissionStore } from "../../../src/platform/store/journal/journaled-submission-store.ts";
import { replayJournal } from "../../../src/platform/store/journal/replay.ts";
import {
  type JournalCalls,
  SubmissionJournal,
} from "../../../src/platform/store/journal/submission-journal.ts";
import { SqlKeyStore } from "../../../src/platform/store/tables/key-store.ts";
import { SqlLandedTipStore } from "../../../src/platform/store/tables/landed-tip-store.ts";
import { SqlManagedNonceStore } from "../../../src/platform/store/tables/nonce-store.ts";
import { SqlPublicKeyStore } from "../../../src/platform/store/tables/public-key-store.ts";
import {
  columns,
  SqlSubmissionStore,
} from "../../../src/platform/store/tables/submission-store.ts";
import { decodeBase58, encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import type { NativeFastPath } from "../../../src/relay/data-plane/native-fast-path.ts";
import type { Relay } from "../../../src/relay/data-plane/relay.ts";
import { LandingWatchList } from "../../../src/relay/landing-watch-list.ts";
import { leaderNameAt } from "../../../src/relay/leaders/leader-context.ts";
import type { RelayService } from "../../../src/relay/relay-service.ts";
import { TipStatistics } from "../../../src/tips/tip-statistics.ts";
import type { MemoryCallers } from "../http/memory-callers.ts";
import { createdKeys } from "./created-keys.ts";
import type { ShownTips } from "./landed-tip-checks.ts";
import { leaderQueueMax } from "./memory-checks.ts";
import type { ProcessNode } from "./node.ts";
import { costlyTip, leadersName, partnerNames } from "./partners.ts";
import { gatewayTipAddress } from "./transactions.ts";

/** Short, so that a run of a minute contains the whole life of a transaction. */
const limits = {
  resendMs: 1_500,
  observationMs: 2_000,
  firstAskMs: 4_000,
  askMs: 1_000,
  settleMs: 3_000,
};
const partnerTimeoutMs = 900;
const noncePollMs = 400;
/** Idle connections end within a run. */
const keepAliveSeconds = 9;

const partnerConfigs = {
  staked: { kind: "swqos", callsPerRequest: 4, connections: 2 },
  costly: { kind: "swqos", minimumTipLamports: costlyTip, connections: 1 },
  builder: { kind: "block-builder", connections: 2 },
  auction: { kind: "alt-partner", connections: 1 },
} as const;

/** Fewer connections than leaders, so that one must end for another. */
const leaderRoute = {
  name: leadersName,
  kind: "tpu",
  connections: 3,
  queueMax: leaderQueueMax,
  timeoutMs: partnerTimeoutMs,
  connectAheadSlots: 8,
} as const;

const configs = new Map<string, Config>();

/** `minimumLamports`: the minimum tip. */
function configOf(minimumLamports: number, hasLeaders: boolean): Config {
  const key = `${minimumLamports} ${hasLeaders}`;
  const known = configs.get(key);
  if (known) return known;
  const partners = partnerNames.map((name) => ({
    name,
    url: `http://${name}/`,
    timeoutMs: partnerTimeoutMs,
    ...partnerConfigs[name],
  }));
  const config = completeConfig({
    relay: { listen: "10.0.0.1:20000", shredVersion: 1, leaders: { file: "leaders.json" } },
    http: { listen: ["127.0.0.1:1"] },
    tips: { addresses: [encodeBase58(gatewayTipAddress)], minimumLamports },
    gateway: { requestsPerSecond: 10_000, burst: 10_000 },
    solana: { rpc: "http://node.test" },
    routes: hasLeaders ? [...partners, leaderRoute] : partners,
  });
  configs.set(key, config);
  return config;
}

/** As the other limits, so that accounts are created within a run. */
const nonceLimits: NonceServiceLimits = {
  ...nonceServiceLimitsFor(noncePollMs),
  managed: { ...managedNonceLimits, firstExpiryCheckMs: 4_000, confirmMs: 3_000, restMs: 5_000 },
};

/** The operator's keys for nonce accounts. */
const nonceKeys = nonceKeysOf(
  new KeyPair(createHash("sha256").update("funding").digest()),
  createHash("sha256").update("nonce authorities").digest(),
);
export const fundingAddress = nonceKeys.funding.address;

export interface GatewayLifeOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly driver: SqlDriver;
  /** The database beside which the journal is; null: PostgreSQL, which needs none. */
  readonly journalPath: string | null;
  readonly journalCalls: JournalCalls;
  /** In lamports. */
  readonly minimumTip: number;
  /** Whether a submission waits for its commit; otherwise it waits for the journal. */
  readonly isDurable: boolean;
  /** Most ended transactions in memory. */
  readonly endedMax: number;
  readonly relay: Relay;
  readonly service: RelayService;
  readonly verifier: SignatureVerifier;
  readonly network: PartnerNetwork;
  readonly callers: MemoryCallers;
  readonly fastPath: NativeFastPath;
  readonly node: ProcessNode;
  /** Starts the process of the QUIC connections; null: there is no route to the leaders. */
  readonly startQuic: (() => SupervisedChild) | null;
  /** Identities of the alternative partners in base58. */
  readonly partners: ReadonlySet<string>;
  /** Calls `close` when the process is killed. */
  readonly onKill: (close: () => void) => void;
}

/** As compose-routes.ts does it. */
function routesOf(options: GatewayLifeOptions, fastPath: FastPath): RouteTable {
  const { clock, log, network, service, node, partners, startQuic } = options;
  const addresses = new NodeAddresses({ nodes: node, clock, log, allowPrivate: false });
  const leaders = {
    slot: () => service.leaders().slot ?? null,
    leaderAt: (slot: bigint) => leaderNameAt(service.schedule, slot),
  };
  const openTpu = (config: Config["routes"][number]): TpuRoute =>
    new TpuRoute(config, {
      clock,
      log,
      leaders,
      addresses,
      partners: () => partners,
      readSeed: () => new Uint8Array(32),
      start: startQuic ?? undefined,
    });
  return new RouteTable((route) => openRoute(route, { clock, log, network, fastPath, openTpu }));
}

const codec = { decode: decodeBase58, encode: encodeBase58 };

/** As Store.open does it. */
async function openStore(options: GatewayLifeOptions): Promise<SubmissionStore> {
  const { driver, journalPath, journalCalls, isDurable, clock, log, onKill } = options;
  const durability = isDurable ? "durable" : "survives-kill";
  if (journalPath === null) return new SqlSubmissionStore(driver, codec, "node-1", durability);
  await replayJournal(journalPath, driver);
  const database = new SqlSubmissionStore(driver, codec, "", durability);
  if (isDurable) return database;
  const journal = new SubmissionJournal(journalPath, columns, journalCalls);
  onKill(() => journal.close());
  const onFailure = (error: unknown): void => log.warn(`journal: ${String(error)}`);
  return new JournaledSubmissionStore({ database, journal, clock, onFailure });
}

export class GatewayLife {
  readonly callers: MemoryCallers;
  readonly #hasLeaders: boolean;
  readonly #gateway: Gateway;
  readonly #pipeline: Pipeline;
  readonly #routes: RouteTable;
  readonly #fastPath: FastPath;
  readonly #tables: GatewayTables;
  readonly #tips: TipStatistics;
  readonly #wallMs: () => number;
  readonly #observeLandings: () => void;

  /** Settles when callers are served. */
  static async open(options: GatewayLifeOptions): Promise<GatewayLife> {
    const { clock, log, driver } = options;
    const keys = new SqlKeyStore(driver);
    // The disk may have failed between two of them.
    const known = new Set((await keys.keys()).map(({ id }) => id));
    const created = createdKeys.flatMap((each) => Object.values(each));
    for (const { key } of created) if (!known.has(key.id)) await keys.addKey(key);
    const fastPath = new FastPath(log, {
      handle: options.fastPath,
      nowMs: () => Number(clock.monotonicNs()) / 1e6,
    });
    const keyRing = new KeyRing(() => fastPath.forgetAll());
    const publicKeyStore = new SqlPublicKeyStore(driver);
    const publicKeys = new PublicKeys({
      store: publicKeyStore,
      apiKey: (id) => keyRing.get(id, clock.nowNs()),
      refresh: () => updates.refresh(),
      clock,
      log,
    });
    const updates: KeyUpdates = new KeyUpdates({
      clock,
      log,
      store: keys,
      keyRing,
      publicKeyStore,
      publicKeys,
    });
    const store = await openStore(options);
    await updates.refresh();
    const routes = routesOf(options, fastPath);
    const config = configOf(options.minimumTip, options.startQuic !== null);
    await routes.replace(config.routes);
    const nonces = await NonceService.open(
      {
        clock,
        log,
        node: options.node,
        store: new SqlManagedNonceStore(driver),
        keys: nonceKeys,
        check: new NativeCoSigningCheck(),
        encode: encodeBase58,
      },
      nonceLimits,
    );
    const landedTips = new SqlLandedTipStore(driver, codec);
    const tips = await TipStatistics.open({ clock, log, store: landedTips });
    const opened = { keyRing, publicKeys, store, routes, nonces, fastPath, tips };
    const life = new GatewayLife(options, opened);
    await life.#pipeline.restore();
    const server = {
      ...life.#gateway.serverOptions(new Set(endpointGroups)),
      listen: config.http?.listen ?? [],
      keepAliveSeconds,
      network: options.callers,
      fastPath,
    };
    await HttpServer.open(server, log);
    return life;
  }

  private constructor(
    {
      clock,
      log,
      relay,
      service,
      verifier,
      node,
      partners,
      callers,
      minimumTip,
      endedMax,
      startQuic,
    }: GatewayLifeOptions,
    opened: {
      readonly store: SubmissionStore;
      readonly keyRing: KeyRing;
      readonly publicKeys: PublicKeys;
      readonly routes: RouteTable;
      readonly nonces: NonceService;
      readonly fastPath: FastPath;
      readonly tips: TipStatistics;
    },
  ) {
    const { keyRing, publicKeys, store, routes, nonces, fastPath, tips } = opened;
    // The relay wakes its listener by an event of libuv; here the world does it after each step.
    let notify = (): void => {};
    const landingRelay = {
      watchSignatures: (signatures: readonly Uint8Array[]) => relay.watchSignatures(signatures),
      unwatchSignatures: (signatures: readonly Uint8Array[]) => relay.unwatchSignatures(signatures),
      drainLandings: () => relay.drainLandings(),
      onLandings: (listener: () => void) => {
        notify = listener;
      },
    };
    const landings = new LandingWatchList(landingRelay, log);
    const tracker = new PartnerTracker(() => service.leaders().slot ?? null);
    tracker.replaceSchedule(service.schedule);
    tracker.replaceMembers(partners);
    const tables = new GatewayTables(
      configOf(minimumTip, startQuic !== null),
      { tracker, apply: () => {} },
      fastPath,
    );
    const pipeline = new Pipeline(
      {
        clock,
        log,
        routes: () => routes.routes(),
        policy: () => tables.policy,
        store,
        landings,
        outcomes: node,
        nonces,
        landedTips: tips,
        leaders: () => service.leaders(),
        slotNs: () => service.slots.slotClock.now(clock.nowNs())?.slotNs ?? null,
        inspect: (wire) => tables.inspector.inspect(wire),
        submitted: (signature) => fastPath.note(signature),
        storeFailing: () => fastPath.forgetAll(),
      },
      { ...limits, endedMax },
    );
    const rates = new RateLimits(100);
    // The threads of the verifier run in real time, so that every check runs in this thread.
    const prompt = new PromptVerifier(
      {
        verify: async (wire) => verifier.verifyNow(wire),
        verifyNow: (wire) => verifier.verifyNow(wire),
        pending: 0,
      },
      clock,
    );
    this.#gateway = new Gateway(
      {
        clock,
        log,
        keys: keyRing,
        publicKeys,
        limits: {
          take: (key, nowNs) => {
            const verdict = rates.take(key.id, rateLimitOf(tables.config, key), nowNs);
            fastPath.allow(key.id, verdict.remaining);
            return verdict;
          },
        },
        inspector: { inspect: (wire) => tables.inspector.inspect(wire) },
        verifier: prompt,
        base58: { decode: decodeBase58, encode: encodeBase58 },
        submissions: pipeline,
        fastSends: {
          mayTake: (accountId) => pipeline.mayTake(accountId),
          isKnown: (signature) => pipeline.isKnown(signature),
          send: (wire) => fastPath.send(wire),
          abandoned: (taken) => fastPath.abandoned(taken),
        },
        bundleCommitments: new NodeBundleCommitments({ clock, reader: null }),
        signer: { sign: () => "", signDetached: () => "", keySet: "{}" },
        preflight: null,
        reads: { has: () => false, call: () => Promise.reject(new Error("expected no read")) },
        sockets: null,
        shreds: null,
        tipFloor: tips,
        tipHistory: tips.history,
        nonces,
        tracker,
        pages: [],
        slot: () => service.leaders().slot ?? null,
        inNextTurn: (action) => void clock.after(0, action),
      },
      tables.settings,
    );
    tables.setFastPathRules();
    this.callers = callers;
    this.#hasLeaders = startQuic !== null;
    this.#tables = tables;
    this.#tips = tips;
    this.#wallMs = () => Number(clock.nowNs() / 1_000_000n);
    this.#fastPath = fastPath;
    this.#pipeline = pipeline;
    this.#routes = routes;
    this.#observeLandings = () => notify();
  }

  /** The operator reloads the configuration. */
  reload(minimumTipLamports: number): void {
    const config = configOf(minimumTipLamports, this.#hasLeaders);
    this.#tables.prepare(config)();
    void this.#routes.replace(config.routes);
  }

  subscribe(...parameters: Parameters<Pipeline["subscribe"]>): () => void {
    return this.#pipeline.subscribe(...parameters);
  }

  /** Reports what the relay has found in its shreds. */
  observeLandings(): void {
    this.#observeLandings();
  }

  get counts(): PipelineSnapshot {
    return this.#pipeline.snapshot();
  }

  get shownTips(): ShownTips {
    const { size, snapshot } = this.#tips;
    return { counted: size, snapshot, wallMs: this.#wallMs() };
  }

  get fastPath(): FastPathSnapshot {
    return this.#fastPath.snapshot();
  }

  get routes(): readonly RouteSnapshot[] {
    return this.#routes.snapshots();
  }
}
