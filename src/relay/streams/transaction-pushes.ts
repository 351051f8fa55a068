// Transaction pushes: matching transactions as UDP datagrams to a verified destination of an account.
//
// Created by stream-service.ts and called by the gateway's methods. A destination has at most one push, which
// exists under a lease in memory: without renewal it ends. It also ends when its destination is not active
// any more; stream-service.ts ends it for the key and the tier, as every stream.

import { isDeepStrictEqual } from "node:util";
import type { Clock, Timer } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { Logger } from "../../core/log.ts";
import { checkFilters, type FilterLimits } from "./filter-limits.ts";
import { withJsonRpcErrors } from "./json-rpc-refusals.ts";
import type { NamedFilter } from "./named-filter.ts";
import { PushCall } from "./push-call.ts";
import { gapDatagram, SharedDatagrams, streamIdBytes } from "./push-datagrams.ts";
import { PushSender } from "./push-sender.ts";
import { PushTransport } from "./push-transport.ts";
import { readShredTransaction } from "./socket-parameters.ts";
import type { StreamKey } from "./stream-access.ts";
import type { StreamGap } from "./stream-gap.ts";
import type { StreamCall, StreamHub } from "./stream-hub.ts";
import type { StreamTransport } from "./stream-transport.ts";
import type { Subscription } from "./subscription.ts";

/** The destinations of accounts; src/app/compose-streams.ts implements it. */
export interface PushDestinations {
  /** "ip:port" of those that are verified, not paused and in this region, by id. */
  active(): ReadonlyMap<string, string>;
  /** Throws ShredwayError "destination_unknown" or "destination_refused" unless it is active. */
  addressOf(accountId: string, id: string): string;
  /** The destinations of these ids receive no shreds from now on; all others do again. */
  pauseShreds(ids: ReadonlySet<string>): void;
}

/** stream-service.ts implements it. */
export interface PushHost {
  readonly hub: StreamHub;
  filterLimits(): FilterLimits;
  /** Throws GrpcError. */
  openPush(
    key: StreamKey,
    push: {
      readonly transport: StreamTransport;
      readonly address: string;
      readonly encodeGap: (gap: StreamGap) => Uint8Array;
    },
    callOf: (subscription: Subscription) => StreamCall,
  ): void;
}

interface PushSettings {
  readonly from: string;
  readonly fromIpv6: string;
  readonly datagramsPerSecondMax: number;
}

interface PushDependencies {
  readonly host: PushHost;
  readonly destinations: PushDestinations;
  /** The settings in force. */
  readonly settings: () => PushSettings;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn" | "info">;
}

interface WantedPush {
  /** Id of a destination of the key's account. */
  readonly destination: string;
  /** The parameter of shredTransactionSubscribe; null: keep that of the open push. */
  readonly filter: Json;
  readonly leaseSeconds: number;
  /** Whether the destination also receives shreds; null: as before, at first true. */
  readonly shreds: boolean | null;
}

/** An open push. */
export interface PushView {
  /** Id. */
  readonly destination: string;
  readonly address: string;
  readonly filter: NamedFilter;
  readonly subscription: Subscription;
  readonly streamId: Uint8Array;
  /** The number of the next datagram. */
  readonly sequence: bigint;
  /** Wall time at which it ends unless it is renewed. */
  readonly endsNs: bigint;
  readonly shreds: boolean;
}

interface OpenPush {
  readonly destination: string;
  readonly address: string;
  readonly subscription: Subscription;
  readonly transport: PushTransport;
  readonly call: PushCall;
  filter: NamedFilter;
  /** Monotonic time. */
  leaseEndsNs: bigint;
  /** Whether the destination also receives shreds. */
  shreds: boolean;
}

/** A method of the gateway; errors name it. */
const startMethod = "startTransactionPush";
/** A receiver without a datagram for several of these intervals can treat the push as ended. */
const heartbeatMs = 2000;
const nsPerSecond = 1_000_000_000n;

export class TransactionPushes {
  readonly #dependencies: PushDependencies;
  readonly #encoder = new SharedDatagrams();
  /** The open pushes by the id of their destination. */
  readonly #open = new Map<string, OpenPush>();
  #sender: PushSender | undefined;
  #timer: Timer | undefined;

  constructor(dependencies: PushDependencies) {
    this.#dependencies = dependencies;
  }

  /** Opens the sockets. Throws ShredwayError "system" or "config_invalid". */
  open(): void {
    const { settings, clock, log } = this.#dependencies;
    this.#sender = new PushSender({ ...settings(), clock, log });
    log.info(`streams: transaction pushes leave from ${this.#sender.addresses.join(" and ")}`);
    const beat = (): void => {
      for (const { call } of this.#open.values()) call.heartbeat();
    };
    this.#timer = clock.every(heartbeatMs, beat);
  }

  /** Starts a push, or renews the lease of the open one and replaces its filter. Throws ShredwayError. */
  start(key: StreamKey, wanted: WantedPush): PushView {
    const { destination, leaseSeconds, shreds } = wanted;
    const address = this.#dependencies.destinations.addressOf(key.accountId, destination);
    const known = this.#open.get(destination);
    const open = withJsonRpcErrors(startMethod, () =>
      known
        ? this.#renew(known, key, wanted.filter)
        : this.#begin(key, { destination, address, filter: wanted.filter }),
    );
    open.leaseEndsNs = this.#dependencies.clock.monotonicNs() + BigInt(leaseSeconds) * nsPerSecond;
    if (shreds !== null && shreds !== open.shreds) {
      open.shreds = shreds;
      this.#pauseShreds();
    }
    open.call.heartbeat();
    return this.#viewOf(open);
  }

  /** Returns false if the account has no push to this destination. */
  stop(accountId: string, destination: string): boolean {
    const open = this.#open.get(destination);
    if (open?.subscription.holder.accountId !== accountId) return false;
    open.subscription.end("client", "OK", "client: stopped by stopTransactionPush");
    return true;
  }

  ofAccount(accountId: string): PushView[] {
    return [...this.#open.values()]
      .filter(({ subscription }) => subscription.holder.accountId === accountId)
      .map((open) => this.#viewOf(open));
  }

  /** Ends pushes without a lease or without an active destination. */
  check(): void {
    if (this.#open.size === 0) return;
    const { destinations, clock } = this.#dependencies;
    const active = destinations.active();
    const nowNs = clock.monotonicNs();
    for (const { destination, address, leaseEndsNs, subscription } of this.#open.values()) {
      if (active.get(destination) !== address) {
        const detail = `destination_inactive: ${destination} (${address}) is not verified and active any more`;
        subscription.end("destination_inactive", "FAILED_PRECONDITION", detail);
      } else if (nowNs >= leaseEndsNs) {
        const detail = `lease_expired: the push was not renewed in time; call ${startMethod} again`;
        subscription.end("lease_expired", "DEADLINE_EXCEEDED", detail);
      }
    }
  }

  /** The caller has ended all pushes. */
  close(): void {
    this.#timer?.cancel();
    this.#sender?.close();
    this.#sender = undefined;
  }

  /** Throws GrpcError or ShredwayError. */
  #begin(
    key: StreamKey,
    wanted: { readonly destination: string; readonly address: string; readonly filter: Json },
  ): OpenPush {
    const { host, randomBytes, clock } = this.#dependencies;
    const { destination, address } = wanted;
    const filter = this.#read(wanted.filter, []);
    if (!this.#sender)
      throw new ShredwayError("http_closing", "transaction pushes are not open; retry");
    const target = this.#sender.to(address);
    const nowNs = () => clock.nowNs();
    const transport = new PushTransport({ target, streamId: randomBytes(streamIdBytes), nowNs });
    let open: OpenPush | undefined;
    const encodeGap = (gap: StreamGap) => gapDatagram(gap, nowNs());
    host.openPush(key, { transport, address, encodeGap }, (subscription) => {
      transport.report(subscription);
      const call = new PushCall({
        subscription,
        transport,
        hub: host.hub,
        encoder: this.#encoder,
        filter,
        rate: () => this.#rate(),
        endsNs: () => this.#endsNs(open?.leaseEndsNs ?? 0n),
        clock,
        onClose: () => this.#closed(destination),
      });
      const push = { destination, address, subscription, transport, call, filter };
      open = { ...push, leaseEndsNs: 0n, shreds: true };
      this.#open.set(destination, open);
      return call;
    });
    if (!open) throw new Error("expected the host to open the push");
    return open;
  }

  /** An equal filter stays in force without an interruption. Throws GrpcError or ShredwayError. */
  #renew(open: OpenPush, key: StreamKey, wanted: Json): OpenPush {
    if (wanted !== null) {
      const filter = this.#read(wanted, [open.filter]);
      if (!isDeepStrictEqual(filter, open.filter)) {
        open.filter = filter;
        open.call.replace(filter);
      }
    }
    const { id: keyId, accountId, accountName } = key;
    open.subscription.holder = { keyId, accountId, accountName };
    return open;
  }

  #read(wanted: Json, present: readonly NamedFilter[]): NamedFilter {
    const { hub } = this.#dependencies.host;
    const limits = this.#dependencies.host.filterLimits();
    if (wanted === null) {
      const problem = "no push to this destination is open, so the filter is needed";
      throw new ShredwayError("value_invalid", `${startMethod}: ${problem}; {} matches everything`);
    }
    const place = { method: startMethod, accountsMax: limits.accountsPerSubscription };
    const { filter } = readShredTransaction([wanted], place);
    checkFilters([filter], { present, others: 0, hub, limits });
    return filter;
  }

  #closed(destination: string): void {
    const open = this.#open.get(destination);
    this.#open.delete(destination);
    if (open?.shreds === false) this.#pauseShreds();
  }

  #pauseShreds(): void {
    const without = [...this.#open.values()].filter(({ shreds }) => !shreds);
    const ids = without.map(({ destination }) => destination);
    this.#dependencies.destinations.pauseShreds(new Set(ids));
  }

  /** All pushes have equal shares. */
  #rate(): number {
    const { datagramsPerSecondMax } = this.#dependencies.settings();
    return datagramsPerSecondMax / Math.max(1, this.#open.size);
  }

  #endsNs(leaseEndsNs: bigint): bigint {
    const { clock } = this.#dependencies;
    return clock.nowNs() + leaseEndsNs - clock.monotonicNs();
  }

  #viewOf(open: OpenPush): PushView {
    const { destination, address, filter, subscription, transport, leaseEndsNs, shreds } = open;
    const { streamId, sequence } = transport;
    const endsNs = this.#endsNs(leaseEndsNs);
    return { destination, address, filter, subscription, streamId, sequence, endsNs, shreds };
  }
}
