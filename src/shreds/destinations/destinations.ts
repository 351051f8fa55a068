// Destinations of accounts: proofs, renewals, pauses, and the list for the relay.
//
// Created by the service with the destination store. The gateway calls it (Destinations), the challenge
// sockets report answers (answer), and the relay reports errors (unreachable). Only durable changes take
// effect, except for those that stop shreds: an expired proof and an unreachable receiver stop them in
// the same turn, even if the store fails. One timer serves all destinations.

import type { Clock } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { DestinationIndex, Entry } from "./destination-index.ts";
import {
  approved,
  checkAdded,
  checkChoices,
  checkDestination,
  chosen,
  type DestinationSettings,
  type IsOwnListener,
  isAbandoned,
  newDestination,
  pausedByOperator,
  proved,
  refusalOf,
  resumed,
  stopped,
  unknownDestination,
} from "./destination-rules.ts";
import type {
  AccountDestination,
  DestinationChoices,
  DestinationStore,
  Destinations,
  ProofKind,
} from "./destination-types.ts";
import { DueTimer } from "./due-timer.ts";
import {
  askedOffsetsMs,
  doubtMs,
  doubtOffsetsMs,
  needsRound,
  ownOffsetsMs,
  parseToken,
  proofRefused,
  Round,
  RoundLimits,
  tokenBytes,
  tokenIn,
  tooManyRounds,
} from "./ownership-proof.ts";
import { ProofRetries, storeRetryMs } from "./proof-retries.ts";
import { type Probe, ReachabilityChecks } from "./reachability-checks.ts";
import { StoredDestinations } from "./stored-destinations.ts";

interface DestinationDependencies {
  readonly clock: Clock;
  readonly store: DestinationStore;
  readonly log: Logger;
  /** Unpredictable bytes. */
  readonly random: (count: number) => Uint8Array;
  /** Never throws. */
  readonly sendChallenge: (address: string, datagram: Uint8Array) => void;
  /** Sends the datagram from a fresh socket. Throws if the system has none. */
  readonly openProbe: (address: string, datagram: Uint8Array) => Probe;
  readonly isOwnListener: IsOwnListener;
  readonly regionProblem: (region: string) => string | null;
  /** Whether the relay of another node sends to that region; only that node then sends its own challenges. */
  readonly isServedElsewhere: (region: string) => boolean;
  /** Addresses that ShredStream proxies of an account use now. */
  readonly countLeases: (accountId: string) => number;
}

type ActiveDestination = Pick<
  AccountDestination,
  "id" | "accountId" | "accountName" | "address" | "recovered"
>;

export class AccountDestinations implements Destinations {
  readonly #dependencies: DestinationDependencies;
  readonly #stored: StoredDestinations;
  readonly #table: DestinationIndex;
  readonly #due: DueTimer;
  readonly #limits = new RoundLimits();
  readonly #checks: ReachabilityChecks;
  readonly #retries: ProofRetries;
  readonly #listeners = new Set<() => void>();
  #settings: DestinationSettings;
  #isClosed = false;

  /** Settles when all are loaded. Rejects with ShredwayError "store_failed". */
  static async open(
    dependencies: DestinationDependencies,
    settings: DestinationSettings,
  ): Promise<AccountDestinations> {
    const destinations = new AccountDestinations(dependencies, settings);
    try {
      await destinations.#stored.start();
    } catch (error) {
      destinations.close();
      throw error;
    }
    return destinations;
  }

  private constructor(dependencies: DestinationDependencies, settings: DestinationSettings) {
    this.#dependencies = dependencies;
    this.#settings = settings;
    this.#due = new DueTimer(dependencies.clock, (id) => {
      const entry = this.#table.get(id);
      if (entry) this.#visit(entry);
    });
    this.#stored = new StoredDestinations(dependencies, {
      met: (entry, origin) => this.#meet(entry, origin),
      changed: (entry) => this.#visit(entry),
      forgotten: (entry) => this.#forget(entry),
    });
    this.#table = this.#stored.table;
    this.#checks = new ReachabilityChecks(dependencies);
    this.#retries = new ProofRetries(dependencies);
  }

  close(): void {
    this.#isClosed = true;
    this.#stored.close();
    this.#checks.close();
    this.#retries.close();
    this.#due.close();
    this.#listeners.clear();
  }

  // Calls of the relay.
  /**
   * Destinations that receive shreds now: verified, not paused, and permitted by the active settings.
   */
  active(region: string): ActiveDestination[] {
    const nowMs = this.#nowMs();
    const { canRecover } = this.#settings;
    const list: ActiveDestination[] = [];
    for (const entry of this.#table.all()) {
      const { destination } = entry;
      if (destination.region !== region || !entry.isActive(nowMs)) continue;
      const isChosen = canRecover || !destination.recovered;
      list.push(isChosen ? destination : { ...destination, recovered: false });
    }
    return list;
  }

  /** How many there are by region and state; one that is not sent to for other reasons is "refused". */
  *counts(): Iterable<readonly [region: string, state: string, count: number]> {
    const counts = new Map<string, number>();
    for (const { destination, refusal } of this.#table.all()) {
      const key = `${destination.region} ${refusal === null ? destination.state : "refused"}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const [key, count] of counts) {
      const [region = "", state = ""] = key.split(" ");
      yield [region, state, count];
    }
  }

  /** Called immediately when `active` may have changed. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * The kernel reported that a shred did not arrive there; wall time. Such errors can be forged, so those
   * that continue only cause a check.
   */
  unreachable(address: string, atMs: number): void {
    const entry = this.#table.at(address);
    if (!entry?.isActive(this.#nowMs()) || !entry.errors.add(atMs)) return;
    entry.errors.clear();
    this.#checks.begin(address, () => this.#stopUnreachable(entry));
    if (this.#isSilent(entry)) this.#stopUnreachable(entry);
  }

  /** Whether an answer of that address is expected. */
  isAwaited(from: string): boolean {
    const entry = this.#table.at(from);
    return entry !== undefined && this.#openRound(entry) !== null;
  }

  /** A returned datagram; `from` in the form of formatEndpoint. Never throws. */
  answer(from: string, datagram: Uint8Array): void {
    const token = tokenIn(datagram);
    const entry = this.#table.at(from);
    const round = entry && this.#openRound(entry);
    if (!token || !entry || !round?.holds(token)) return;
    this.#prove(entry, round, "datagram").catch((error: unknown) => {
      this.#retries.failed(from, error, () => this.answer(from, datagram));
    });
  }

  /** Applies other settings: denied addresses receive nothing from this turn on. */
  apply(settings: DestinationSettings): void {
    this.#settings = settings;
    for (const entry of this.#table.all()) {
      this.#evaluate(entry);
      this.#schedule(entry);
    }
    this.#notifyChanges(this.#table.all());
  }

  // Calls of accounts.
  ofAccount(accountId: string): readonly AccountDestination[] {
    return this.#table.ofAccount(accountId);
  }

  refusalOf(id: string): string | null {
    const entry = this.#table.get(id);
    if (!entry) return null;
    return entry.refusal ?? this.#dependencies.regionProblem(entry.destination.region);
  }

  nextChallengeMs(id: string): number | null {
    const entry = this.#table.get(id);
    return entry?.nextChallengeMs(this.#nowMs(), this.#isElsewhere(entry)) ?? null;
  }

  async add(
    account: { readonly id: string; readonly name: string },
    region: string,
    address: string,
    { recovered }: DestinationChoices = { recovered: false },
  ): Promise<AccountDestination> {
    const { random, isOwnListener, countLeases } = this.#dependencies;
    const endpoint = checkDestination(region, address, this.#settings, isOwnListener);
    checkChoices({ recovered }, this.#settings);
    const limit = { perAccountMax: this.#settings.perAccountMax, leases: countLeases(account.id) };
    const chance = { random: random(6), nowMs: this.#nowMs() };
    const destination = newDestination(account, { region, endpoint, recovered }, chance);
    // Checked here first to save rounds; the database decides.
    const other = this.#table.at(destination.address);
    const isOpen = other && this.#openRound(other) !== null;
    if (other && (isOpen || !isAbandoned(other.destination, account.id, chance.nowMs))) {
      checkAdded("address_taken", destination, limit);
    }
    const used = this.#table.ofAccount(account.id).length + limit.leases;
    if (used >= limit.perAccountMax) checkAdded("too_many", destination, limit);
    this.#takeRound(destination);
    if (other) await this.#stored.remove(other.destination.id);
    return (await this.#stored.add(destination, limit)).destination;
  }

  async update(
    accountId: string,
    id: string,
    choices: DestinationChoices,
  ): Promise<AccountDestination> {
    this.#owned(accountId, id);
    checkChoices(choices, this.#settings);
    return this.#stored.change(id, (current) => chosen(current, choices));
  }

  async remove(accountId: string, id: string): Promise<void> {
    this.#owned(accountId, id);
    await this.#stored.remove(id);
  }

  async challenge(accountId: string, id: string): Promise<AccountDestination> {
    const entry = this.#owned(accountId, id);
    if (entry.refusal !== null) {
      const { address } = entry.destination;
      const message = `destination ${address} is not served: ${entry.refusal}`;
      throw new ShredwayError("destination_refused", message);
    }
    if (entry.destination.pauseReason === "operator") {
      throw new ShredwayError("destination_refused", "the operator has paused this destination");
    }
    const leavesMs = this.#openRound(entry)?.nextSendMs ?? null;
    if (leavesMs === null) {
      this.#takeRound(entry.destination);
      this.#begin(entry, askedOffsetsMs);
    }
    return entry.destination;
  }

  async prove(accountId: string, id: string, text: string): Promise<AccountDestination> {
    const entry = this.#owned(accountId, id);
    const token = parseToken(text);
    const round = this.#openRound(entry);
    if (!round) {
      throw proofRefused(
        "no challenge is open at this node; request one with challengeDestination",
      );
    }
    if (round.holds(token)) return this.#prove(entry, round, "call");
    round.countTry();
    throw proofRefused("wrong token; expected the token of the last challenge");
  }

  // Calls of the operator. They throw ShredwayError "destination_unknown".
  /** All of them, in no order. */
  list(): AccountDestination[] {
    return Array.from(this.#table.all(), ({ destination }) => destination);
  }

  /** Approved manually and permanently; ends every pause. */
  approve(id: string): Promise<AccountDestination> {
    return this.#stored.change(id, approved);
  }

  pause(id: string): Promise<AccountDestination> {
    return this.#stored.change(id, pausedByOperator);
  }

  /** Ends a pause; without a valid proof it still receives nothing. */
  resume(id: string): Promise<AccountDestination> {
    return this.#stored.change(id, resumed);
  }

  removeAny(id: string): Promise<void> {
    return this.#stored.remove(id);
  }

  // Unreachable destinations.
  #stopUnreachable(entry: Entry): void {
    const { id } = entry.destination;
    if (this.#table.get(id) !== entry || !entry.isActive(this.#nowMs())) return;
    entry.stop = { reason: "icmp_unreachable", retryMs: this.#nowMs() };
    this.#visit(entry);
  }

  /**
   * Whether a receiver that used to answer challenges has stopped answering. The first call asks it; a
   * later one gives the result.
   */
  #isSilent(entry: Entry): boolean {
    if (entry.destination.provedBy !== "datagram" || !this.#isOurs(entry)) return false;
    const nowMs = this.#nowMs();
    const { doubt } = entry;
    if (doubt && entry.round === doubt.round) return nowMs - doubt.startMs >= doubtMs;
    if (this.#openRound(entry)?.isAsked) return false;
    this.#begin(entry, doubtOffsetsMs);
    entry.doubt = entry.round && { round: entry.round, startMs: nowMs };
    return false;
  }

  // Proofs and challenges.
  #openRound({ round }: Entry): Round | null {
    return round?.isOpen(this.#nowMs()) ? round : null;
  }

  async #prove(
    entry: Entry,
    round: Round,
    kind: Exclude<ProofKind, "operator">,
  ): Promise<AccountDestination> {
    const { id } = entry.destination;
    const { proofMs } = this.#settings;
    entry.round = null; // immediately, because a token is valid once
    this.#schedule(entry);
    try {
      return await this.#stored.change(id, (current, nowMs) =>
        proved(current, kind, { nowMs, proofMs }),
      );
    } catch (error) {
      // Nothing was stored, so the owner may try again.
      if (entry.refusal === null) entry.round ??= round;
      if (this.#table.get(id) === entry) this.#schedule(entry);
      throw error;
    }
  }

  /** Throws ShredwayError "rate_limited". */
  #takeRound(destination: AccountDestination): void {
    const waitMs = this.#limits.take(destination, this.#monotonicMs());
    if (waitMs > 0) throw tooManyRounds(destination, waitMs);
  }

  #begin(entry: Entry, offsetsMs: readonly number[]): void {
    if (entry.refusal !== null) return; // until just now
    entry.round = new Round(this.#dependencies.random(tokenBytes), this.#nowMs(), offsetsMs);
    this.#visit(entry);
  }

  /** Whether this process sends unrequested challenges there. */
  #isOurs(entry: Entry): boolean {
    const { destination, refusal, stop } = entry;
    if (refusal !== null || stop !== null || this.#isElsewhere(entry)) return false;
    return destination.region === this.#settings.region;
  }

  #isElsewhere({ destination }: Entry): boolean {
    return this.#dependencies.isServedElsewhere(destination.region);
  }

  // Time.
  /** Performs the due actions of a destination. */
  #visit(entry: Entry): void {
    const nowMs = this.#nowMs();
    const { state, proofEndsMs } = entry.destination;
    if (state === "active" && proofEndsMs !== null && proofEndsMs <= nowMs) {
      entry.stop ??= { reason: "proof_expired", retryMs: nowMs };
    }
    if (entry.stop && entry.stop.retryMs <= nowMs) {
      entry.stop.retryMs = nowMs + storeRetryMs;
      void this.#storeStop(entry, entry.stop.reason);
    }
    if (this.#isOurs(entry)) this.#sendReminder(entry, nowMs);
    // The operator's pause causes no challenges.
    const isSilent = entry.destination.pauseReason === "operator";
    if (isSilent || !this.#openRound(entry)) entry.round = null;
    const datagram = entry.round?.takeDue(nowMs);
    this.#schedule(entry);
    if (datagram) this.#dependencies.sendChallenge(entry.destination.address, datagram);
    this.#notifyChanges([entry]);
  }

  #sendReminder(entry: Entry, nowMs: number): void {
    const due = entry.dueReminder(nowMs);
    if (due === null) return;
    entry.remindedMs = due;
    // A requested round does the same, and its token may be entered manually.
    if (this.#openRound(entry)?.isAsked) return;
    entry.round = new Round(this.#dependencies.random(tokenBytes), nowMs, ownOffsetsMs);
  }

  async #storeStop(entry: Entry, reason: "icmp_unreachable" | "proof_expired"): Promise<void> {
    const { id, address } = entry.destination;
    try {
      await this.#stored.change(id, (current, nowMs) => stopped(current, reason, nowMs));
      entry.stop = null; // even if a proof arrived meanwhile and no pause was needed
      if (this.#table.get(id) === entry) this.#visit(entry);
    } catch (error) {
      if (this.#table.get(id) !== entry || this.#isClosed) return;
      this.#dependencies.log.warn(
        `destinations: the pause of ${address} could not be stored: ${messageOf(error)}`,
      );
    }
  }

  #schedule(entry: Entry): void {
    this.#due.set(entry.destination.id, entry.nextMs(this.#isOurs(entry)));
  }

  // Changes of the stored state.
  #meet(entry: Entry, origin: "start" | "here" | "foreign"): void {
    this.#evaluate(entry);
    const { destination } = entry;
    const asks = needsRound(destination, origin, this.#nowMs()) && this.#isOurs(entry);
    const isAsked = asks && this.#limits.take(destination, this.#monotonicMs()) === 0;
    if (isAsked || (origin === "here" && !this.#isElsewhere(entry)))
      this.#begin(entry, askedOffsetsMs);
    else this.#visit(entry);
  }

  #forget(entry: Entry): void {
    this.#due.set(entry.destination.id, null);
    if (entry.reported !== "inactive") this.#notify();
  }

  #evaluate(entry: Entry): void {
    entry.refusal = entry.endpoint
      ? refusalOf(entry.endpoint, this.#settings, this.#dependencies.isOwnListener)
      : "its stored address is not in canonical form";
    if (entry.refusal !== null) entry.round = null;
  }

  // Notifications.
  #notifyChanges(entries: Iterable<Entry>): void {
    const nowMs = this.#nowMs();
    let isChanged = false;
    for (const entry of entries) {
      const use = entry.use(nowMs);
      if (use === entry.reported) continue;
      entry.reported = use;
      isChanged = true;
    }
    if (isChanged) this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#dependencies.log.error(`destinations: a listener failed: ${messageOf(error)}`);
      }
    }
  }

  /** Throws ShredwayError "destination_unknown", also for a destination of another account. */
  #owned(accountId: string, id: string): Entry {
    const entry = this.#table.get(id);
    if (entry?.destination.accountId === accountId) return entry;
    throw unknownDestination(id);
  }

  #nowMs(): number {
    return Number(this.#dependencies.clock.nowNs() / 1_000_000n);
  }

  #monotonicMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / 1_000_000n);
  }
}
