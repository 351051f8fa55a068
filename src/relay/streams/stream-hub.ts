// Hub: connects the relay's decoded streams with their subscribers.
//
// Created by stream-service.ts. It compiles the filters of all subscribers into one table, reads what
// matches, and passes each message to the subscribers that it belongs to. A message is read once, however
// many subscribers receive it.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type {
  RelayStreams,
  StreamFilter,
  StreamLosses,
  StreamMessage,
  StreamReplay,
  StreamTable,
} from "../data-plane/relay-streams.ts";
import { FilterIds } from "./filter-ids.ts";
import type { FilterName } from "./filter-names.ts";
import { accountsIn, type NamedFilter } from "./named-filter.ts";
import type { Resume } from "./resume.ts";
import { type ReplayState, StreamReplays } from "./stream-replays.ts";

/** Receives messages of one tier; all calls are synchronous. */
interface StreamSubscriber {
  readonly tier: string;
  readonly wantsEntries: boolean;
  /** A transaction that matches at least one of its filters. */
  onTransaction(message: StreamMessage, names: readonly FilterName[]): void;
  onEntries(message: StreamMessage): void;
  /** Beginning, end or restart of a slot. */
  onEvent(message: StreamMessage): void;
  /** Messages for it were lost, because this process was too slow. */
  onLoss(count: bigint): void;
  /** Called after a group of messages. Returns whether it wants to be called after the next group too. */
  flush(): boolean;
}

/** An open stream as the service sees it. */
export interface StreamCall extends StreamSubscriber {
  /** Shows the client that the stream is alive. */
  ping(): void;
  close(): void;
}

/** A subscriber's part of the hub. */
export interface Attachment {
  /**
   * Replaces its filters within some 20 ms. Nothing is lost or repeated: up to one message the former ones
   * decide, from then on the new ones. `onApplied` is called between the two, unless other filters replace
   * them before. The caller has checked `room`. The first filters begin the replay: throws GrpcError
   * "RESOURCE_EXHAUSTED" if there are too many.
   */
  setFilters(filters: readonly NamedFilter[], onApplied?: () => void): void;
  /** The subscriber's queue has more room for its replay. */
  grant(): void;
  detach(): void;
}

interface HubDependencies {
  readonly streams: Pick<
    RelayStreams,
    "publish" | "drain" | "lost" | "losses" | "onMessages" | "grantReplay"
  >;
  /** The relay records what it decodes for tiers with subscribers of transactions. */
  readonly hasHistory: boolean;
  /** `ids`: at least twice as many as filters. */
  readonly limits: { readonly filters: number; readonly ids: number; readonly accounts: number };
  readonly clock: Clock;
  readonly log: Pick<Logger, "error">;
}

interface Attached {
  readonly subscriber: StreamSubscriber;
  /** Its filters in the newest table. */
  ids: readonly number[];
  /** Its filters in the table before, until the relay has applied the newest one. */
  formerIds: readonly number[];
  /** Its filters in the next table; null: they do not change. */
  wanted: readonly NamedFilter[] | null;
  onApplied: () => void;
  /** The filters that count against the limits. */
  counted: readonly NamedFilter[];
  /** Losses before its filters were in force. */
  readonly losses: Map<string, bigint>;
  /** Names of the filters that the transaction of `turn` matches. */
  matched: readonly FilterName[];
  turn: number;
  /** The replay that its first filters begin. A subscriber without filters takes no place of a replay. */
  resume: Resume | null;
  /** null: it is live, or has no filters yet. */
  replay: ReplayState | null;
  /** It gets nothing of lower slots. */
  readonly fromSlot: bigint;
}

/** Changes within this time are published together, because compiling takes some milliseconds. */
const publishMs = 20;
/** A tier is recorded until this time after its last subscriber, so that it can come back. */
const historyMs = 120_000;
/** Read in one turn of the event loop. Connections write between two turns. */
const turnBytes = 128 << 10;

export class StreamHub {
  readonly #dependencies: HubDependencies;
  readonly #attached = new Set<Attached>();
  readonly #ids: FilterIds<Attached>;
  #filters = 0;
  #accounts = 0;
  #publishing: Timer | undefined;
  /** Generation of the newest table until the relay has applied it. */
  #pending: number | null = null;
  /** Subscribers whose filters it replaces, and what they want to be called. */
  #changing: ReadonlyMap<Attached, () => void> = new Map();
  #draining: NodeJS.Immediate | undefined;
  #lost: number;
  /** Subscribers that received something since their last flush. */
  readonly #toFlush = new Set<StreamSubscriber>();
  readonly #matched: Attached[] = [];
  readonly #replays: StreamReplays<Attached>;
  /** Tiers without subscribers that are still recorded. */
  readonly #lingering = new Map<string, Timer>();
  #turn = 0;
  #isClosed = false;

  constructor(dependencies: HubDependencies) {
    this.#dependencies = dependencies;
    this.#ids = new FilterIds(dependencies.limits.ids);
    this.#lost = dependencies.streams.lost;
    this.#replays = new StreamReplays(dependencies.streams);
    dependencies.streams.onMessages(() => this.#drain());
  }

  attach(subscriber: StreamSubscriber, resume?: Resume): Attachment {
    const attached: Attached = {
      subscriber,
      ids: [],
      formerIds: [],
      wanted: null,
      onApplied: () => {},
      counted: [],
      losses: new Map(),
      matched: [],
      turn: 0,
      resume: resume ?? null,
      replay: null,
      fromSlot: resume?.fromSlot ?? 0n,
    };
    this.#attached.add(attached);
    this.#linger(subscriber);
    this.#rememberLosses(attached);
    this.#publishLater();
    return {
      setFilters: (filters, onApplied = () => {}) => {
        if (attached.resume) attached.replay = this.#replays.add(attached, attached.resume);
        attached.resume = null;
        this.#count(attached, filters);
        attached.wanted = filters;
        attached.onApplied = onApplied;
        this.#publishLater();
      },
      grant: () => {
        if (attached.replay) this.#replays.grant(attached.replay);
      },
      detach: () => {
        if (!this.#attached.delete(attached)) return;
        this.#toFlush.delete(subscriber);
        this.#endReplay(attached);
        this.#linger(subscriber);
        this.#count(attached, []);
        this.#ids.release([...attached.ids, ...attached.formerIds]);
        this.#publishLater();
      },
    };
  }

  /** Free places for filters and their accounts, of all subscribers together. */
  room(): { readonly filters: number; readonly accounts: number } {
    const { filters, accounts } = this.#dependencies.limits;
    return { filters: filters - this.#filters, accounts: accounts - this.#accounts };
  }

  /** `isCurrent`: the relay uses the filters of all subscribers. */
  used(): { readonly filters: number; readonly accounts: number; readonly isCurrent: boolean } {
    const isCurrent = this.#publishing === undefined && this.#pending === null;
    return { filters: this.#filters, accounts: this.#accounts, isCurrent };
  }

  get replays(): number {
    return this.#replays.count;
  }

  /** Filters of each subscriber that has some. */
  filterCounts(): ReadonlyMap<StreamSubscriber, number> {
    return new Map(
      [...this.#attached].map(({ subscriber, counted }) => [subscriber, counted.length]),
    );
  }

  /** A wake-up of the relay may still be on its way; it has no effect. */
  close(): void {
    this.#isClosed = true;
    this.#publishing?.cancel();
    clearImmediate(this.#draining);
    for (const timer of this.#lingering.values()) timer.cancel();
  }

  #count(attached: Attached, filters: readonly NamedFilter[]): void {
    this.#filters += filters.length - attached.counted.length;
    this.#accounts += accountsIn(filters) - accountsIn(attached.counted);
    attached.counted = filters;
  }

  #publishLater(): void {
    if (this.#isClosed) return;
    this.#publishing ??= this.#dependencies.clock.after(publishMs, () => {
      this.#publishing = undefined;
      this.#publish();
    });
  }

  #publish(): void {
    if (this.#pending !== null) {
      this.#publishLater();
      return;
    }
    const changing = [...this.#attached].filter(({ wanted }) => wanted !== null);
    this.#replaceFilters(changing);
    try {
      const generation = this.#dependencies.streams.publish(this.#table());
      this.#ids.published(generation);
      this.#pending = generation;
      this.#changing = new Map(changing.map((one) => [one, one.onApplied]));
      for (const attached of changing) attached.wanted = null;
    } catch (error) {
      for (const attached of changing) {
        this.#ids.release(attached.ids);
        attached.ids = attached.formerIds;
        attached.formerIds = [];
      }
      const text = `streams: filters could not be published: ${messageOf(error)}`;
      this.#dependencies.log.error({ err: error }, text);
    }
  }

  #replaceFilters(changing: readonly Attached[]): void {
    if (changing.length === 0) return;
    const losses = this.#dependencies.streams.losses();
    for (const attached of changing) {
      attached.formerIds = attached.ids;
      attached.ids = (attached.wanted ?? []).map((filter) => this.#ids.assign(filter, attached));
      for (const id of attached.ids) attached.losses.set(String(id), losses.byFilter(id));
      if (attached.replay) attached.replay.isBegun = true;
    }
  }

  #table(): StreamTable {
    const filters: StreamFilter[] = [];
    const entryTiers = new Set<string>();
    const historyTiers = new Set(this.#lingering.keys());
    const replays: StreamReplay[] = [];
    for (const { subscriber, replay, ids } of this.#attached) {
      const { tier, wantsEntries } = subscriber;
      for (const id of ids) {
        const filter = this.#ids.filterOf(id);
        if (filter) filters.push({ ...filter, id, tier });
      }
      if (wantsEntries) entryTiers.add(tier);
      else if (this.#dependencies.hasHistory) historyTiers.add(tier);
      if (!replay?.isBegun) continue;
      replays.push({ id: replay.id, tier, fromSlot: replay.resume.fromSlot, filters: ids });
    }
    return { filters, entryTiers, historyTiers, replays };
  }

  /** No later message was matched with former filters. */
  #applied(): void {
    this.#pending = null;
    this.#reportLosses();
    for (const [attached, onApplied] of this.#changing) {
      if (!this.#attached.has(attached)) continue;
      this.#ids.release(attached.formerIds);
      for (const id of attached.formerIds) attached.losses.delete(String(id));
      attached.formerIds = [];
      onApplied();
    }
    this.#changing = new Map();
  }

  #drain(): void {
    if (this.#isClosed) return;
    const isEmpty = this.#dependencies.streams.drain(this.#receive, turnBytes);
    this.#reportLosses();
    for (const subscriber of this.#toFlush) {
      if (!subscriber.flush()) this.#toFlush.delete(subscriber);
    }
    this.#replays.grantAll();
    if (isEmpty) return;
    // Other work gets its turn before the rest.
    this.#draining ??= setImmediate(() => {
      this.#draining = undefined;
      this.#drain();
    });
  }

  readonly #receive = (message: StreamMessage): void => this.#route(message);

  #route(message: StreamMessage): void {
    if (this.#pending !== null && message.generation >= this.#pending) this.#applied();
    if (message.kind === "filters_applied") return;
    if (message.replay !== 0) {
      this.#routeReplay(message);
      return;
    }
    if (message.kind === "transaction") {
      this.#routeTransaction(message);
      return;
    }
    for (const { subscriber, resume, replay, fromSlot } of this.#attached) {
      // A replay will find the event in the history.
      if (subscriber.tier !== message.tier || resume || replay || message.slot < fromSlot) continue;
      const isEntries = message.kind === "entries";
      if (isEntries && !subscriber.wantsEntries) continue;
      this.#toFlush.add(subscriber);
      if (isEntries) subscriber.onEntries(message);
      else subscriber.onEvent(message);
    }
  }

  #routeTransaction(message: StreamMessage): void {
    const turn = ++this.#turn;
    const matched = this.#matched;
    matched.length = 0;
    for (const id of message.filters) {
      const assigned = this.#ids.matched(id, message.generation);
      if (!assigned) continue;
      const { owner, names } = assigned;
      if (message.slot < owner.fromSlot) continue;
      if (owner.turn === turn) {
        owner.matched = [...owner.matched, ...names];
        continue;
      }
      owner.turn = turn;
      owner.matched = names;
      matched.push(owner);
    }
    for (const { subscriber, matched: names } of matched) {
      this.#toFlush.add(subscriber);
      subscriber.onTransaction(message, names);
    }
  }

  /** A message for one subscriber, in the order of the history. */
  #routeReplay(message: StreamMessage): void {
    const owner = this.#replays.ownerOf(message.replay);
    if (!owner?.replay) return;
    const { subscriber, replay } = owner;
    this.#replays.received(replay, message);
    this.#toFlush.add(subscriber);
    const { kind } = message;
    if (kind === "transaction") {
      this.#routeTransaction(message);
    } else if (kind === "replay_end") {
      owner.losses.set("events", message.parent);
      this.#endReplay(owner);
    } else if (kind === "replay_refused" || kind === "replay_overtaken") {
      this.#endReplay(owner);
      replay.resume.refuse(message);
    } else {
      subscriber.onEvent(message);
    }
  }

  #endReplay(owner: Attached): void {
    if (!owner.replay) return;
    this.#replays.remove(owner.replay);
    owner.replay = null;
    this.#publishLater();
  }

  /** A subscriber of its tier came or went. */
  #linger({ tier, wantsEntries }: StreamSubscriber): void {
    if (wantsEntries || !this.#dependencies.hasHistory || this.#isClosed) return;
    this.#lingering.get(tier)?.cancel();
    this.#lingering.delete(tier);
    for (const { subscriber } of this.#attached) {
      if (subscriber.tier === tier && !subscriber.wantsEntries) return;
    }
    const end = (): void => {
      this.#lingering.delete(tier);
      this.#publishLater();
    };
    this.#lingering.set(tier, this.#dependencies.clock.after(historyMs, end));
  }

  #reportLosses(): void {
    const { lost } = this.#dependencies.streams;
    if (lost === this.#lost) return;
    this.#lost = lost;
    const losses = this.#dependencies.streams.losses();
    for (const attached of this.#attached) {
      // Its replay finds them in the history; `replay_end` has the count from which on they matter.
      if (attached.replay || attached.resume) continue;
      let count = 0n;
      for (const [key, value] of lossesOf(attached, losses)) {
        count += value - (attached.losses.get(key) ?? 0n);
        attached.losses.set(key, value);
      }
      if (count === 0n) continue;
      this.#toFlush.add(attached.subscriber);
      attached.subscriber.onLoss(count);
    }
  }

  #rememberLosses(attached: Attached): void {
    const losses = this.#dependencies.streams.losses();
    attached.losses.clear();
    for (const [key, value] of lossesOf(attached, losses)) attached.losses.set(key, value);
  }
}

/** The counters of what the subscriber would have received. */
function lossesOf(
  { subscriber, ids, formerIds }: Attached,
  losses: StreamLosses,
): [string, bigint][] {
  const { tier, wantsEntries } = subscriber;
  const all = [...ids, ...formerIds].map((id): [string, bigint] => [
    String(id),
    losses.byFilter(id),
  ]);
  all.push(wantsEntries ? ["entries", losses.entries(tier)] : ["events", losses.events(tier)]);
  return all;
}
