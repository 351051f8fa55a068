// Tip registrar: registers tips, and returns the reason for each rejected one.
//
// Implements the Registrar of registration-types.ts; the gateway calls it with the entries of one
// request. Each entry is independent. Cheap checks come first, signatures are checked by separate
// threads, and then one batch goes to the store, so that all entries share a commit. The store decides
// which registration of a signature was first; one with a proof of the payer replaces one without.
// Nothing is acknowledged before it is durable.

import { messageOf } from "../../core/errors.ts";
import { FailureStreak } from "../../core/failure-streak.ts";
import type { Logger } from "../../core/log.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { TransactionReader } from "../../core/transactions/transaction-text.ts";
import { checkProof } from "./payer-proof.ts";
import type { PendingRegistrations } from "./pending-registrations.ts";
import {
  checkSlot,
  checkTip,
  type PresentSlot,
  type Refused,
  readEntry,
  refusal,
  tipWindowMs,
} from "./registration-checks.ts";
import { isUnknown } from "./registration-results.ts";
import type {
  ClaimResult,
  CountedTip,
  InvalidEntry,
  ProofKind,
  Registrar,
  Registration,
  RegistrationEntry,
  RegistrationResult,
  RegistrationStore,
  TierAccounting,
} from "./registration-types.ts";

export interface TipRegistrarOptions {
  readonly log: Pick<Logger, "warn">;
  /** `tipLamports` of the facts: only transfers to shred-tip addresses. */
  readonly reader: TransactionReader;
  /** Whether every signature is valid; null: the queue is full. */
  readonly verifier: { verify(wire: Uint8Array): Promise<boolean> | null };
  readonly store: Pick<
    RegistrationStore,
    "add" | "addCounted" | "claim" | "claimable" | "owners" | "ofAccount"
  >;
  readonly tiers: Pick<TierAccounting, "nowMs">;
  readonly pending: Pick<
    PendingRegistrations,
    "accounting" | "reserve" | "release" | "add" | "claimed"
  >;
  present(): PresentSlot;
  /** Active shred-tip addresses in base58, for messages. */
  addresses(): ReadonlySet<string>;
}

/** An entry that passed every check except the last. */
interface Candidate {
  readonly accountId: string;
  readonly facts: TransactionFacts;
  readonly slot: bigint;
  readonly proof: ProofKind | null;
}

/** Registered before; the account was not read yet. */
interface Repeated {
  readonly repeated: string;
}

type Checked = Candidate | Refused;

/** Consecutive failures: the first one of each text, and then every thousandth, are logged. */
const logEvery = 1000;

const noOwners: ReadonlyMap<string, string> = new Map();

function overloaded(signature: string, what: string): Refused {
  const message = `the limit for another ${what} is reached; retry later`;
  return refusal("overloaded", message, signature);
}

function notPersisted(signature: string): Refused {
  const message = "the registration could not be stored; retry later";
  return refusal("store_failed", message, signature);
}

function registeredBefore(signature: string, isOwn: boolean | null): Refused {
  const who = isOwn === null ? "" : ` by ${isOwn ? "this" : "another"} account`;
  const repair =
    isOwn === false
      ? "; the payer of an unproven tip can claim it with a proof for this account"
      : "";
  const message = `signature: already registered${who}${repair}`;
  return refusal("registered_before", message, signature);
}

export class TipRegistrar implements Registrar {
  readonly #options: TipRegistrarOptions;
  readonly #outcomes = new Map<string, number>();
  readonly #failures = new FailureStreak(logEvery);

  constructor(options: TipRegistrarOptions) {
    this.#options = options;
  }

  async register(
    accountId: string,
    entries: readonly (RegistrationEntry | InvalidEntry)[],
    isDryRun: boolean,
  ): Promise<RegistrationResult[]> {
    const checked = await Promise.all(entries.map((entry) => this.#check(accountId, entry)));
    if (isDryRun) return this.#rehearse(accountId, checked);
    const results = await this.#persist(accountId, checked);
    for (const result of results) {
      const outcome = result.accepted ? result.state : result.reason;
      this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
    }
    return results;
  }

  /** Entries since the start: "pending", "counted" or "proved", else the reason of the rejection. */
  get outcomes(): ReadonlyMap<string, number> {
    return this.#outcomes;
  }

  ofAccount(accountId: string, beforeMs: number | null, limit: number): Promise<Registration[]> {
    return this.#options.store.ofAccount(accountId, beforeMs, limit);
  }

  async #check(accountId: string, entry: RegistrationEntry | InvalidEntry): Promise<Checked> {
    const { reader, verifier } = this.#options;
    if ("problem" in entry) return refusal("entry_invalid", entry.problem);
    const facts = readEntry(entry, reader);
    if ("accepted" in facts) return facts;
    const { signature } = facts;
    const refused =
      checkTip(facts, this.#options.addresses()) ??
      checkSlot(entry.slot, this.#options.present(), signature);
    if (refused) return refused;
    const verification = verifier.verify(facts.wire);
    if (!verification) return overloaded(signature, "verification");
    if (!(await verification)) {
      const message = "transaction: signature verification failed";
      return refusal("signature_invalid", message, signature);
    }
    const proof = await checkProof(facts, accountId, entry.proof ?? null, (text) =>
      reader.decode(text),
    );
    if (proof !== null && typeof proof === "object") return proof;
    return { accountId, facts, slot: entry.slot, proof };
  }

  /** Sends all of them in this turn: in the order of the entries, in one commit. */
  async #persist(accountId: string, checked: readonly Checked[]): Promise<RegistrationResult[]> {
    const registeredMs = this.#options.tiers.nowMs();
    const outcomes = await Promise.all(
      checked.map((one) =>
        "accepted" in one ? Promise.resolve(one) : this.#accept(one, registeredMs),
      ),
    );
    const repeated = outcomes.flatMap((one) => ("repeated" in one ? [one.repeated] : []));
    const owners = repeated.length > 0 ? await this.#ownersOf(repeated) : null;
    return outcomes.map((one) => {
      if (!("repeated" in one)) return one;
      const owner = owners?.get(one.repeated);
      return registeredBefore(one.repeated, owner === undefined ? null : owner === accountId);
    });
  }

  #accept(candidate: Candidate, registeredMs: number): Promise<RegistrationResult | Repeated> {
    const { accounting } = this.#options.pending;
    const { facts, slot, accountId, proof } = candidate;
    const { signature, tipLamports, lifetime, nonce } = facts;
    const registration: Registration = {
      signature,
      accountId,
      lamports: tipLamports,
      slot,
      registeredMs,
      lifetime,
      nonceAccount: nonce?.account ?? null,
      proof,
      state: "pending",
      settledMs: null,
      countedLamports: null,
      countedOrder: null,
      reason: null,
    };
    return accounting ? this.#addCounted(registration, accounting) : this.#addPending(registration);
  }

  async #addPending(registration: Registration): Promise<RegistrationResult | Repeated> {
    const { pending } = this.#options;
    const { signature, accountId } = registration;
    if (!pending.reserve(accountId)) return overloaded(signature, "pending registration");
    let result: ClaimResult;
    try {
      result = await this.#store(registration);
    } catch (error) {
      pending.release(accountId);
      return this.#failed(signature, error);
    }
    if (result === "added") pending.add(registration);
    else if (result === "claimed") pending.claimed(signature, accountId);
    else pending.release(accountId);
    if (result === "refused") return { repeated: signature };
    return { accepted: true, signature, state: result === "proved" ? result : "pending" };
  }

  async #store(registration: Registration): Promise<ClaimResult> {
    const { store } = this.#options;
    if (registration.proof === null) return (await store.add(registration)) ? "added" : "refused";
    return store.claim(registration, registration.registeredMs - tipWindowMs);
  }

  async #addCounted(
    registration: Registration,
    accounting: TierAccounting,
  ): Promise<RegistrationResult | Repeated> {
    const { signature, accountId, lamports, registeredMs } = registration;
    const order = accounting.takeOrder();
    const countedMs = accounting.nowMs();
    const tip: CountedTip = { order, accountId, lamports, registeredMs, countedMs };
    const counted: Registration = {
      ...registration,
      state: "counted",
      settledMs: countedMs,
      countedLamports: lamports,
      countedOrder: order,
    };
    let isAdded: boolean | null;
    try {
      isAdded = await this.#options.store.addCounted(counted, accounting.epoch);
    } catch (error) {
      if (isUnknown(error)) accounting.giveUp();
      else accounting.settleOrder(order, null);
      return this.#failed(signature, error);
    }
    this.#failures.end();
    if (isAdded === null) {
      accounting.giveUp();
      return this.#addPending(registration); // the current leader will count it
    }
    accounting.settleOrder(order, isAdded ? tip : null);
    if (isAdded) return { accepted: true, signature, state: "counted" };
    // The leader counts a claim after it has read whether the other account's tip is counted.
    return registration.proof === null ? { repeated: signature } : this.#addPending(registration);
  }

  #failed(signature: string, error: unknown): Refused {
    this.#warn(error);
    return notPersisted(signature);
  }

  /** An outage fails every registration, so not every one is logged. */
  #warn(error: unknown): void {
    const message = messageOf(error);
    if (!this.#failures.add(message)) return;
    this.#options.log.warn(`registrations: could not be stored: ${message}`);
  }

  /** The results that they would have. */
  async #rehearse(accountId: string, checked: readonly Checked[]): Promise<RegistrationResult[]> {
    const signatures = checked.flatMap((one) => ("accepted" in one ? [] : [one.facts.signature]));
    const owners = signatures.length > 0 ? await this.#ownersOf(signatures) : noOwners;
    const claims = await this.#claimsOf(accountId, checked);
    const known = new Map<string, string>(owners ?? []);
    return checked.map((one) => {
      if ("accepted" in one) return one;
      const { signature } = one.facts;
      if (!owners || !claims) return notPersisted(signature);
      const owner = known.get(signature);
      const isClaim = one.proof !== null && claims.delete(signature);
      if (owner !== undefined && !isClaim) return registeredBefore(signature, owner === accountId);
      known.set(signature, accountId);
      return this.#rehearsed(accountId, signature);
    });
  }

  /** The signatures that the account could claim; null: the store failed. */
  async #claimsOf(accountId: string, checked: readonly Checked[]): Promise<Set<string> | null> {
    const { store, log, tiers } = this.#options;
    const sinceMs = tiers.nowMs() - tipWindowMs;
    const proven = checked.flatMap((one) =>
      "accepted" in one || one.proof === null ? [] : [one.facts.signature],
    );
    try {
      const results = await Promise.all(
        proven.map((signature) => store.claimable({ signature, accountId }, sinceMs)),
      );
      return new Set(proven.filter((_, i) => results[i] !== "refused"));
    } catch (error) {
      log.warn(`registrations: ${messageOf(error)}`);
      return null;
    }
  }

  #rehearsed(accountId: string, signature: string): RegistrationResult {
    const { pending } = this.#options;
    if (pending.accounting) return { accepted: true, signature, state: "counted" };
    if (!pending.reserve(accountId)) return overloaded(signature, "pending registration");
    pending.release(accountId);
    return { accepted: true, signature, state: "pending" };
  }

  /** null: the store failed. */
  async #ownersOf(signatures: readonly string[]): Promise<ReadonlyMap<string, string> | null> {
    const { store } = this.#options;
    try {
      return await store.owners(signatures);
    } catch (error) {
      this.#warn(error);
      return null;
    }
  }
}
