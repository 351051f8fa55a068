// Cache of the present values of nonce accounts in use.
//
// Called by nonce-service.ts. Each account in use is polled, up to 100 accounts per RPC call, and
// faster after an advance. An answer is as old as its query: an answer to an earlier query never
// replaces that to a later one. RPC nodes behind one address may lag behind each other, so an answer of
// an earlier slot is not accepted within `lagMs`, and neither is a replaced value without a slot. Memory
// and concurrent queries are bounded.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { FairCache } from "../../core/fair-cache.ts";
import type { Logger } from "../../core/log.ts";
import { findNonceAccount, type NonceAccount, readNonceAccount } from "./nonce-account.ts";
import type { NonceAccountView, NonceNode } from "./types.ts";

export interface NonceValueLimits {
  /** Poll interval of an account in use. */
  readonly pollMs: number;
  /** Poll interval after an advance, until the value changes or `spentMs` passed. */
  readonly fastPollMs: number;
  readonly fastPollMsMax: number;
  /** Maximum age of a cached value that `get` returns. */
  readonly freshMs: number;
  /** An account stays in use for so long after its last query by a caller. */
  readonly usedMs: number;
  /**
   * An answer of an earlier slot, an earlier value without a slot, or a missing account is ignored for so
   * long: the node may lag behind.
   */
  readonly lagMs: number;
  /** Maximum age of a value for co-signing; co-signing with a spent value is harmless. */
  readonly recentMs: number;
  /** Concurrent queries for callers, so that a hanging node does not accumulate them. */
  readonly queriesMax: number;
  /** The same for one tenant, so that the others get queries, too. */
  readonly tenantQueriesMax: number;
  /** Accounts in use; a new one replaces the least recently used of the tenant that uses the most. */
  readonly accountsMax: number;
}

export function valueLimitsFor(pollMs: number): NonceValueLimits {
  return {
    pollMs,
    fastPollMs: Math.min(pollMs, 150),
    fastPollMsMax: 30_000,
    freshMs: Math.min(2 * pollMs, 2_000),
    usedMs: 60_000,
    lagMs: 30_000,
    recentMs: 10_000,
    queriesMax: 64,
    tenantQueriesMax: 16,
    accountsMax: 1_000,
  };
}

interface NonceValueDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly node: Pick<NonceNode, "accounts">;
}

/** Time of a query; `order` distinguishes queries within one millisecond. */
interface QueryTime {
  readonly ms: number;
  readonly order: number;
}

interface Entry {
  readonly address: string;
  account: NonceAccount;
  /** The slot of the answer; null: unknown. */
  slot: bigint | null;
  /** The query whose answer `account` is. */
  queryTime: QueryTime;
  usedMs: number;
  dueMs: number;
  /** A poll of this account is running. */
  isPolling: boolean;
  /**
   * The value before the last change, and the time of that change; used to ignore lagging nodes.
   */
  previous: string | null;
  changedMs: number;
  /** Since when the value is known to be spent; null: not known to be spent. */
  spentMs: number | null;
}

function overloaded(): ShredwayError {
  return new ShredwayError(
    "overloaded",
    "too many nonce queries wait for the RPC node; retry in 1 s",
    { details: { retryAfterSeconds: 1 } },
  );
}

/** Limit of getMultipleAccounts. */
const accountsPerQuery = 100;

export class NonceValues {
  readonly #dependencies: NonceValueDependencies;
  readonly #limits: NonceValueLimits;
  /** Accounts in use; the owners are the tenants. */
  readonly #entries: FairCache<Entry>;
  /** Running queries for callers; later callers share them. */
  readonly #queries = new Map<string, Promise<NonceAccount>>();
  /** Number of running queries by the tenant that caused them. */
  readonly #queriesByTenant = new Map<string, number>();
  #timer: { readonly atMs: number; readonly timer: Timer } | null = null;
  #queryCount = 0;
  #isFailing = false;
  #isClosed = false;

  constructor(dependencies: NonceValueDependencies, limits: NonceValueLimits) {
    this.#dependencies = dependencies;
    this.#limits = limits;
    this.#entries = new FairCache(limits.accountsMax);
  }

  /** Accounts in use. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * `tenant`: the account whose call this is. Throws ShredwayError "nonce_invalid", "rpc_failed", or
   * "overloaded" if too many queries are running.
   */
  async get(address: string, tenant = ""): Promise<NonceAccount> {
    const entry = this.#entries.get(address);
    const isFresh = entry && this.#nowMs() - entry.queryTime.ms <= this.#limits.freshMs;
    if (!isFresh || entry.spentMs !== null) return this.#query(address, tenant);
    this.#use(entry, tenant);
    return entry.account;
  }

  /** The cached value if it is at most `recentMs` old and not spent. */
  recent(address: string): NonceAccount | undefined {
    const entry = this.#entries.get(address);
    const isRecent = entry && this.#nowMs() - entry.queryTime.ms <= this.#limits.recentMs;
    return isRecent && entry.spentMs === null ? entry.account : undefined;
  }

  /** Queries the node now. Throws like `get`. */
  async getNow(address: string, tenant = ""): Promise<NonceAccount> {
    const queryTime = this.#newQueryTime(this.#nowMs());
    const [view = null] = await this.#dependencies.node.accounts([address]);
    const account = this.#observe(address, view, queryTime, tenant);
    return account ?? readNonceAccount(address, view);
  }

  /** Stores an answer that another component queried at `askedMs` (monotonic). */
  observe(address: string, view: NonceAccountView | null, askedMs: number, tenant = ""): void {
    const { order = 0 } = this.#entries.get(address)?.queryTime ?? {};
    this.#observe(address, view, { ms: askedMs, order }, tenant);
  }

  /**
   * Marks the value as probably spent. Does nothing if the account is not in use or has another
   * value.
   */
  advanced(address: string, value: string): void {
    const entry = this.#entries.get(address);
    if (!entry || entry.account.value !== value || this.#isClosed) return;
    const nowMs = this.#nowMs();
    entry.spentMs ??= nowMs;
    entry.dueMs = nowMs;
    this.#schedule(nowMs);
  }

  /** Answers of running queries are discarded. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.timer.cancel();
    this.#timer = null;
    this.#entries.clear();
  }

  #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / 1_000_000n);
  }

  #newQueryTime(ms: number): QueryTime {
    return { ms, order: ++this.#queryCount };
  }

  #query(address: string, tenant: string): Promise<NonceAccount> {
    let query = this.#queries.get(address);
    if (!query) {
      const own = this.#queriesByTenant.get(tenant) ?? 0;
      const isFull = this.#queries.size >= this.#limits.queriesMax;
      if (isFull || own >= this.#limits.tenantQueriesMax) return Promise.reject(overloaded());
      this.#queriesByTenant.set(tenant, own + 1);
      query = this.getNow(address, tenant).finally(() => this.#queryEnded(address, tenant));
      this.#queries.set(address, query);
    }
    return query;
  }

  #queryEnded(address: string, tenant: string): void {
    this.#queries.delete(address);
    const left = (this.#queriesByTenant.get(tenant) ?? 0) - 1;
    if (left > 0) this.#queriesByTenant.set(tenant, left);
    else this.#queriesByTenant.delete(tenant);
  }

  #use(entry: Entry, tenant: string): void {
    entry.usedMs = this.#nowMs();
    this.#entries.use(entry.address, tenant);
  }

  /** Returns the best known account; null: it is not a nonce account. */
  #observe(
    address: string,
    view: NonceAccountView | null,
    queryTime: QueryTime,
    tenant: string,
  ): NonceAccount | null {
    const account = findNonceAccount(view);
    if (this.#isClosed) return account;
    const entry = this.#entries.get(address);
    if (!entry) {
      const slot = view?.slot ?? null;
      if (account) this.#add({ address, account, slot, queryTime }, tenant);
      return account;
    }
    this.#use(entry, tenant);
    return this.#update(entry, view, queryTime);
  }

  #update(entry: Entry, view: NonceAccountView | null, queryTime: QueryTime): NonceAccount | null {
    const account = findNonceAccount(view);
    if (queryTime.ms < entry.queryTime.ms || queryTime.order < entry.queryTime.order)
      return entry.account;
    const { lagMs } = this.#limits;
    if (account === null) {
      if (queryTime.ms - entry.queryTime.ms < lagMs) return entry.account;
      this.#entries.delete(entry.address);
      return null;
    }
    const slot = view?.slot ?? null;
    if (slot !== null && entry.slot !== null) {
      const isLagging = slot < entry.slot && queryTime.ms - entry.queryTime.ms < lagMs;
      if (isLagging) return entry.account;
    } else if (account.value === entry.previous && queryTime.ms - entry.changedMs < lagMs) {
      return entry.account;
    }
    if (account.value !== entry.account.value) {
      entry.previous = entry.account.value;
      entry.changedMs = this.#nowMs();
      entry.spentMs = null;
    }
    entry.account = account;
    entry.slot = slot;
    entry.queryTime = queryTime;
    return account;
  }

  #add(known: Pick<Entry, "address" | "account" | "slot" | "queryTime">, tenant: string): void {
    const nowMs = this.#nowMs();
    const entry: Entry = {
      ...known,
      usedMs: nowMs,
      dueMs: this.#nextRound(nowMs),
      isPolling: false,
      previous: null,
      changedMs: nowMs - this.#limits.lagMs, // no change is known
      spentMs: null,
    };
    this.#entries.set(entry.address, entry, tenant);
    this.#schedule(entry.dueMs);
  }

  /** All accounts are polled at the same times, so that they share RPC calls. */
  #nextRound(nowMs: number): number {
    const { pollMs } = this.#limits;
    return (Math.floor(nowMs / pollMs) + 1) * pollMs;
  }

  #schedule(atMs: number): void {
    if (this.#isClosed || (this.#timer && this.#timer.atMs <= atMs)) return;
    this.#timer?.timer.cancel();
    const waitMs = Math.max(0, atMs - this.#nowMs());
    this.#timer = { atMs, timer: this.#dependencies.clock.after(waitMs, () => this.#round()) };
  }

  #round(): void {
    this.#timer = null;
    const nowMs = this.#nowMs();
    const due: Entry[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries.values()) {
      if (nowMs - entry.usedMs > this.#limits.usedMs) {
        this.#entries.delete(entry.address);
      } else if (entry.dueMs > nowMs) {
        nextMs = Math.min(nextMs, entry.dueMs);
      } else if (!entry.isPolling) {
        due.push(entry);
        this.#endFastPolling(entry, nowMs);
        const fastPollUntilMs = nowMs + this.#limits.fastPollMs;
        entry.dueMs = entry.spentMs === null ? this.#nextRound(nowMs) : fastPollUntilMs;
        nextMs = Math.min(nextMs, entry.dueMs);
      }
    }
    for (let i = 0; i < due.length; i += accountsPerQuery) {
      void this.#poll(due.slice(i, i + accountsPerQuery), nowMs);
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#schedule(nextMs);
  }

  #endFastPolling(entry: Entry, nowMs: number): void {
    const { spentMs } = entry;
    if (spentMs !== null && nowMs - spentMs > this.#limits.fastPollMsMax) entry.spentMs = null;
  }

  async #poll(group: readonly Entry[], nowMs: number): Promise<void> {
    const queryTime = this.#newQueryTime(nowMs);
    for (const entry of group) entry.isPolling = true;
    try {
      const views = await this.#dependencies.node.accounts(group.map(({ address }) => address));
      this.#isFailing = false;
      group.forEach((entry, i) => {
        const isHere = this.#entries.get(entry.address) === entry;
        if (isHere) this.#update(entry, views[i] ?? null, queryTime);
      });
    } catch (error) {
      if (!this.#isFailing)
        this.#dependencies.log.warn(`nonces: values could not be polled: ${messageOf(error)}`);
      this.#isFailing = true;
    } finally {
      for (const entry of group) {
        entry.isPolling = false;
        this.#schedule(entry.dueMs);
      }
    }
  }
}
