// TpuRoute: sends transactions over QUIC to leaders, or to the ports of alternative partners.
//
// Opened by open-route.ts through `tpuOpener`. It selects leaders and addresses; the process
// (src/gateway/tpu/) sends. A transaction to several leaders is sent or acknowledged when the first
// copy is, and failed when all copies failed. An acknowledgement means that the bytes arrived, not
// that the leader accepted them.

import {
  formatAddress,
  formatEndpoint,
  parseAddress,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import type { RouteConfig } from "../../core/configuration/configuration.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { quicheHint, quicheProblem, tpuProtocol } from "../../core/quic/quiche.ts";
import type {
  OutboundTransaction,
  Route,
  RouteCapabilities,
  RouteSnapshot,
} from "../submission/types.ts";
import { TpuIdentity } from "../tpu/identity.ts";
import { targetsOf, type UpcomingLeaders, upcomingOf } from "../tpu/leader-selection.ts";
import { QuicProcess, type QuicProcessOptions } from "../tpu/quic-process.ts";
import type { LeaderState, ProcessState, TpuAddress, TpuEvent } from "../tpu/types.ts";
import type { Verdict } from "./dialect.ts";
import { RouteCounter } from "./route-counts.ts";

export interface TpuRouteDependencies {
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  readonly leaders: UpcomingLeaders;
  /** QUIC address of a leader (base58); implemented by tpu/node-addresses.ts. */
  readonly addresses: { addressOf(identity: string): TpuAddress | null };
  /** Alternative partners (base58), with which a partner route connects before their slots. */
  readonly partners: () => ReadonlySet<string>;
  /** See TpuIdentity. */
  readonly readSeed: (path: string) => Uint8Array;
  /** Maximum wait of a copy for its leader; for tests on slow machines. */
  readonly copyMsMax?: number | undefined;
  /** See QuicProcess; only for tests. */
  readonly start?: QuicProcessOptions["start"];
}

/** A leader's state with its identity. */
interface TpuLeader extends LeaderState {
  /** Base58; null: no known leader has this address any more. */
  readonly identity: string | null;
}

/** One transaction and its copies. */
interface Entry {
  readonly outbound: OutboundTransaction;
  /** Monotonic. */
  readonly offeredNs: bigint;
  /** Copies without a final event. */
  open: number;
  isSent: boolean;
  isEnded: boolean;
  /** Reason of the first copy that was sent and failed. */
  failure: string | null;
}

const transactionBytesMax = 4096;
/**
 * Maximum wait of a copy: about the rest of a window and one more. Later it is useless, and copies
 * for a leader that does not respond would fill the queue.
 */
const copyMsMax = 4000;
/** Interval of leader selection: a third of the shortest planned slot. */
const selectionMs = 70;
const anyAddress = { ipv4: "0.0.0.0", ipv6: "::" };
const nsPerMs = 1e6;

function keyOf({ host, port }: TpuAddress): string {
  return formatEndpoint({ bytes: parseAddress(host), port });
}

function configuredAddresses(config: RouteConfig): ReadonlyMap<string, TpuAddress> {
  return new Map(
    Object.entries(config.quicAddresses ?? {}).map(([identity, text]) => {
      const { bytes, port } = parseEndpoint(text);
      return [identity, { host: formatAddress(bytes), port }];
    }),
  );
}

export class TpuRoute implements Route {
  readonly capabilities: RouteCapabilities;
  readonly #config: RouteConfig;
  readonly #dependencies: TpuRouteDependencies;
  readonly #counter: RouteCounter;
  readonly #identity: TpuIdentity;
  readonly #process: QuicProcess;
  readonly #configuredAddresses: ReadonlyMap<string, TpuAddress>;
  readonly #selectionTimer: Timer;
  #selectionText = "";
  /** Identities by the addresses of the last selection. */
  #identities: ReadonlyMap<string, string> = new Map();
  readonly #copies = new Map<number, Entry>();
  #nextCopy = 0;
  #lastFailure = "";
  #isClosed = false;

  /** Throws ShredwayError "config_invalid" for an identity that cannot be read. */
  constructor(config: RouteConfig, dependencies: TpuRouteDependencies) {
    const { clock, log, readSeed, start } = dependencies;
    const { name, kind, mevSafe, connections, queueMax, timeoutMs } = config;
    this.#config = config;
    this.#dependencies = dependencies;
    this.capabilities = {
      name,
      kind,
      modes: ["transaction"],
      transactionBytesMax: config.transactionBytesMax ?? transactionBytesMax,
      mevSafe,
      minimumTipLamports: BigInt(config.minimumTipLamports),
      leaders: null,
    };
    this.#counter = new RouteCounter(clock, log);
    this.#configuredAddresses = configuredAddresses(config);
    this.#identity = new TpuIdentity({
      path: config.identityFile,
      readSeed,
      clock,
      log,
      changed: (credentials) => this.#process.identify(credentials),
    });
    this.#process = new QuicProcess({
      settings: {
        applicationProtocol: tpuProtocol,
        connectionsMax: connections,
        // One unresponsive leader must not fill the queue of the whole route.
        queueMax: Math.max(1, Math.ceil(queueMax / 2)),
        timeoutMs,
        bind: anyAddress,
        seed: Number(clock.monotonicNs() & 0xffff_ffffn),
      },
      credentials: this.#identity.credentials,
      clock,
      log,
      report: (event) => this.#handleEvent(event),
      start,
    });
    this.#selectionTimer = clock.every(selectionMs, () => this.#selectLeaders());
    this.#selectLeaders();
  }

  /** Whether the route can currently send to a leader. */
  get isUp(): boolean {
    if (this.#isClosed || !this.#process.isUp) return false;
    if (this.#config.kind === "alt-partner") return true;
    return this.#addressesFor(null).length > 0;
  }

  offer(outbound: OutboundTransaction): boolean {
    const addresses = this.#takes(outbound) ? this.#addressesFor(outbound) : [];
    const [transaction] = outbound.transactions;
    if (addresses.length === 0 || !transaction || !this.#hasQueueSpace) {
      this.#counter.turnAway();
      return false;
    }
    const { clock } = this.#dependencies;
    this.#counter.queue();
    const offeredNs = clock.monotonicNs();
    const remainingMs = Number(outbound.deadlineNs - clock.nowNs()) / nsPerMs;
    const restMs = Math.min(remainingMs, this.#dependencies.copyMsMax ?? copyMsMax);
    const open = addresses.length;
    const entry: Entry = {
      outbound,
      offeredNs,
      open,
      isSent: false,
      isEnded: false,
      failure: null,
    };
    for (const address of addresses) {
      const id = this.#nextCopy++;
      this.#copies.set(id, entry);
      this.#process.send({ id, address, bytes: transaction.wire, restMs });
    }
    return true;
  }

  flush(): void {
    this.#process.flush();
  }

  snapshot(): RouteSnapshot {
    const counter = this.#counter;
    return {
      ...counter.counts(),
      name: this.capabilities.name,
      kind: this.capabilities.kind,
      health: this.isUp ? "up" : "down",
      lastFailure: this.#lastFailure || this.#process.lastFailure,
      // The failure of the present leaders is current; the process's has a line in the log.
      lastFailureNs: null,
      queued: counter.queued,
      inFlight: counter.inFlight,
      sendP50Us: counter.sendPercentileUs(50),
      sendP99Us: counter.sendPercentileUs(99),
    };
  }

  /** State of each leader, a few milliseconds old. */
  leaders(): TpuLeader[] {
    return this.#process.leaders.map((state) => ({
      ...state,
      identity: this.#identities.get(state.address) ?? null,
    }));
  }

  /** State of the process that has the connections. */
  get process(): ProcessState {
    return this.#process.state;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#selectionTimer.cancel();
    this.#identity.close();
    await this.#process.close();
  }

  get #hasQueueSpace(): boolean {
    return this.#counter.queued < this.#config.queueMax;
  }

  /**
   * Guards against transactions that the route does not support; the send plan never offers them.
   */
  #takes({ mode, transactions }: OutboundTransaction): boolean {
    return (
      !this.#isClosed && this.#process.isUp && mode === "transaction" && transactions.length === 1
    );
  }

  /** Addresses for a transaction; null: for one without special wishes. */
  #addressesFor(outbound: OutboundTransaction | null): TpuAddress[] {
    const { kind, fanout } = this.#config;
    const leader = outbound?.leader ?? null;
    const denied = outbound?.deniedLeaders;
    const isPartner = kind === "alt-partner";
    const targets = isPartner ? [] : targetsOf(this.#dependencies.leaders, fanout);
    if (leader !== null && !targets.includes(leader)) {
      // The plan's leader is slightly older information; use it only if no leader is known here.
      if (targets.length === 0) targets.push(leader);
    }
    if (targets.length === 0) {
      this.#lastFailure = "the current leader is unknown; check the leader schedule and solana.rpc";
      return [];
    }
    const permitted = denied ? targets.filter((identity) => !denied.has(identity)) : targets;
    // The deny list is the account's wish, and no failure of the route.
    if (permitted.length === 0) return [];
    const isProtected = outbound?.revertProtection ?? false;
    const addresses = permitted.flatMap((identity) => this.#addressOf(identity, isProtected));
    this.#lastFailure =
      addresses.length > 0
        ? ""
        : `no QUIC address is known for the leaders ${permitted.join(", ")}`;
    return addresses;
  }

  #addressOf(identity: string, isProtected: boolean): TpuAddress[] {
    const address =
      this.#configuredAddresses.get(identity) ?? this.#dependencies.addresses.addressOf(identity);
    if (!address) return [];
    const { quicPorts } = this.#config;
    if (!quicPorts) return [address];
    return [{ host: address.host, port: isProtected ? quicPorts.protected : quicPorts.plain }];
  }

  /** Selects the upcoming leaders to connect with. */
  #selectLeaders(): void {
    const { kind, connectAheadSlots, quicPorts } = this.#config;
    const { leaders, partners } = this.#dependencies;
    const upcoming = upcomingOf(leaders, connectAheadSlots);
    const isPartner = kind === "alt-partner";
    const selected = isPartner ? upcoming.filter((identity) => partners().has(identity)) : upcoming;
    const identities = new Map<string, string>();
    const addresses: TpuAddress[] = [];
    for (const identity of selected) {
      const own = [
        ...this.#addressOf(identity, false),
        ...(quicPorts ? this.#addressOf(identity, true) : []),
      ];
      for (const address of own) {
        addresses.push(address);
        identities.set(keyOf(address), identity);
      }
    }
    const text = [...identities.keys()].join();
    if (text === this.#selectionText) return;
    this.#selectionText = text;
    this.#identities = new Map([...[...this.#identities].slice(-256), ...identities]);
    this.#process.selectLeaders(addresses);
  }

  #handleEvent(event: TpuEvent): void {
    const entry = this.#copies.get(event.id);
    if (!entry) return;
    const { outbound } = entry;
    if (event.kind === "sent") {
      if (entry.isSent) return;
      entry.isSent = true;
      this.#counter.leaveQueue();
      this.#counter.send(outbound, entry.offeredNs, event.atNs);
      return;
    }
    this.#copies.delete(event.id);
    entry.open--;
    if (entry.isEnded) return;
    if (event.kind === "acknowledged") {
      this.#end(entry, { kind: "acknowledged" });
      return;
    }
    if (event.kind === "failed") entry.failure ??= event.reason;
    if (entry.open > 0) return;
    if (entry.isSent) {
      this.#end(entry, { kind: "failed", reason: entry.failure ?? event.reason });
    } else {
      entry.isEnded = true;
      this.#counter.drop(outbound, event.reason);
    }
  }

  #end(entry: Entry, verdict: Verdict): void {
    entry.isEnded = true;
    this.#counter.end(entry.outbound, verdict);
  }
}

/**
 * Creates `openTpu` for open-route.ts. The optional package is loaded when the first such route
 * opens.
 */
export function tpuOpener(dependencies: TpuRouteDependencies): (config: RouteConfig) => TpuRoute {
  return (config) => {
    const problem = quicheProblem();
    if (problem !== null) {
      throw new ShredwayError(
        "config_invalid",
        `route ${config.name}: the optional package @matrixai/quic could not be loaded: ${problem}; ${quicheHint}`,
      );
    }
    return new TpuRoute(config, dependencies);
  };
}
