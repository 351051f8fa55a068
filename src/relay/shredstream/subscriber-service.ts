// This relay as a block engine: subscribers with the stock proxy of Jito's ShredStream get its shreds.
//
// Created by relay-service.ts if the section `shredstream` is configured. It answers the calls of
// auth.AuthService and shredstream.Shredstream; the shreds leave by the table of destinations.

import type { Server } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { destinationRefusal } from "../../core/addresses/address-classes.ts";
import {
  formatAddress,
  formatEndpoint,
  parseAddress,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import type { Config } from "../../core/configuration/configuration.ts";
import { type GrpcOutcome, type GrpcRequest, GrpcServer } from "../../core/grpc/grpc-server.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import type { TlsMaterial } from "../../core/tls-material.ts";
import type { Destination } from "../data-plane/tables.ts";
import {
  decodeChallengeRequest,
  decodeHeartbeat,
  decodeRefreshRequest,
  decodeTokensRequest,
  encodeChallengeResponse,
  encodeHeartbeatResponse,
  encodeRefreshResponse,
  encodeTokensResponse,
  methodPaths,
} from "./messages.ts";
import { type AccountAddresses, type Subscriber, SubscriberLeases } from "./subscriber-leases.ts";
import { SubscriberSessions } from "./subscriber-sessions.ts";
import { callOf, RefusalCounts, type SubscriberStatus } from "./subscriber-status.ts";

type SubscribersConfig = NonNullable<Config["shredstream"]>;

/** src/gateway/http/tls-certificate.ts implements it. */
interface FollowedCertificate {
  readonly material: TlsMaterial;
  /** Why the present files are not used; null: they are. */
  readonly problem: string | null;
  onChange(listener: (material: TlsMaterial) => void): () => void;
  close(): void;
}

interface SubscriberServiceDependencies {
  readonly config: SubscribersConfig;
  /** Listening socket at `config.listen`, to take over; absent: a new one is opened. */
  readonly socket?: Server | undefined;
  /** Certificate of the listener, followed on disk; absent: without TLS. */
  readonly certificate?: FollowedCertificate | undefined;
  /** Default: the server's. */
  readonly connectionsMax?: number | undefined;
  readonly allowPrivate: () => boolean;
  /** Whether the address is one of the relay itself. */
  readonly isOwn: (address: string) => boolean;
  /** Throws if the relay rejects the destinations. */
  readonly publish: (destinations: readonly Destination[]) => void;
  /** Destinations and limit of an account; absent: no account subscribes. */
  readonly addressesOf?: ((accountId: string) => AccountAddresses) | undefined;
  readonly randomBytes: (count: number) => Buffer;
  readonly clock: Clock;
  readonly log: Logger;
}

const regionsMax = 16;
const regionLengthMax = 64;
const refusalLogMs = 60_000;

export class SubscriberService {
  readonly #dependencies: SubscriberServiceDependencies;
  readonly #sessions: SubscriberSessions;
  readonly #leases: SubscriberLeases;
  readonly #refusals = new RefusalCounts();
  readonly #refusalWarning: RareWarning;
  #config: SubscribersConfig;
  /** Subscribers by public key: those of the configuration and of accounts. */
  #subscribers: ReadonlyMap<string, Subscriber>;
  #accounts: readonly Subscriber[] = [];
  #server: GrpcServer | undefined;

  constructor(dependencies: SubscriberServiceDependencies) {
    const { config, clock, randomBytes, addressesOf, log } = dependencies;
    this.#dependencies = dependencies;
    this.#config = config;
    this.#subscribers = subscribersOf(config, this.#accounts);
    const isRegistered = (address: string) => this.#subscribers.has(address);
    this.#sessions = new SubscriberSessions({ clock, randomBytes, isRegistered });
    const publish = () => dependencies.publish(this.#leases.destinationsOf(this.#subscribers));
    this.#leases = new SubscriberLeases({ clock, publish, addressesOf, log });
    this.#refusalWarning = new RareWarning({ clock, log }, refusalLogMs);
  }

  /** Opens the listener. Throws ShredwayError "http_open". */
  async start(): Promise<void> {
    const { clock, log, certificate, socket, connectionsMax } = this.#dependencies;
    const { listen } = this.#config;
    const server = await GrpcServer.open({
      listen: parseEndpoint(listen, { allowPortZero: true }),
      socket,
      methods: {
        [methodPaths.challenge]: ({ message }) =>
          encodeChallengeResponse(this.#sessions.challenge(decodeChallengeRequest(message))),
        [methodPaths.tokens]: ({ message }) =>
          encodeTokensResponse(this.#sessions.tokens(decodeTokensRequest(message))),
        [methodPaths.refresh]: ({ message }) =>
          encodeRefreshResponse(this.#sessions.refresh(decodeRefreshRequest(message))),
        [methodPaths.heartbeat]: (request) => this.#heartbeat(request),
      },
      ...(connectionsMax !== undefined && { limits: { connections: connectionsMax } }),
      tls: certificate?.material,
      clock,
      onOutcome: (outcome) => this.#record(outcome),
      report: (error) => log.error({ err: error }, "shredstream: internal error"),
    });
    this.#server = server;
    certificate?.onChange((material) => server.setCertificate(material));
    if (this.#subscribers.size === 0) {
      log.warn(
        "shredstream.subscribers is empty: only proxies with public keys that accounts register can subscribe",
      );
    }
    log.info(`shredstream: block engine for subscribers at ${server.address}`);
  }

  /** Its address with the real port; empty before `start`. */
  get address(): string {
    return this.#server?.address ?? "";
  }

  status(): SubscriberStatus {
    const { connections = 0, refusedConnections = 0 } = this.#server ?? {};
    return {
      address: this.address,
      connections,
      refusedConnections,
      leases: this.#leases.countByTier(),
      leaseEvents: this.#leases.counts,
      refusals: this.#refusals.all(),
      problem: this.#dependencies.certificate?.problem ?? null,
    };
  }

  /**
   * Applies the subscribers of a reload at once, and returns the keys that need a restart. `undefined`:
   * the section was removed, so nobody may subscribe any more. Throws ShredwayError if the relay rejects
   * the destinations; then nothing changed.
   */
  apply(config: SubscribersConfig | undefined): readonly string[] {
    const before = this.#config;
    const restart = (["listen", "tls"] as const)
      .filter((key) => !isDeepStrictEqual(before[key], config?.[key]))
      .map((key) => `shredstream.${key}`);
    const { ttlSeconds } = config ?? before;
    const next = { ...before, ttlSeconds, subscribers: config?.subscribers ?? [] };
    this.#replace(subscribersOf(next, this.#accounts));
    this.#config = next;
    return restart;
  }

  /**
   * Replaces the subscribers of accounts. A public key of the configuration keeps its settings there. Throws
   * ShredwayError if the relay rejects the destinations; they apply with the next change then.
   */
  setAccountSubscribers(accounts: readonly Subscriber[]): void {
    this.#accounts = accounts;
    this.#replace(subscribersOf(this.#config, accounts));
  }

  /** Number of addresses that the proxies of an account use now. */
  leasesOf(accountId: string): number {
    return this.#leases.countOfAccount(accountId);
  }

  #replace(subscribers: ReadonlyMap<string, Subscriber>): void {
    this.#dependencies.publish(this.#leases.destinationsOf(subscribers));
    this.#subscribers = subscribers;
    this.#leases.replace(subscribers);
    this.#sessions.forgetRemoved();
  }

  close(): void {
    this.#server?.close();
    this.#dependencies.certificate?.close();
    this.#leases.close();
  }

  /** Scanners call unknown methods; only refusals of known ones are of interest in the log. */
  #record({ path, peer, status, detail }: GrpcOutcome): void {
    this.#refusals.count({ path, status });
    const call = callOf(path);
    if (status === "OK" || call === "unknown") return;
    this.#refusalWarning.give(
      () => `shredstream: ${call} of ${peer} refused: ${status}: ${detail}`,
    );
  }

  #heartbeat({ message, peer, headers }: GrpcRequest): Uint8Array {
    const token = /^Bearer (\S+)$/.exec(headers.authorization ?? "")?.[1] ?? "";
    const subscriber = this.#subscribers.get(this.#sessions.subscriberOf(token));
    if (!subscriber) throw new GrpcError("PERMISSION_DENIED", "public key is not registered");
    if (subscriber.tier === null) {
      throw new GrpcError(
        "PERMISSION_DENIED",
        "the account of this public key has no tier; register tips for shreds first",
      );
    }
    const { ip, port, regions } = decodeHeartbeat(message);
    const bytes = addressOf(ip);
    if (formatAddress(bytes) !== peer) {
      throw new GrpcError(
        "INVALID_ARGUMENT",
        `socket.ip: expected ${peer}, the address of this connection, got ${formatAddress(bytes)}`,
      );
    }
    if (port < 1n || port > 65_535n) {
      throw new GrpcError(
        "INVALID_ARGUMENT",
        `socket.port: expected 1 to 65535, got ${BigInt.asIntN(64, port)}`,
      );
    }
    if (regions.length > regionsMax || regions.some(({ length }) => length > regionLengthMax)) {
      throw new GrpcError(
        "INVALID_ARGUMENT",
        `regions: expected at most ${regionsMax} names of ${regionLengthMax} characters, got ${regions.length}`,
      );
    }
    const { allowPrivate, isOwn } = this.#dependencies;
    const address = formatEndpoint({ bytes, port: Number(port) });
    const refusal = destinationRefusal(bytes, allowPrivate());
    if (refusal !== undefined) throw new GrpcError("INVALID_ARGUMENT", `socket.ip: ${refusal}`);
    if (isOwn(address)) {
      throw new GrpcError("INVALID_ARGUMENT", `${address} is a listener of the relay itself`);
    }
    const ttlMs = this.#config.ttlSeconds * 1000;
    this.#leases.renew(subscriber, address, ttlMs);
    return encodeHeartbeatResponse(ttlMs);
  }
}

function addressOf(ip: string): Uint8Array {
  try {
    return parseAddress(ip);
  } catch {
    throw new GrpcError("INVALID_ARGUMENT", "socket.ip: expected an IP address");
  }
}

/** A public key of the configuration is not one of an account. */
function subscribersOf(
  { subscribers }: SubscribersConfig,
  accounts: readonly Subscriber[],
): ReadonlyMap<string, Subscriber> {
  const all: readonly Subscriber[] = [...accounts, ...subscribers];
  return new Map(all.map((subscriber) => [subscriber.publicKey, subscriber]));
}
