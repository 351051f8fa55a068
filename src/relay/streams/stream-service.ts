// Decoded streams: the gRPC listener, its calls, subscriptions on WebSockets, and who may open them.
//
// Created by src/app/open-service.ts if the section `streams` is configured. The gateway has the WebSockets. It decodes nothing itself: the
// relay's deshred thread does, for the filters of all subscribers together (stream-hub.ts).

import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import type { Config } from "../../core/configuration/configuration.ts";
import { streamConnectionsMax } from "../../core/configuration/connection-limits.ts";
import { DurationHistogram } from "../../core/duration-histogram.ts";
import { type GrpcRequest, GrpcServer } from "../../core/grpc/grpc-server.ts";
import type { GrpcStream } from "../../core/grpc/grpc-stream.ts";
import { HealthService } from "../../core/grpc/health.ts";
import { MessageWriter } from "../../core/grpc/protobuf.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import type { Logger } from "../../core/log.ts";
import type { TlsMaterial } from "../../core/tls-material.ts";
import { RelayStreams } from "../data-plane/relay-streams.ts";
import { DeshredCall, encodeDeshredUpdate } from "./deshred-call.ts";
import type { EndReason } from "./end-reasons.ts";
import { EntriesCall, entriesPath, SharedEntries } from "./entries-call.ts";
import type { FilterLimits } from "./filter-limits.ts";
import { type GapEncoder, gapEncoderOf } from "./gap-reports.ts";
import { geyserPaths } from "./geyser-messages.ts";
import { type ChainView, subscribeRefusal, unaryMethods } from "./geyser-unary.ts";
import { LookupTableFollower } from "./lookup-table-follower.ts";
import type { NodeCall } from "./lookup-table-node.ts";
import { RequestPaces } from "./request-paces.ts";
import { fromSlotOf } from "./resume.ts";
import { SharedMessages } from "./shared-messages.ts";
import { SocketEncoder } from "./socket-messages.ts";
import { type SocketHost, SocketStreams } from "./socket-streams.ts";
import type { ClientSocket } from "./socket-transport.ts";
import {
  authenticate,
  currentKey,
  hasScope,
  type StreamAccess,
  type StreamKey,
  tierFor,
} from "./stream-access.ts";
import { type StreamCall, StreamHub } from "./stream-hub.ts";
import { StreamRecords, type StreamSnapshot } from "./stream-records.ts";
import { StreamCounts, type StreamStatus } from "./stream-status.ts";
import type { StreamTransport } from "./stream-transport.ts";
import { type Dialect, Subscription } from "./subscription.ts";
import { SharedTransactions, TransactionCall } from "./transaction-call.ts";
import { preprocessed, shreder, shrederPaths } from "./transaction-dialects.ts";
import { type PushDestinations, type PushHost, TransactionPushes } from "./transaction-pushes.ts";

type StreamsConfig = NonNullable<Config["streams"]>;

/** src/gateway/http/tls-certificate.ts implements it. */
interface FollowedCertificate {
  readonly material: TlsMaterial;
  /** Why the present files are not used; null: they are. */
  readonly problem: string | null;
  onChange(listener: (material: TlsMaterial) => void): () => void;
  close(): void;
}

interface StreamServiceDependencies {
  readonly config: StreamsConfig;
  readonly streams: RelayStreams;
  /** Certificate of the listener, followed on disk; absent: without TLS. */
  readonly certificate?: FollowedCertificate | undefined;
  readonly access: StreamAccess;
  /** Default: streamConnectionsMax. */
  readonly connectionsMax?: number;
  readonly chain: ChainView;
  /** A read call of the node that has the address lookup tables; absent: no node is configured. */
  readonly callNode?: NodeCall | undefined;
  /** Destinations of accounts, for transaction pushes; absent: this service sells no shreds. */
  readonly destinations?: PushDestinations | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

interface OpenStream {
  readonly subscription: Subscription;
  readonly call: StreamCall;
  readonly peer: string;
}

/** A stream whose caller is known. */
interface NewStream {
  readonly transport: StreamTransport;
  readonly dialect: Dialect;
  readonly key: StreamKey;
  readonly peer: string;
  readonly encodeGap?: GapEncoder | undefined;
}

/** Services that health checks know. */
const serviceNames = [entriesPath, geyserPaths.subscribe, shrederPaths.transactions].map(
  (path) => path.split("/")[1] ?? "",
);
/** Revoked keys and changed tiers end streams within this time. */
const accessCheckMs = 250;
const pingMs = 10_000;
const keepAliveMs = 20_000;
const requestBytesMax = 4 << 20;
/** Callers without a key can hold connections, so one address gets a part of them. */
const connectionsPerPeerMax = 256;
const callsPerConnectionMax = 100;
/** Upper bounds of the delay, in seconds. */
const delayBounds = [
  0.0001, 0.0002, 0.0004, 0.0007, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2,
] as const;

export class StreamService implements SocketHost, PushHost {
  /** null: accounts have no destinations. */
  readonly pushes: TransactionPushes | null;
  readonly #dependencies: StreamServiceDependencies;
  readonly hub: StreamHub;
  readonly socketEncoder = new SocketEncoder();
  readonly #streams = new Set<OpenStream>();
  readonly #counts = new StreamCounts();
  readonly #records = new StreamRecords();
  readonly #paces: RequestPaces;
  readonly #delays = new DurationHistogram(delayBounds);
  readonly #deshredMessages = new SharedMessages(encodeDeshredUpdate);
  readonly #entriesEncoder = new SharedEntries();
  readonly #transactionEncoders = {
    preprocessed: new SharedTransactions(preprocessed),
    transactions: new SharedTransactions(shreder),
  } as const;
  readonly #timers: readonly Timer[];
  readonly #lookupTables: LookupTableFollower | null;
  #config: StreamsConfig;
  readonly #health = new HealthService(serviceNames);
  #server: GrpcServer | undefined;

  constructor(dependencies: StreamServiceDependencies) {
    const { config, streams, callNode, destinations, clock, log } = dependencies;
    const tables = streams.lookupTables;
    this.#dependencies = dependencies;
    this.#config = config;
    this.#paces = new RequestPaces(clock, () => this.#config.subscriptionsPerAccountMax);
    const limits = RelayStreams.limits();
    streams.setHistoryBytes(config.replayBytes);
    this.hub = new StreamHub({ streams, limits, hasHistory: config.replayBytes > 0, clock, log });
    this.#lookupTables = callNode
      ? new LookupTableFollower({ tables, call: callNode, clock, log })
      : null;
    const settings = () => this.#config.push;
    this.pushes = destinations
      ? new TransactionPushes({ host: this, destinations, settings, randomBytes, clock, log })
      : null;
    this.#timers = [
      clock.every(accessCheckMs, () => this.#checkAccess()),
      clock.every(pingMs, () => {
        for (const { call } of this.#streams) call.ping();
        const open = [...this.#streams].map(({ subscription }) => subscription.holder.accountId);
        this.#paces.prune(new Set(open));
      }),
    ];
  }

  /** Opens the listener and the sockets of pushes. Throws ShredwayError. */
  async start(): Promise<void> {
    this.pushes?.open();
    const { clock, log, certificate, chain } = this.#dependencies;
    const server = await GrpcServer.open({
      listen: parseEndpoint(this.#config.listen, { allowPortZero: true }),
      methods: {
        ...this.#health.methods,
        ...this.#authenticated({
          ...unaryMethods(chain),
          [geyserPaths.subscribeReplayInfo]: (request) => this.#replayInfo(request),
        }),
      },
      streams: {
        ...this.#health.streams,
        [entriesPath]: (call) => this.#subscribe(call, "entries"),
        [shrederPaths.entries]: (call) => this.#subscribe(call, "entries"),
        [shrederPaths.transactions]: (call) => this.#subscribe(call, "transactions"),
        [geyserPaths.subscribeDeshred]: (call) => this.#subscribe(call, "deshred"),
        [geyserPaths.subscribePreprocessed]: (call) => this.#subscribe(call, "preprocessed"),
        [geyserPaths.subscribe]: () => {
          throw subscribeRefusal();
        },
      },
      limits: {
        connections: this.#dependencies.connectionsMax ?? streamConnectionsMax,
        connectionsPerPeer: connectionsPerPeerMax,
        callsPerConnection: callsPerConnectionMax,
        streamRequestBytes: requestBytesMax,
      },
      keepAliveMs,
      tls: certificate?.material,
      clock,
      onOutcome: (outcome) => this.#counts.ended(outcome),
      report: (error) => log.error({ err: error }, "streams: internal error"),
    });
    this.#server = server;
    certificate?.onChange((material) => server.setCertificate(material));
    log.info(`streams: gRPC at ${server.address}`);
    if (!this.#lookupTables) {
      log.info(
        "streams: address lookup tables are not resolved, because solana.rpc is not configured",
      );
    }
  }

  /** Its address with the real port; empty before `start`. */
  get address(): string {
    return this.#server?.address ?? "";
  }

  /** Why a renewed certificate is not used; null: no problem. */
  get certificateProblem(): string | null {
    return this.#dependencies.certificate?.problem ?? null;
  }

  status(): StreamStatus {
    const { connections = 0, refusedConnections = 0, refusedCalls = 0 } = this.#server ?? {};
    const open = [...this.#streams].map(({ subscription }) => subscription);
    const filters = this.hub.used();
    const delays = this.#delays;
    const lookupTables = this.#lookupTables?.status() ?? null;
    const { bytes, replayed } = this.#dependencies.streams.history();
    const { replays } = this.hub;
    const history = { bytes, bytesMax: this.#config.replayBytes, replays, replayed };
    return this.#counts.status({
      open,
      filters,
      connections,
      refusedConnections,
      refusedOpenings: { account: this.#paces.refusedOpenings, address: refusedCalls },
      delays,
      history,
      lookupTables,
    });
  }

  /** Every open stream, and the last ends of each account. */
  snapshot(): StreamSnapshot {
    const filters = this.hub.filterCounts();
    const calls = new Map([...this.#streams].map(({ subscription, call }) => [subscription, call]));
    return this.#records.snapshot(this.#streams, (subscription) => {
      const call = calls.get(subscription);
      return (call && filters.get(call)) ?? 0;
    });
  }

  /** Applies the limits of a reload at once, and returns the keys that need a restart. */
  apply(config: StreamsConfig | undefined): readonly string[] {
    const before = this.#config;
    if (!config) return ["streams"];
    const { listen, tls, replayBytes } = before;
    const { from, fromIpv6 } = before.push;
    this.#config = {
      ...config,
      listen,
      replayBytes,
      ...(tls && { tls }),
      push: { ...config.push, from, fromIpv6 },
    };
    return [
      ...(["listen", "tls", "replayBytes"] as const)
        .filter((key) => !isDeepStrictEqual(before[key], config[key]))
        .map((key) => `streams.${key}`),
      ...(["from", "fromIpv6"] as const)
        .filter((key) => before.push[key] !== config.push[key])
        .map((key) => `streams.push.${key}`),
    ];
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel();
    for (const { subscription } of this.#streams) {
      subscription.end("closing", "UNAVAILABLE", "closing: the service is shutting down");
    }
    this.pushes?.close();
    this.#health.close();
    this.#server?.close();
    this.#dependencies.certificate?.close();
    this.hub.close();
    this.#lookupTables?.close();
  }

  /** Every call needs a key with the scope, and counts against the rate of its account. */
  #authenticated(methods: ReturnType<typeof unaryMethods>): ReturnType<typeof unaryMethods> {
    const { access } = this.#dependencies;
    return Object.fromEntries(
      Object.entries(methods).map(([path, handle]) => [
        path,
        (request) => {
          this.#paces.countCall(authenticate(access, request).accountId);
          return handle(request);
        },
      ]),
    );
  }

  /** Subscriptions of a WebSocket whose handshake had this key. */
  openSocket(socket: ClientSocket, caller: { keyId: string; peer: string }): SocketStreams {
    return new SocketStreams(this, socket, caller);
  }

  openFor(
    { keyId, peer }: { readonly keyId: string; readonly peer: string },
    stream: Pick<NewStream, "transport" | "dialect">,
    callOf: (subscription: Subscription) => StreamCall,
  ): void {
    const key = currentKey(this.#dependencies.access, keyId, peer);
    this.#open({ ...stream, key, peer }, callOf);
  }

  openPush(
    key: StreamKey,
    { transport, address, encodeGap }: Parameters<PushHost["openPush"]>[1],
    callOf: (subscription: Subscription) => StreamCall,
  ): void {
    this.#open({ transport, dialect: "push", key, peer: address, encodeGap }, callOf);
  }

  filterLimits(): FilterLimits {
    return {
      filtersPerSubscription: this.#config.filtersMax,
      accountsPerSubscription: this.#config.accountsMax,
    };
  }

  /** Throws GrpcError. */
  #subscribe(call: GrpcStream, dialect: Dialect): void {
    const key = authenticate(this.#dependencies.access, call);
    this.#paces.countOpening(key.accountId);
    const { peer } = call;
    const encodeGap = gapEncoderOf(call.headers["x-on-lag"], dialect);
    const hasHistory = this.#config.replayBytes > 0;
    const fromSlot = fromSlotOf(call.headers["x-from-slot"], dialect, hasHistory);
    this.#open({ transport: call, dialect, key, peer, encodeGap }, (subscription) =>
      this.#openCall(call, { subscription, dialect, fromSlot }),
    );
  }

  /** The first slot that the caller's streams can begin with; absent: none. Throws GrpcError. */
  #replayInfo(request: GrpcRequest): Uint8Array {
    const { access, streams } = this.#dependencies;
    const tier = this.#tierOf(authenticate(access, request));
    return new MessageWriter().uint(1, streams.history().oldest(tier) ?? 0n).finish();
  }

  /** Throws GrpcError. */
  #open(
    { transport, dialect, key, peer, encodeGap }: NewStream,
    callOf: (subscription: Subscription) => StreamCall,
  ): void {
    const { clock } = this.#dependencies;
    const tier = this.#tierOf(key);
    this.#checkRoom(key);
    const subscription = new Subscription({
      call: transport,
      dialect,
      holder: { keyId: key.id, accountId: key.accountId, accountName: key.accountName },
      tier,
      queueBytesMax: () => this.#config.queueBytes,
      encodeGap,
      delays: this.#delays,
      clock,
      onEnd: (reason) => this.#ended(open, reason),
    });
    const open: OpenStream = { subscription, peer, call: callOf(subscription) };
    this.#streams.add(open);
  }

  #openCall(
    call: GrpcStream,
    {
      subscription,
      dialect,
      fromSlot,
    }: { subscription: Subscription; dialect: Dialect; fromSlot: bigint | undefined },
  ): StreamCall {
    const { hub } = this;
    const pace = this.#paces.paceOf(subscription.holder.accountId, () => {
      subscription.delayedRequests++;
    });
    if (dialect === "entries") {
      return new EntriesCall({ call, subscription, hub, encoder: this.#entriesEncoder, pace });
    }
    const limits = () => this.filterLimits();
    if (dialect === "preprocessed" || dialect === "transactions") {
      const encoder = this.#transactionEncoders[dialect];
      return new TransactionCall({ call, subscription, hub, encoder, limits, pace, fromSlot });
    }
    const messages = this.#deshredMessages;
    return new DeshredCall({ call, subscription, hub, messages, limits, pace, fromSlot });
  }

  /** Throws GrpcError. */
  #tierOf(key: StreamKey): string {
    const { access, streams } = this.#dependencies;
    return tierFor(access, key, { fallback: this.#config.tier, running: streams.tiers });
  }

  #checkRoom({ accountId }: StreamKey): void {
    const { subscriptionsMax, subscriptionsPerAccountMax } = this.#config;
    if (this.#streams.size >= subscriptionsMax) {
      throw new GrpcError(
        "RESOURCE_EXHAUSTED",
        `streams of all accounts: expected at most ${subscriptionsMax} at once; retry later`,
      );
    }
    const own = [...this.#streams].filter(
      ({ subscription }) => subscription.holder.accountId === accountId,
    ).length;
    if (own < subscriptionsPerAccountMax) return;
    throw new GrpcError(
      "RESOURCE_EXHAUSTED",
      `streams of this account: expected at most ${subscriptionsPerAccountMax} at once, got one more; close one first`,
    );
  }

  #ended(open: OpenStream, reason: EndReason): void {
    this.#streams.delete(open);
    open.call.close();
    this.#counts.closed(open.subscription, reason);
    this.#records.ended(open, reason, this.#dependencies.clock.nowNs());
  }

  #checkAccess(): void {
    const { access } = this.#dependencies;
    this.pushes?.check();
    for (const { subscription, peer } of this.#streams) {
      const caller = subscription.dialect === "push" ? null : peer;
      const key = access.current(subscription.holder.keyId, caller);
      if (!key || !hasScope(key)) {
        const detail = "revoked: the API key is not valid any more, or has lost the scope stream";
        subscription.end("revoked", "UNAUTHENTICATED", detail);
        continue;
      }
      const tier = access.tierOf(key.accountId) ?? this.#config.tier ?? null;
      if (tier === subscription.tier) continue;
      const detail = `tier_changed: the account's tier is ${tier ?? "none"} now; subscribe again`;
      subscription.end("tier_changed", tier === null ? "PERMISSION_DENIED" : "UNAVAILABLE", detail);
    }
  }
}
