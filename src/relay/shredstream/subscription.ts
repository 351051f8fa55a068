// A subscription to the shreds of a block engine: authentication, heartbeats, renewal, recovery.
//
// Created by shredstream-sources.ts, one for each source of kind "shredstream". The shreds arrive on the
// relay's UDP port; nothing here handles a packet. Every failure is followed by a delay that grows.

import { destinationRefusal } from "../../core/addresses/address-classes.ts";
import { formatAddress, formatEndpoint, parseAddress } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { FailureStreak } from "../../core/failure-streak.ts";
import { GrpcChannel } from "../../core/grpc/grpc-channel.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import type { Logger } from "../../core/log.ts";
import { BackOff } from "./back-off.ts";
import {
  authenticate,
  refreshAccessToken,
  type SubscriberKey,
  sendHeartbeat,
} from "./block-engine.ts";
import type { Token, Tokens } from "./messages.ts";
import type { SubscriptionEvent, SubscriptionStatus } from "./subscription-status.ts";

export interface SubscriptionSettings {
  /** Name of the source. */
  readonly name: string;
  /** "http://host:port" or "https://host:port" */
  readonly url: string;
  /** The same for the authentication. */
  readonly authUrl: string;
  readonly key: SubscriberKey;
  readonly regions: readonly string[];
  /** UDP port of the relay. */
  readonly port: number;
  /** Address of this machine as the block engine sees it; absent: that of the connection. */
  readonly publicAddress?: string | undefined;
  /** Address family of the UDP port; absent: both. */
  readonly family?: 4 | 6 | undefined;
}

interface SubscriptionDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  /** Number of packets of this source so far; undefined: the relay is closed. */
  readonly countPackets: () => bigint | undefined;
  /** 0 to 1. */
  readonly random: () => number;
  /** Certificates in PEM form that replace the roots of Node.js. */
  readonly certificateAuthorities?: string | undefined;
}

const connectTimeoutMs = 10_000;
const reconnectMs = { firstMs: 1000, maxMs: 60_000 } as const;
const heartbeatRetryMs = { firstMs: 1000, maxMs: 10_000 } as const;
const refreshRetryMs = { firstMs: 5000, maxMs: 60_000 } as const;
/** After an error that only the operator can correct. */
const rejectedMs = 300_000;
const silenceMs = 30_000;
/** A subscription that loses this many heartbeats in a row starts again. */
const heartbeatFailuresMax = 3;
const heartbeatIntervalMs = { least: 1000, most: 300_000 } as const;
/** A token is renewed this long before it expires, or after two thirds of a short life. */
const renewBeforeMs = 300_000;
const renewIntervalMs = { least: 10_000, most: 24 * 3_600_000 } as const;
const logEvery = 10;

/** The engine may have forgotten the subscriber. */
class Silence extends Error {}

/** Times of the next actions on the monotonic clock, in milliseconds. */
interface Agenda {
  heartbeatMs: number;
  renewMs: number;
  silenceMs: number;
}

export class Subscription {
  readonly settings: SubscriptionSettings;
  readonly #dependencies: SubscriptionDependencies;
  readonly #stop = new AbortController();
  readonly #reconnect: BackOff;
  readonly #failures = new FailureStreak(logEvery);
  /** Separate, because heartbeats may succeed while renewals fail. */
  readonly #renewalFailures = new FailureStreak(logEvery);
  #channels: readonly GrpcChannel[] = [];
  #status: SubscriptionStatus;
  #warnedAddress = "";

  constructor(settings: SubscriptionSettings, dependencies: SubscriptionDependencies) {
    this.settings = settings;
    this.#dependencies = dependencies;
    this.#reconnect = new BackOff({ ...reconnectMs, random: dependencies.random });
    this.#status = {
      name: settings.name,
      state: "starting",
      host: new URL(settings.url).host,
      target: null,
      problem: null,
      lastHeartbeatNs: null,
      ttlMs: null,
      counts: {
        authentication: 0,
        authentication_failure: 0,
        refresh: 0,
        refresh_failure: 0,
        heartbeat: 0,
        heartbeat_failure: 0,
        silence: 0,
      },
    };
  }

  get status(): SubscriptionStatus {
    return this.#status;
  }

  /** Runs until `close`. Call it once. */
  start(): void {
    void this.#run();
  }

  /** Ends all calls at once. Idempotent. */
  close(): void {
    this.#stop.abort();
    this.#closeChannels();
    this.#change({ state: "stopped" });
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const packetsBefore = this.#dependencies.countPackets();
      let delayMs = 0;
      try {
        await this.#subscribe(signal);
      } catch (error) {
        const hasReceived = this.#dependencies.countPackets() !== packetsBefore;
        if (hasReceived) this.#reconnect.reset();
        if (!signal.aborted) delayMs = this.#failed(error);
      } finally {
        this.#closeChannels();
      }
      await this.#dependencies.clock.sleep(delayMs, signal);
    }
  }

  /** One connection: settles when the subscription is closed, rejects when it must start again. */
  async #subscribe(signal: AbortSignal): Promise<void> {
    const { url, authUrl } = this.settings;
    const engine = this.#openChannel(url);
    const auth = authUrl === url ? engine : this.#openChannel(authUrl);
    this.#channels = [engine, auth];
    let tokens = await this.#authenticate(auth);
    this.#renewalFailures.end();
    const agenda = {
      heartbeatMs: this.#nowMs(),
      renewMs: this.#renewAt(tokens),
      silenceMs: this.#nowMs() + silenceMs,
    };
    const retry = this.#backOff(heartbeatRetryMs);
    const refreshRetry = this.#backOff(refreshRetryMs);
    let packets = this.#dependencies.countPackets();
    while (await this.#reaches(agenda, signal)) {
      const nowMs = this.#nowMs();
      if (agenda.silenceMs <= nowMs) {
        packets = this.#checkSilence(packets);
        agenda.silenceMs = nowMs + silenceMs;
      } else if (agenda.renewMs <= nowMs) {
        try {
          tokens = await this.#renew(auth, tokens);
          agenda.renewMs = this.#renewAt(tokens);
          refreshRetry.reset();
          this.#renewalFailures.end();
        } catch (error) {
          agenda.renewMs = this.#nowMs() + refreshRetry.next();
          this.#renewalFailed(messageOf(error));
        }
      } else {
        try {
          agenda.heartbeatMs = this.#nowMs() + (await this.#heartbeat(engine, tokens.access));
          retry.reset();
        } catch (error) {
          agenda.heartbeatMs = this.#nowMs() + retry.next();
          if (retry.failures >= heartbeatFailuresMax || !isTransient(error)) throw error;
        }
      }
    }
  }

  /** Waits for the first action of the agenda; false: closed. */
  async #reaches(agenda: Agenda, signal: AbortSignal): Promise<boolean> {
    const due = Math.min(agenda.heartbeatMs, agenda.renewMs, agenda.silenceMs);
    const delayMs = due - this.#nowMs();
    if (delayMs > 0) await this.#dependencies.clock.sleep(delayMs, signal);
    return !signal.aborted;
  }

  async #authenticate(auth: GrpcChannel): Promise<Tokens> {
    return this.#counted("authentication", () => authenticate(auth, this.settings.key));
  }

  /** New tokens by the refresh token, or by a new challenge if that expires soon or is refused. */
  async #renew(auth: GrpcChannel, { refresh }: Tokens): Promise<Tokens> {
    if (refresh.expiresMs - this.#wallMs() < renewBeforeMs) return this.#authenticate(auth);
    try {
      const access = await this.#counted("refresh", () => refreshAccessToken(auth, refresh));
      return { access, refresh };
    } catch (error) {
      if (isTransient(error)) throw error;
      return this.#authenticate(auth);
    }
  }

  /** Settles with the time in milliseconds until the next heartbeat. */
  async #heartbeat(engine: GrpcChannel, access: Token): Promise<number> {
    const { regions, port, publicAddress } = this.settings;
    const ttlMs = await this.#counted("heartbeat", async () => {
      const ip = publicAddress ?? (await this.#connectedAddress(engine));
      this.#change({ target: formatEndpoint({ bytes: parseAddress(ip), port }) });
      return sendHeartbeat(engine, access, { ip, port: BigInt(port), regions });
    });
    const { least, most } = heartbeatIntervalMs;
    const intervalMs = Math.min(most, Math.max(least, Math.floor(ttlMs / 3)));
    if (this.#status.state !== "subscribed") {
      this.#dependencies.log.info(
        `shredstream ${this.settings.name}: subscribed at ${this.#status.host}: shreds to ${this.#status.target}, ` +
          `regions ${regions.join(", ")}, heartbeat every ${intervalMs / 1000} s`,
      );
    }
    this.#failures.end();
    this.#change({
      state: "subscribed",
      problem: null,
      ttlMs,
      lastHeartbeatNs: this.#dependencies.clock.nowNs(),
    });
    return intervalMs;
  }

  async #connectedAddress(engine: GrpcChannel): Promise<string> {
    const bytes = parseAddress(await engine.connect(connectTimeoutMs));
    const address = formatAddress(bytes);
    const refusal = destinationRefusal(bytes, false);
    if (refusal !== undefined && this.#warnedAddress !== address) {
      this.#warnedAddress = address;
      this.#dependencies.log.warn(
        `shredstream ${this.settings.name}: ${refusal}; a block engine on the internet cannot send there. ` +
          "Set shredstream.publicAddress of this source",
      );
    }
    return address;
  }

  #checkSilence(before: bigint | undefined): bigint | undefined {
    const packets = this.#dependencies.countPackets();
    if (packets !== before) {
      this.#reconnect.reset();
      return packets;
    }
    this.#count("silence");
    throw new Silence(
      `no shred for ${silenceMs / 1000} s at ${this.#status.target ?? "this port"} although the heartbeat is accepted`,
    );
  }

  /** Logs the failure and returns the delay until the next attempt. */
  #failed(error: unknown): number {
    const { name, key } = this.settings;
    const isRejected = error instanceof GrpcError && rejections.has(error.status);
    const delayMs = isRejected ? rejectedMs : this.#reconnect.next();
    const problem = messageOf(error);
    const state = error instanceof Silence ? "silent" : isRejected ? "rejected" : "failing";
    this.#change({ state, problem });
    const { log } = this.#dependencies;
    if (!this.#failures.add(problem)) return delayMs;
    if (isRejected) {
      log.error(
        `shredstream ${name}: ${this.#status.host} rejects this configuration: ${problem}. Expected a public key ` +
          `that it approved (${key.address}), an address of this machine (${this.#status.target ?? "not sent yet"}) ` +
          `and its regions; correct the source and reload. Next attempt in ${delayMs / 1000} s`,
      );
    } else {
      log.warn(
        `shredstream ${name}: ${this.#status.host}: ${problem}; next attempt in ${delayMs / 1000} s`,
      );
    }
    return delayMs;
  }

  #renewalFailed(problem: string): void {
    if (!this.#renewalFailures.add(problem)) return;
    this.#dependencies.log.warn(
      `shredstream ${this.settings.name}: the access token was not renewed: ${problem}`,
    );
  }

  /** The time of the next renewal on the monotonic clock. */
  #renewAt({ access, refresh }: Tokens): number {
    const lifeMs = Math.min(access.expiresMs, refresh.expiresMs) - this.#wallMs();
    const delayMs = lifeMs - Math.min(renewBeforeMs, lifeMs / 3);
    const { least, most } = renewIntervalMs;
    return this.#nowMs() + Math.min(most, Math.max(least, delayMs));
  }

  async #counted<T>(
    event: "authentication" | "refresh" | "heartbeat",
    action: () => Promise<T>,
  ): Promise<T> {
    try {
      const result = await action();
      this.#count(event);
      return result;
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#count(`${event}_failure`);
      throw error;
    }
  }

  #count(event: SubscriptionEvent): void {
    const { counts } = this.#status;
    this.#change({ counts: { ...counts, [event]: counts[event] + 1 } });
  }

  #change(changes: Partial<SubscriptionStatus>): void {
    if (this.#status.state !== "stopped") this.#status = { ...this.#status, ...changes };
  }

  #openChannel(url: string): GrpcChannel {
    const { clock, certificateAuthorities } = this.#dependencies;
    return new GrpcChannel({ url, clock, certificateAuthorities, family: this.settings.family });
  }

  #closeChannels(): void {
    for (const channel of this.#channels) channel.close();
    this.#channels = [];
  }

  #backOff(delays: { firstMs: number; maxMs: number }): BackOff {
    return new BackOff({ ...delays, random: this.#dependencies.random });
  }

  #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / 1_000_000n);
  }

  #wallMs(): number {
    return Number(this.#dependencies.clock.nowNs() / 1_000_000n);
  }
}

/** Errors that repetition does not cure. */
const rejections: ReadonlySet<string> = new Set([
  "INVALID_ARGUMENT",
  "PERMISSION_DENIED",
  "UNIMPLEMENTED",
]);

/** Whether the same call may succeed with the same tokens. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof GrpcError)) return false;
  return !rejections.has(error.status) && error.status !== "UNAUTHENTICATED";
}
