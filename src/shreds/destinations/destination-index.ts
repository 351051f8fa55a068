// The destinations in memory: by id, by address, by account.
//
// Owned by destinations.ts. In addition to the stored state, it contains the state of this process: the
// open round, errors, and the reason why a destination is not served.

import { type Endpoint, formatEndpoint, parseEndpoint } from "../../core/addresses/addresses.ts";
import { hasProof } from "./destination-rules.ts";
import type { AccountDestination, PauseReason } from "./destination-types.ts";
import { ErrorRun, firstRoundMs, type Round, remindersOf } from "./ownership-proof.ts";

/** null: edited manually, and not in the form of formatEndpoint. */
function endpointOf(text: string): Endpoint | null {
  try {
    const endpoint = parseEndpoint(text);
    return formatEndpoint(endpoint) === text ? endpoint : null;
  } catch {
    return null;
  }
}

/** The shreds that the relay sends to it. */
type DestinationUse = "inactive" | "shreds" | "also recovered shreds";

export class Entry {
  readonly endpoint: Endpoint | null;
  readonly errors = new ErrorRun();
  /** The reason why the destination is not served in any state; null: none. */
  refusal: string | null = null;
  round: Round | null = null;
  /** The round that asks whether a receiver about which ICMP errors arrive still answers. */
  doubt: { readonly round: Round; readonly startMs: number } | null = null;
  /** A pause that is active but not stored yet; `retryMs`: time of the next attempt. */
  stop: { readonly reason: Exclude<PauseReason, "operator">; retryMs: number } | null = null;
  /** Reminders up to here are done. */
  remindedMs = Number.NEGATIVE_INFINITY;
  /** The use last reported to listeners. */
  reported: DestinationUse = "inactive";
  /** Number of the last own change. */
  changeNumber = 0;
  #destination: AccountDestination;

  constructor(destination: AccountDestination) {
    this.#destination = destination;
    this.endpoint = endpointOf(destination.address);
  }

  get destination(): AccountDestination {
    return this.#destination;
  }

  set destination(next: AccountDestination) {
    const isProvedAnew = next.provedMs !== this.#destination.provedMs;
    this.#destination = next;
    if (isProvedAnew) this.round = null;
    if (isProvedAnew || next.state !== "active") {
      this.stop = null;
      this.errors.clear();
    }
  }

  isActive(nowMs: number): boolean {
    const isStopped = this.stop !== null || this.refusal !== null;
    return !isStopped && this.#destination.state === "active" && hasProof(this.#destination, nowMs);
  }

  use(nowMs: number): DestinationUse {
    if (!this.isActive(nowMs)) return "inactive";
    return this.#destination.recovered ? "also recovered shreds" : "shreds";
  }

  /**
   * Time of the next challenge that needs no request; null: none. `isElsewhere`: the relay of another node sends
   * it.
   */
  nextChallengeMs(nowMs: number, isElsewhere: boolean): number | null {
    if (this.refusal !== null) return null;
    const ofRound = this.round?.isOpen(nowMs) ? this.round.nextSendMs : null;
    const after = Math.max(nowMs, this.remindedMs);
    const reminder = remindersOf(this.#destination).find((atMs) => atMs > after) ?? null;
    if (isElsewhere && ofRound === null && reminder === null)
      return firstRoundMs(this.#destination, nowMs);
    return ofRound === null || reminder === null
      ? (ofRound ?? reminder)
      : Math.min(ofRound, reminder);
  }

  /** The last reminder up to now that is not done; null: none. */
  dueReminder(nowMs: number): number | null {
    const due = remindersOf(this.#destination).filter(
      (atMs) => atMs <= nowMs && atMs > this.remindedMs,
    );
    return due.at(-1) ?? null;
  }

  /** Time of the next action; null: none. */
  nextMs(isOurs: boolean): number | null {
    const { state, proofEndsMs } = this.#destination;
    const reminders = isOurs ? remindersOf(this.#destination) : [];
    const end = state === "active" && proofEndsMs !== null ? proofEndsMs : null;
    const times = [
      this.stop ? this.stop.retryMs : end,
      this.round && (this.round.nextSendMs ?? this.round.endsMs),
      reminders.find((atMs) => atMs > this.remindedMs) ?? null,
    ].filter((atMs) => atMs !== null);
    return times.length === 0 ? null : Math.min(...times);
  }
}

export class DestinationIndex {
  readonly #entries = new Map<string, Entry>();
  readonly #ids = new Map<string, string>();
  readonly #accounts = new Map<string, Map<string, Entry>>();

  get(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  at(address: string): Entry | undefined {
    const id = this.#ids.get(address);
    return id === undefined ? undefined : this.#entries.get(id);
  }

  all(): IterableIterator<Entry> {
    return this.#entries.values();
  }

  ofAccount(accountId: string): AccountDestination[] {
    const entries = this.#accounts.get(accountId)?.values() ?? [];
    return [...entries]
      .map(({ destination }) => destination)
      .toSorted((a, b) => a.createdMs - b.createdMs || (a.id < b.id ? -1 : 1));
  }

  insert(destination: AccountDestination): Entry {
    const { id, accountId, address } = destination;
    const entry = new Entry(destination);
    this.#entries.set(id, entry);
    this.#ids.set(address, id);
    const ofAccount = this.#accounts.get(accountId) ?? new Map<string, Entry>();
    this.#accounts.set(accountId, ofAccount.set(id, entry));
    return entry;
  }

  delete(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    const { accountId, address } = entry.destination;
    this.#entries.delete(id);
    // Another destination may have the address already if both changes were seen at once.
    if (this.#ids.get(address) === id) this.#ids.delete(address);
    const ofAccount = this.#accounts.get(accountId);
    ofAccount?.delete(id);
    if (ofAccount?.size === 0) this.#accounts.delete(accountId);
  }
}
