// The simulated customers: they register tips, add and remove destinations, and remember what the
// service reported. From that, and from the rules, follows what they must and may receive.
//
// A request that a crash interrupts has an unknown result, until the customer asks again. Meanwhile both
// results are possible, and the checks accept both.

import type { RegistrationResult } from "../../src/shreds/registrations/registration-types.ts";
import { addressKey } from "./network.ts";
import type { Receivers } from "./receivers.ts";
import { type Entitlement, Violation } from "./relay-checks.ts";
import { accounts } from "./scenario.ts";
import type { ServiceLife } from "./service-life.ts";
import type { SimulatedDisk } from "./simulated-disk.ts";
import type { WallTime } from "./simulated-time.ts";
import { type OwnTip, TierLevels } from "./tier-levels.ts";
import { Wallet } from "./tips.ts";

/** A wall clock that is set forward is noticed within this time. */
const noticedMs = 5_100;
/** The list of an account's tips is read up to this length. */
const tipsListed = 500;
/** Challenges are answered once the customer has seen them. */
const answerMs = 25;
const proofBytes = 24;
const askAgainMs = 1_500;
/** A new destination gets all challenges of its round within this time. */
const challengesMs = 13_000;
const challengesOfRound = 3;
/** An answered challenge makes the destination active within this time. */
const proofMs = 10_000;

interface Tip {
  readonly order: bigint;
  readonly transaction: string;
  readonly lamports: bigint;
  registeredMs: number;
  /** Lower while the clock is behind an earlier time, which the service may not have read. */
  registeredLeastMs: number;
  effectiveMs: number;
  state: "waiting" | "unknown" | "counted";
  /** The signature of the transaction; empty: not known yet. */
  signature: string;
}

interface Destination {
  readonly address: string;
  /** Number of the challenge that it answers; 0: it answers each with a wrong token. */
  readonly answers: number;
  /** Challenges of this life of the service. */
  challenges: number;
  /** When it was added; null: before this life, or it is not yet. */
  addedNs: number | null;
  isAcknowledged: boolean;
  isRemoving: boolean;
  /** Its removal failed with the disk, and a crash may bring the commit back. */
  mayBeRemoved: boolean;
  /** null: no challenge was answered. */
  answeredMs: number | null;
  /** First answer that no crash may have undone. */
  provedMs: number | null;
  /** Its owner has seen it active. */
  wasActive: boolean;
}

interface Asked {
  /** An earlier call had no result. */
  readonly isRepeated: boolean;
  readonly askedMs: number;
}

class Customer {
  readonly id: string;
  readonly name: string;
  readonly wallet: Wallet;
  tips: Tip[] = [];
  /** The tiers that its tips may give it; null: the tips have changed. */
  levels: readonly TierLevels[] | null = null;
  /** When the last of them was counted; simulated time. */
  tipMs = 0;
  readonly destinations = new Map<string, Destination>();

  constructor({ id, name }: { readonly id: string; readonly name: string }) {
    this.id = id;
    this.name = name;
    this.wallet = new Wallet(name);
  }
}

interface CustomersOptions {
  readonly wall: WallTime;
  readonly disk: SimulatedDisk;
  readonly receivers: Receivers;
  /** The service; null: it does not run. */
  readonly life: () => ServiceLife | null;
  /** Writes to the trace. */
  readonly note: (text: string) => void;
  /** Runs an action that may throw Violation. */
  readonly guard: (action: () => void) => void;
}

export class Customers {
  readonly #customers = accounts.map((account) => new Customer(account));
  readonly #wall: WallTime;
  readonly #disk: SimulatedDisk;
  readonly #receivers: Receivers;
  readonly #life: () => ServiceLife | null;
  readonly #note: (text: string) => void;
  readonly #guard: (action: () => void) => void;
  #tipCount = 0;
  /** The highest wall time so far, which the tiers follow. */
  #lastMs = 0;
  readonly #crashesMs: number[] = [];
  /** Forward settings of the clock, oldest first. */
  #jumps: { readonly byMs: number; readonly atNs: number }[] = [];

  constructor({ wall, disk, receivers, life, note, guard }: CustomersOptions) {
    this.#wall = wall;
    this.#disk = disk;
    this.#receivers = receivers;
    this.#life = life;
    this.#note = note;
    this.#guard = guard;
  }

  register(number: number, lamports: number, slot: bigint): void {
    const customer = this.#customers[number];
    if (!customer || !this.#life()) return;
    const tipNumber = ++this.#tipCount;
    const nowMs = this.#nowMs();
    const tip: Tip = {
      order: BigInt(tipNumber),
      transaction: customer.wallet.tip(lamports, tipNumber),
      lamports: BigInt(lamports),
      registeredMs: nowMs,
      registeredLeastMs: this.#wall.nowMs(),
      effectiveMs: nowMs,
      state: "waiting",
      signature: "",
    };
    customer.tips.push(tip);
    customer.levels = null;
    void this.#send(customer, tip, slot);
  }

  async add(number: number, address: string, answers: number): Promise<void> {
    const customer = this.#customers[number];
    const life = this.#life();
    if (!customer || !life || customer.destinations.has(address)) return;
    const destination: Destination = {
      address,
      answers,
      challenges: 0,
      addedNs: null,
      isAcknowledged: false,
      isRemoving: false,
      mayBeRemoved: false,
      answeredMs: null,
      provedMs: null,
      wasActive: false,
    };
    customer.destinations.set(address, destination);
    const account = { id: customer.id, name: customer.name };
    try {
      await life.sales.destinations.add(account, life.sales.region, address);
      destination.isAcknowledged = true;
      destination.addedNs = this.#wall.time.nowNs;
      this.#note(`${customer.name} added ${address}`);
    } catch (error) {
      customer.destinations.delete(address);
      this.#note(`${customer.name} could not add ${address}: ${String(error)}`);
    }
  }

  async remove(number: number, choice: number): Promise<void> {
    const customer = this.#customers[number];
    const life = this.#life();
    const all = [...(customer?.destinations.values() ?? [])].filter(
      ({ isAcknowledged, isRemoving }) => isAcknowledged && !isRemoving,
    );
    const destination = all[choice % Math.max(1, all.length)];
    if (!customer || !life || !destination) return;
    const known = life.sales.destinations
      .ofAccount(customer.id)
      .find(({ address }) => address === destination.address);
    if (!known) return;
    destination.isRemoving = true;
    try {
      await life.sales.destinations.remove(customer.id, known.id);
      customer.destinations.delete(destination.address);
      this.#note(`${customer.name} removed ${destination.address}`);
    } catch (error) {
      destination.isRemoving = false;
      destination.mayBeRemoved = this.#disk.hasFailedLately;
      this.#note(`${customer.name} could not remove ${destination.address}: ${String(error)}`);
    }
  }

  /** A challenge leaves for a customer's address. */
  challenged(address: string, datagram: Uint8Array): void {
    const life = this.#life();
    const destination = this.#find(address);
    if (!destination) return;
    destination.challenges++;
    this.#note(`challenge ${destination.challenges} to ${address}`);
    if (this.#receivers.isClosed(address)) return;
    const { answers, answeredMs } = destination;
    const isTrue = answers > 0;
    if (isTrue && answeredMs === null && destination.challenges < answers) return;
    const answer = Uint8Array.from(datagram.subarray(0, proofBytes));
    if (!isTrue) answer[proofBytes - 1] = (answer[proofBytes - 1] ?? 0) ^ 1;
    this.#wall.time.at(this.#wall.time.nowNs + answerMs * 1e6, () => {
      const now = this.#life();
      if (!now || (life && now !== life)) return;
      if (isTrue) {
        destination.answeredMs ??= this.#wall.time.nowMs;
        destination.provedMs ??= this.#wall.time.nowMs;
      }
      now.sales.destinations.answer(address, answer);
    });
  }

  clockWasSet(byMs: number): void {
    for (const { destinations } of this.#customers)
      for (const destination of destinations.values()) destination.addedNs = null;
    // The service may have read the clock just before.
    this.#lastMs = Math.max(this.#lastMs, this.#wall.nowMs() - byMs);
    if (byMs > 0) this.#jumps.push({ byMs, atNs: this.#wall.time.nowNs });
  }

  /** The service was killed. */
  crashed(): void {
    this.#crashesMs.push(this.#nowMs());
    for (const customer of this.#customers) {
      customer.levels = null;
      for (const tip of customer.tips) if (tip.state === "waiting") tip.state = "unknown";
    }
  }

  /**
   * The service runs again: customers ask for what they do not know. Throws Violation if something that
   * was acknowledged is lost.
   */
  restarted(life: ServiceLife, slot: bigint): void {
    for (const customer of this.#customers) {
      const listed = new Set(
        life.sales.destinations.ofAccount(customer.id).map(({ address }) => address),
      );
      for (const [address, destination] of customer.destinations) {
        if (!listed.has(address)) {
          const { isAcknowledged, isRemoving, mayBeRemoved } = destination;
          if (isAcknowledged && !isRemoving && !mayBeRemoved)
            throw new Violation("nothing acknowledged is lost", `destination ${address}`);
          customer.destinations.delete(address);
          continue;
        }
        destination.isAcknowledged = true;
        destination.isRemoving = false;
        destination.mayBeRemoved = false;
        destination.challenges = 0;
        destination.addedNs = null;
        // The proof may have waited for the disk.
        if (!destination.wasActive) destination.provedMs = null;
      }
      for (const tip of customer.tips)
        if (tip.state === "unknown") void this.#send(customer, tip, slot);
      void this.#checkTips(customer, life);
    }
  }

  /** Every tip that was acknowledged is in the account's list. */
  async #checkTips(customer: Customer, life: ServiceLife): Promise<void> {
    const acknowledged = customer.tips.filter(({ state }) => state === "counted");
    const asked = life.sales.registrar.ofAccount(customer.id, null, tipsListed);
    const listed = await asked.catch((error: unknown) => {
      if (this.#disk.wasSilentLately) return null;
      throw error;
    });
    if (!listed) return;
    const states = new Map(listed.map(({ signature, state }) => [signature, state]));
    for (const { order, signature } of acknowledged)
      this.#guard(() => {
        if (states.get(signature) === "counted" || listed.length === tipsListed) return;
        throw new Violation("nothing acknowledged is lost", `tip ${order} of ${customer.name}`);
      });
  }

  /**
   * Entitlements by address, in the form of `Sent`. Throws Violation if the service reports something
   * impossible to a customer.
   */
  entitlements(life: ServiceLife): Map<string, Entitlement> {
    const all = new Map<string, Entitlement>();
    for (const customer of this.#customers) {
      if (customer.destinations.size === 0) continue;
      const tier = this.#tierOf(customer);
      const listed = life.sales.destinations.ofAccount(customer.id);
      for (const destination of customer.destinations.values()) {
        const told = listed.find(({ address }) => address === destination.address);
        const isActive = told?.state === "active";
        if (isActive) destination.wasActive = true;
        const isUnreachable = told?.pauseReason === "icmp_unreachable";
        if (!isUnreachable) this.#checkProof(destination, isActive);
        const isPossible = destination.answeredMs !== null;
        const isCertain =
          isActive && !destination.isRemoving && !this.#receivers.mayBePaused(destination.address);
        all.set(addressKey(destination.address), {
          may: isPossible ? tier.may : -1,
          must: isCertain ? tier.must : -1,
          tipMs: customer.tipMs,
        });
      }
    }
    return all;
  }

  #checkProof(destination: Destination, isActive: boolean): void {
    const { address, answeredMs, provedMs, addedNs, challenges } = destination;
    const sinceAddedMs = (this.#wall.time.nowNs - (addedNs ?? this.#wall.time.nowNs)) / 1e6;
    if (answeredMs === null && sinceAddedMs > challengesMs && challenges < challengesOfRound)
      throw new Violation(
        "an unverified destination is challenged",
        `${address}: ${challenges} times`,
      );
    if (isActive && answeredMs === null)
      throw new Violation("no destination is active without a proof", address);
    const { nowMs } = this.#wall.time;
    const sinceMs = nowMs - Math.max(provedMs ?? nowMs, this.#disk.failedUntilMs);
    if (!isActive && sinceMs > proofMs && destination.isAcknowledged)
      throw new Violation("a proof makes a destination active", `${address} after ${sinceMs} ms`);
  }

  /** Asks once; the result may never come. */
  async #send(customer: Customer, tip: Tip, slot: bigint): Promise<void> {
    const life = this.#life();
    if (!life) return;
    const { transaction } = tip;
    const asked = { isRepeated: tip.state === "unknown", askedMs: this.#nowMs() };
    const entries = [{ transaction, slot }];
    const [result] = await life.sales.registrar.register(customer.id, entries, false);
    if (!result || this.#life() !== life) return;
    this.#note(`${customer.name} tip ${tip.order}: ${JSON.stringify(result)}`);
    customer.levels = null;
    this.#guard(() => {
      if (!result.accepted && result.reason === "store_failed")
        this.#sendLater(customer, tip, slot);
      else if (this.#settle(tip, result, asked)) customer.tipMs = this.#wall.time.nowMs;
      else customer.tips = customer.tips.filter((each) => each !== tip);
    });
  }

  /** The result is not known: the customer asks again. */
  #sendLater(customer: Customer, tip: Tip, slot: bigint): void {
    if (!this.#disk.hasFailedLately)
      throw new Violation("a refusal is true", `tip ${tip.order}: the store failed`);
    tip.state = "unknown";
    const life = this.#life();
    this.#wall.time.at(this.#wall.time.nowNs + askAgainMs * 1e6, () => {
      if (this.#life() === life && tip.state === "unknown") void this.#send(customer, tip, slot);
    });
  }

  /** Returns whether the tip counts. */
  #settle(tip: Tip, result: RegistrationResult, { isRepeated, askedMs }: Asked): boolean {
    if (!result.accepted && result.reason !== "registered_before") return false;
    if (!result.accepted && !isRepeated)
      throw new Violation("a new tip is new", `tip ${tip.order}: ${result.message}`);
    if (result.accepted && isRepeated) {
      tip.registeredMs = askedMs;
      tip.registeredLeastMs = Math.min(askedMs, this.#wall.nowMs());
    }
    if (result.accepted) tip.effectiveMs = this.#nowMs();
    tip.signature = result.signature ?? "";
    tip.state = "counted";
    return true;
  }

  #nowMs(): number {
    this.#lastMs = Math.max(this.#lastMs, this.#wall.nowMs());
    return this.#lastMs;
  }

  #find(address: string): Destination | undefined {
    for (const { destinations } of this.#customers) {
      const found = destinations.get(address);
      if (found) return found;
    }
    return undefined;
  }

  /** The tiers that the rules allow now: more than one around a change. */
  #tierOf(customer: Customer): Entitlement {
    const nowMs = this.#nowMs();
    const times = [nowMs, nowMs - 1, this.#wall.nowMs()];
    const { time } = this.#wall;
    this.#jumps = this.#jumps.filter(({ atNs }) => time.nowNs - atNs < noticedMs * 1e6);
    let behindMs = 0;
    for (const { byMs } of this.#jumps.toReversed()) {
      behindMs += byMs;
      times.push(nowMs - behindMs);
    }
    // A start that cannot take over because the disk fails follows the tiers of the last checkpoint.
    if (this.#disk.hasFailedLately) times.push(...this.#crashesMs);
    customer.levels ??= levelsOf(customer);
    let may = Number.NEGATIVE_INFINITY;
    let must = Number.POSITIVE_INFINITY;
    for (const levels of customer.levels) {
      for (const untilMs of times) {
        const level = levels.levelAt(untilMs);
        may = Math.max(may, level);
        must = Math.min(must, level);
      }
    }
    return { may, must };
  }
}

function levelsOf({ id, tips }: Customer): TierLevels[] {
  const some = tips.filter(({ state }) => state === "counted");
  const lists = [earliest(tips), latest(tips)];
  if (some.length < tips.length) lists.push(earliest(some), latest(some));
  return lists.map((list) => new TierLevels(id, list));
}

function earliest(tips: readonly Tip[]): OwnTip[] {
  return tips.map(({ order, lamports, registeredLeastMs }) => ({
    order,
    lamports,
    registeredMs: registeredLeastMs,
    effectiveMs: registeredLeastMs,
  }));
}

function latest(tips: readonly Tip[]): OwnTip[] {
  return tips.map(({ order, lamports, registeredMs, effectiveMs }) => ({
    order,
    lamports,
    registeredMs,
    effectiveMs: Math.max(registeredMs, effectiveMs),
  }));
}
